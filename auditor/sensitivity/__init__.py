"""How far a sensitive attribute moves the gradients of DP-SGD, measured while it trains (Cherubin et al. 2024, Section 5).

PyTorch and TensorFlow are loaded only when their tracker is built.
"""

from typing import TYPE_CHECKING

from auditor.core.lazy import face

if TYPE_CHECKING:
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

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "pytorch": "TorchSensitivityTracker",
        "tensorflow": "TensorFlowSensitivityTracker",
        "tracker": (
            "Approximate Columns Completions Distance Full Rewritten SensitivityTracker clipped "
            "largest_distance"
        ),
    },
)
