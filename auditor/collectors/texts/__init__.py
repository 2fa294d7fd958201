"""Losses of texts from causal language models, near or served."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "endpoints": "CompletionsEndpoint EchoedPrompt PromptLogProbs",
        "models": "LongTexts Network causal_model load_language_model",
        "scorer": "collect_texts text_scorer",
        "scores": "MeanTokenLoss MinK SCORES SumTokenLoss ZlibRatio plain_texts",
    },
)
