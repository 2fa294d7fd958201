"""How far a sensitive attribute moves the gradients of DP-SGD, measured while it trains (Cherubin et al. 2024, Section 5).

PyTorch and TensorFlow are loaded only when their tracker is built.
"""

from auditor.sensitivity.completions import Columns, Completions, Rewritten
from auditor.sensitivity.distances import Approximate, Distance, Full, clipped, largest_distance
from auditor.sensitivity.pytorch import TorchSensitivityTracker
from auditor.sensitivity.tensorflow import TensorFlowSensitivityTracker
from auditor.sensitivity.tracker import SensitivityTracker

__all__ = [
    "Approximate",
    "Columns",
    "Completions",
    "Distance",
    "Full",
    "Rewritten",
    "SensitivityTracker",
    "TensorFlowSensitivityTracker",
    "TorchSensitivityTracker",
    "clipped",
    "largest_distance",
]
