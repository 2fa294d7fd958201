"""What every collector shares: records, tasks, outputs of models, and the scorer that turns them into losses."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "outputs": "Output Widened agreement",
        "records": "Batch Records bad_value column_array matrix sampled sampled_groups spread",
        "scorer": "BY_CHANCE ModelScorer Predictor losses_of in_batches reader_notes",
        "tasks": "BatchLosses Classification better_order concatenated reordered finite_pair true_class_loss",
    },
)
