"""Family: losses of texts from causal language models, near or served.

Importing it loads numpy only; PyTorch, transformers and httpx are imported in the functions that need them.
"""

from auditor.collectors.texts.answers import EchoedPrompt, PromptLogProbs
from auditor.collectors.texts.causal import LongTexts
from auditor.collectors.texts.collect_texts import collect_texts
from auditor.collectors.texts.completions import CompletionsEndpoint
from auditor.collectors.texts.loading import load_language_model
from auditor.collectors.texts.scorer import TextScorer, text_scorer
from auditor.collectors.texts.scores import MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio

__all__ = [
    "CompletionsEndpoint",
    "EchoedPrompt",
    "LongTexts",
    "MeanTokenLoss",
    "MinK",
    "PromptLogProbs",
    "SumTokenLoss",
    "TextScorer",
    "ZlibRatio",
    "collect_texts",
    "load_language_model",
    "text_scorer",
]
