"""Family: anything becomes `Losses` (columns, files, models of every kind, endpoints, texts, callables).

Importing it loads numpy only; everything heavier is imported in the functions that need it.
"""

from auditor.collectors.arrays import from_columns
from auditor.collectors.features import read_feature_pair, read_features
from auditor.collectors.files import read_loss_pair, read_losses
from auditor.collectors.from_model import collect
from auditor.collectors.loading.load_model import load_model
from auditor.collectors.model_file import LanguageModelFile, ModelFile
from auditor.collectors.outputs import Output
from auditor.collectors.record_table import RecordTable
from auditor.collectors.schedule import read_schedule
from auditor.collectors.served import Endpoint
from auditor.collectors.streaming import CollectedReport, LocalEngine
from auditor.collectors.streaming.ray_engine import RayEngine
from auditor.collectors.tasks import Classification, GaussianLogLoss, MultiLabel, SquaredError
from auditor.collectors.texts import (
    CompletionsEndpoint,
    LongTexts,
    MeanTokenLoss,
    MinK,
    SumTokenLoss,
    ZlibRatio,
    collect_texts,
    load_language_model,
    text_scorer,
)
from auditor.collectors.to_file import collect_to

__all__ = [
    "Classification",
    "CollectedReport",
    "CompletionsEndpoint",
    "Endpoint",
    "GaussianLogLoss",
    "LanguageModelFile",
    "LocalEngine",
    "LongTexts",
    "MeanTokenLoss",
    "MinK",
    "ModelFile",
    "MultiLabel",
    "Output",
    "RayEngine",
    "RecordTable",
    "SquaredError",
    "SumTokenLoss",
    "ZlibRatio",
    "collect",
    "collect_texts",
    "collect_to",
    "from_columns",
    "load_language_model",
    "load_model",
    "read_feature_pair",
    "read_features",
    "read_loss_pair",
    "read_losses",
    "read_schedule",
    "text_scorer",
]
