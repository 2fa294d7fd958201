"""Family: anything becomes `Losses` (columns, files, models of every kind, endpoints, texts, callables).

Importing it loads numpy only; everything heavier is imported in the functions that need it.
"""

from typing import TYPE_CHECKING

from auditor.core.lazy import face

if TYPE_CHECKING:
    from auditor.collectors.base.outputs import Output as Output
    from auditor.collectors.base.tasks import (
        Classification as Classification,
        GaussianLogLoss as GaussianLogLoss,
        MultiLabel as MultiLabel,
        SquaredError as SquaredError,
    )
    from auditor.collectors.models.loading import load_model as load_model
    from auditor.collectors.served.endpoint import Endpoint as Endpoint
    from auditor.collectors.streaming.collecting import collect as collect, collect_to as collect_to
    from auditor.collectors.streaming.ray import RayEngine as RayEngine
    from auditor.collectors.streaming.run import CollectedReport as CollectedReport
    from auditor.collectors.streaming.scorers import (
        LanguageModelFile as LanguageModelFile,
        ModelFile as ModelFile,
    )
    from auditor.collectors.streaming.units import LocalEngine as LocalEngine
    from auditor.collectors.tables.opening import RecordTable as RecordTable
    from auditor.collectors.tables.reading import (
        from_columns as from_columns,
        read_feature_pair as read_feature_pair,
        read_features as read_features,
        read_loss_pair as read_loss_pair,
        read_losses as read_losses,
        read_schedule as read_schedule,
    )
    from auditor.collectors.texts.endpoints import CompletionsEndpoint as CompletionsEndpoint
    from auditor.collectors.texts.models import (
        LongTexts as LongTexts,
        load_language_model as load_language_model,
    )
    from auditor.collectors.texts.scorer import collect_texts as collect_texts, text_scorer as text_scorer
    from auditor.collectors.texts.scores import (
        MeanTokenLoss as MeanTokenLoss,
        MinK as MinK,
        SumTokenLoss as SumTokenLoss,
        ZlibRatio as ZlibRatio,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "base.outputs": "Output",
        "base.tasks": "Classification GaussianLogLoss MultiLabel SquaredError",
        "models.loading": "load_model",
        "served.endpoint": "Endpoint",
        "streaming.collecting": "collect collect_to",
        "streaming.ray": "RayEngine",
        "streaming.run": "CollectedReport",
        "streaming.scorers": "LanguageModelFile ModelFile",
        "streaming.units": "LocalEngine",
        "tables.opening": "RecordTable",
        "tables.reading": "from_columns read_feature_pair read_features read_loss_pair read_losses read_schedule",
        "texts.endpoints": "CompletionsEndpoint",
        "texts.models": "LongTexts load_language_model",
        "texts.scorer": "collect_texts text_scorer",
        "texts.scores": "MeanTokenLoss MinK SumTokenLoss ZlibRatio",
    },
)
