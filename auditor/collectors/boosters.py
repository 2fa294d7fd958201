"""Boosters of XGBoost and LightGBM, as their own model files hold them: raw margins as logits where that is true."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors import matrices
from auditor.collectors.agreement import agreement
from auditor.collectors.extras import is_a
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records
from auditor.collectors.samples import spread
from auditor.collectors.tasks import Classification, Task
from auditor.errors import AuditorError, InputError

__all__ = ["accepts", "predictor"]

_LABELS_ONLY = (
    "multi:softmax"  # XGBoost's objective that returns the label; its margins are those of softprob
)


class _Booster(Protocol):
    name: str

    @property
    def width(self) -> int: ...
    @property
    def identity(self) -> str: ...
    @property
    def objective(self) -> str: ...
    def ask(self, features: Any, *, margin: bool) -> Any: ...


def accepts(model: Any) -> bool:
    """Return whether this is a booster of XGBoost or LightGBM (not their scikit-learn estimators)."""
    return is_a(model, "xgboost", "Booster") or is_a(model, "lightgbm", "Booster")


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a booster as the collectors see it."""
    booster: _Booster = _XGBoost(model) if is_a(model, "xgboost", "Booster") else _LightGBM(model)
    plain, margin = _asking(booster, margin=False), _asking(booster, margin=True)
    if not task.has_output:
        return Predictor(predict=plain, source=f"predictions of {booster.name}", identity=booster.identity)
    if not isinstance(task, Classification):
        raise InputError(f"task {type(task).__name__} is not supported for {booster.name}.")
    if output is None:
        answers = [_same(plain, margin, part, booster) for part in spread(sample)]
        output = Output.LOGITS if True in answers and False not in answers else Output.PROBABILITIES
    found, word = (margin, "raw margin") if output is Output.LOGITS else (plain, "predictions")
    return Predictor(
        predict=found, source=f"{word} of {booster.name}", output=output, identity=booster.identity
    )


def _same(plain: Any, margin: Any, part: Records, booster: _Booster) -> bool | None:
    """Return whether the margins are the logits of the predictions."""
    if booster.objective == _LABELS_ONLY:
        return True
    logits = shaped(margin(part), n=len(part), place=part.name)
    return agreement(logits, probabilities=shaped(plain(part), n=len(part), place=part.name))


def _asking(booster: _Booster, *, margin: bool) -> Callable[[Records], npt.NDArray[Any]]:
    def predict(records: Records) -> npt.NDArray[Any]:
        matrices.refuse_width(records.features, wanted=booster.width, model=booster.name, place=records.name)
        try:
            return np.asarray(booster.ask(records.features, margin=margin))
        except AuditorError:
            raise
        except Exception as error:
            reason = _validate.one_line(error) or type(error).__name__
            raise InputError(
                f"{records.name} X must suit the model, but {booster.name} refused it: {reason}."
            ) from error

    return predict


class _XGBoost:
    name = "an XGBoost booster"

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def width(self) -> int:
        return int(self._model.num_features())

    @property
    def identity(self) -> str:
        return hashlib.sha256(bytes(self._model.save_raw("ubj"))).hexdigest()

    @property
    def objective(self) -> str:
        return str(json.loads(self._model.save_config())["learner"]["objective"]["name"])

    def ask(self, features: Any, *, margin: bool) -> Any:
        import xgboost

        table = hasattr(features, "columns")
        data = xgboost.DMatrix(
            features if table or hasattr(features, "shape") else np.asarray(features), enable_categorical=True
        )
        named = table and self._model.feature_names is not None
        return self._model.predict(data, output_margin=margin, validate_features=named)


class _LightGBM:
    name = "a LightGBM booster"
    objective = ""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def width(self) -> int:
        return int(self._model.num_feature())

    @property
    def identity(self) -> str:
        return hashlib.sha256(self._model.model_to_string().encode()).hexdigest()

    def ask(self, features: Any, *, margin: bool) -> Any:
        data = features if hasattr(features, "shape") else np.asarray(features)
        return self._model.predict(data, raw_score=margin)
