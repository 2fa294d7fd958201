"""Model files of XGBoost and LightGBM, which are data."""

from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading.damage import readable
from auditor.collectors.loading.trust import Trust

__all__ = ["read_lightgbm", "read_xgboost"]


def read_xgboost(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return the booster in a file that XGBoost's ``save_model`` wrote."""
    xgboost = needed("xgboost", purpose="loading an XGBoost model", extra=" xgboost")
    with readable(path, kind="a model saved by XGBoost"):
        return xgboost.Booster(model_file=str(path))


def read_lightgbm(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return the booster in a file that LightGBM's ``save_model`` wrote."""
    lightgbm = needed("lightgbm", purpose="loading a LightGBM model", extra=" lightgbm")
    with readable(path, kind="a model saved by LightGBM"):
        return lightgbm.Booster(model_str=path.read_text(encoding="utf-8"))
