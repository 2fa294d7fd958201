"""Answers that are predicted labels: named as such, or taken as certain probabilities where the caller accepts that."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.served.answers import UnusableError
from auditor.collectors.served.messages import short

__all__ = ["as_probabilities"]


def as_probabilities(
    outputs: npt.NDArray[Any], *, labels: Sequence[Any] | None, probabilities: bool, fix: str
) -> npt.NDArray[Any]:
    """Return probabilities as they are, and labels as rows of 0 and a single 1.

    Labels are text, or one whole number for each record that is no probability. A column of 0 and 1 alone could be
    either; it stays as it is, for both mean the same loss.

    Args:
        outputs: What the server answered, one row for each record.
        labels: The classes, where the caller accepts labels.
        probabilities: Whether the outputs are said to be probabilities; otherwise whole numbers may be logits.
        fix: What makes the server return probabilities.

    Raises:
        UnusableError: Labels that the caller did not accept, or that are none of those accepted.

    >>> as_probabilities(np.array(["b", "a"]), labels=("a", "b"), probabilities=True, fix="")
    array([[0., 1.],
           [1., 0.]])
    >>> as_probabilities(np.array([0.25, 1.0]), labels=None, probabilities=True, fix="")
    array([0.25, 1.  ])
    """
    text = outputs.dtype.kind in "US"
    whole = not text and outputs.ndim == 1 and probabilities and bool(np.all(outputs == np.round(outputs)))
    beyond = whole and bool(np.any((outputs != 0) & (outputs != 1)))
    if not (text or beyond or (whole and labels is not None)):
        return outputs
    answered = outputs.tolist()
    if labels is None:
        shown = ", ".join(repr(_shown(label)) for label in list(dict.fromkeys(answered))[:3])
        raise UnusableError(
            f"answered with predicted labels ({shown}) instead of probabilities",
            fix=f"{fix}, or accept a weaker 0/1-loss audit by listing the classes with labels=",
        )
    place = {label: position for position, label in enumerate(labels)}
    unknown = next((label for label in answered if label not in place), None)
    if unknown is not None:
        raise UnusableError(
            f"answered with the label {_shown(unknown)!r}, which is not in labels=",
            fix="list all classes there",
        )
    found = np.zeros((len(answered), len(labels)))
    found[np.arange(len(answered)), [place[label] for label in answered]] = 1
    return found


def _shown(label: Any) -> Any:
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return short(label, longest=60) if isinstance(label, str) else label
