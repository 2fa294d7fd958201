from auditor.collectors.base.outputs import Output, Widened, agreement
from auditor.collectors.base.records import (
    Batch,
    Records,
    column_array,
    matrix,
    sampled,
    sampled_groups,
    spread,
)
from auditor.collectors.base.scorer import ModelScorer, Predictor, in_batches, losses_of
from auditor.collectors.base.tasks import (
    BatchLosses,
    Classification,
    concatenated,
    finite_pair,
    misordered,
    true_class_loss,
)
