from auditor.collectors.texts.endpoints import CompletionsEndpoint, EchoedPrompt, PromptLogProbs
from auditor.collectors.texts.models import CausalModel, LongTexts, Network, load_language_model
from auditor.collectors.texts.scorer import text_scorer
from auditor.collectors.texts.scores import SCORES, MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio, passages
