"""The sensitivity trackers of `auditor.training`, under their own name."""

from auditor.training.tensorflow_tracker import TensorFlowSensitivityTracker as TensorFlowSensitivityTracker
from auditor.training.torch_tracker import TorchSensitivityTracker as TorchSensitivityTracker
from auditor.training.tracker import (
    Approximate as Approximate,
    Columns as Columns,
    Completions as Completions,
    Distance as Distance,
    Full as Full,
    Rewritten as Rewritten,
    SensitivityTracker as SensitivityTracker,
    clipped as clipped,
    largest_distance as largest_distance,
)
