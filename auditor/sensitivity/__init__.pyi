from auditor.sensitivity.pytorch import TorchSensitivityTracker as TorchSensitivityTracker
from auditor.sensitivity.tensorflow import TensorFlowSensitivityTracker as TensorFlowSensitivityTracker
from auditor.sensitivity.tracker import (
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
