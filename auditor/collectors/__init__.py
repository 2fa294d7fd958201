"""Family: anything becomes `Losses` (columns, files, fitted models, callables).

Importing it loads numpy only; pandas, pyarrow and scikit-learn are imported in the functions that need them.
"""

from auditor.collectors.arrays import from_columns
from auditor.collectors.features import read_feature_pair, read_features
from auditor.collectors.files import read_loss_pair, read_losses
from auditor.collectors.from_model import collect
from auditor.collectors.outputs import Output
from auditor.collectors.schedule import read_schedule
from auditor.collectors.tasks import Classification, GaussianLogLoss, MultiLabel, SquaredError

__all__ = [
    "Classification",
    "GaussianLogLoss",
    "MultiLabel",
    "Output",
    "SquaredError",
    "collect",
    "from_columns",
    "read_feature_pair",
    "read_features",
    "read_loss_pair",
    "read_losses",
    "read_schedule",
]
