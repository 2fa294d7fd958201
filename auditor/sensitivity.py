"""The sensitivity trackers of `auditor.training`, under their own name."""

from auditor.training.tensorflow_tracker import TensorFlowSensitivityTracker
from auditor.training.torch_tracker import TorchSensitivityTracker
from auditor.training.tracker import (
    Approximate,
    Columns,
    Distance,
    Full,
    SensitivityTracker,
    clipped,
    largest_distance,
)

__all__ = [
    "Approximate",
    "Columns",
    "Distance",
    "Full",
    "SensitivityTracker",
    "TensorFlowSensitivityTracker",
    "TorchSensitivityTracker",
    "clipped",
    "largest_distance",
]
