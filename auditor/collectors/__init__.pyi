from auditor.collectors.base.outputs import Output as Output
from auditor.collectors.base.tasks import (
    Classification as Classification,
    Confidence as Confidence,
    GaussianLogLoss as GaussianLogLoss,
    MultiLabel as MultiLabel,
    SquaredError as SquaredError,
)
from auditor.collectors.models.loading import load_model as load_model
from auditor.collectors.served.endpoint import Endpoint as Endpoint
from auditor.collectors.streaming.collecting import (
    collect as collect,
    collect_texts as collect_texts,
    collect_to as collect_to,
    losses_from_probabilities as losses_from_probabilities,
)
from auditor.collectors.streaming.engines import LocalEngine as LocalEngine, RayEngine as RayEngine
from auditor.collectors.streaming.resume import CollectedReport as CollectedReport
from auditor.collectors.streaming.scorers import (
    LanguageModelFile as LanguageModelFile,
    ModelFile as ModelFile,
    OutputColumns as OutputColumns,
)
from auditor.collectors.streaming.summaries import Summary as Summary
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
from auditor.collectors.texts.models import LongTexts as LongTexts, load_language_model as load_language_model
from auditor.collectors.texts.scorer import text_scorer as text_scorer
from auditor.collectors.texts.scores import (
    MeanTokenLoss as MeanTokenLoss,
    MinK as MinK,
    SumTokenLoss as SumTokenLoss,
    ZlibRatio as ZlibRatio,
)
from auditor.collectors.texts.secrets import Secret as Secret
