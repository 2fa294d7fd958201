"""Outputs with names, as of a DataFrame, of a table or of a server's answers, ordered by class."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.collectors.base.outputs import Output, Widened
from auditor.collectors.base.records import Records, is_frame, listed, places, spelled
from auditor.core import Array, Booleans, InputError

_NAMED = "outputs must name every class, or be probabilities of some of classes="
_NAME_ALL = "name every class in each answer, or all in classes= (--classes)"


@dataclass(frozen=True, eq=False)
class NamedOutputs:
    """Outputs with a name for each column.

    Attributes:
        names: Shape (K,), of a frame or of the keys in a server's answers.
        values: Shape (n, K).
        absent: Shape (n, K), which of them an answer does not name; None for a frame.
        one_order: Whether all answers name them in this order.
    """

    names: Sequence[Any]
    values: Array
    absent: Booleans | None = None
    one_order: bool = True


def joined(parts: Sequence[Array]) -> Array:
    """Return the outputs of several batches as one."""
    facts = {name: getattr(parts[0], name, default) for name, default in (("of", ""), ("classes", ()))}
    return Widened(np.concatenate(parts), **facts)


def column_names(outputs: Any) -> list[Any] | None:
    """Return the names of the columns of a frame (pandas, polars or pyarrow); None if they are only counted.

    >>> import pandas as pd
    >>> column_names(pd.DataFrame([[0.2, 0.8]], columns=["b", "a"])), column_names(pd.DataFrame([[0.2, 0.8]]))
    (['b', 'a'], None)
    """
    names = getattr(outputs, "column_names", None) or (list(outputs.columns) if is_frame(outputs) else [])
    counted = names and names == [*range(len(names))] and type(outputs.columns).__name__ == "RangeIndex"
    return names if len({*names}) == len(names) > 1 and not counted else None


def in_order(outputs: Any, *, records: Records, classes: Sequence[Any] | None, output: Output | None) -> Any:
    """Return named outputs in the order of the classes, and others as they are.

    The rest to 1 is spread evenly over the classes that an answer does not name, as under the policy ``topK``. Without
    classes the names are the classes where the labels are among them. Where none of a frame's names is a class,
    its columns stay as they are.

    Raises:
        InputError: A name that is no class, or an answer without a class of which nothing can be known.

    >>> own = NamedOutputs(["b", "a"], np.array([[0.2, 0.8]]))
    >>> in_order(own, records=Records("member", [], np.array(["a"])), classes=["a", "b"], output=None).tolist()
    [[0.8, 0.2]]
    """
    if not isinstance(outputs, NamedOutputs):
        own = column_names(outputs)
        if own is None:
            return outputs
        outputs = NamedOutputs(own, np.asarray(outputs))
    names, values, frame = outputs.names, outputs.values, outputs.absent is None
    one_label, options = records.labels.ndim == 1, () if classes is None else list(classes)
    if classes is None and one_label and -1 not in places([*dict.fromkeys(records.labels.tolist())], names):
        options = sorted(names, key=str)
    columns = np.array(places(names, options))
    if columns.max() < 0 and (frame or len(names) == 1 or (outputs.one_order and not one_label)):
        return values
    absent = np.zeros(values.shape, dtype=np.bool_) if outputs.absent is None else outputs.absent
    if columns.min() < 0:
        place = int(np.argmax(columns < 0))
        of = f"the classes {listed(options)}" if options else "the labels, or after classes="
        row = records.row(int(np.argmin(absent[:, place])))
        raise InputError(
            f"{records.name} outputs must be named after {of}, got {names[place]!r} (first at {row}); write labels and"
            " classes= (--classes) as the model names its classes, or name the output of probabilities."
        )
    table = np.zeros((len(values), len(options)), dtype=values.dtype)
    gone = np.ones(table.shape[:2], dtype=np.bool_)
    table[:, columns], gone[:, columns] = np.where(absent, 0, values), absent
    sizes = len(options) - gone.sum(axis=1)
    spread = classes is not None and one_label and output is Output.PROBABILITIES and not frame
    bad = gone.any(axis=1) & ((sizes == 0) | (not spread))
    records.refuse(bad, _NAMED, got=sizes, fix=_NAME_ALL)
    if gone.any():
        left = np.maximum(1 - table.sum(axis=1, dtype=np.float64), 0) / np.maximum(gone.sum(axis=1), 1)
        table += gone * left[:, None]
    return Widened(table, classes=options, shortest=int(sizes.min()) % len(options))


# --- Columns of a table that hold outputs: each is named by its class, behind a prefix that all of them share ---

_ELSE = "name the columns of outputs with features (--features), or all classes with classes= (--classes)"


def class_columns(
    names: Sequence[str], classes: Sequence[Any], *, place: str, others: bool, optional: bool = False
) -> dict[str, str]:
    """Return the class of each column of outputs, as its name spells it behind the common prefix; by the name of the column.

    Args:
        names: Columns of numbers.
        classes: Classes, each of which must have a column; text is compared as text, other labels as `spelled`.
        place: The table in error sentences.
        others: Whether columns with the same prefix are of further classes.
        optional: Whether names that match no class are accepted, of which none is returned.

    Raises:
        InputError: A class without a column, several prefixes that all classes have, or columns that match no class.

    >>> class_columns(["age", ".pred_no", ".pred_yes"], ["yes"], place="table", others=True)
    {'.pred_no': 'no', '.pred_yes': 'yes'}
    >>> class_columns(["p.1", "p.0", "p.2"], [0, 1], place="table", others=False)
    {'p.1': '1', 'p.0': '0'}
    """
    text = all(isinstance(item, str) for item in classes)
    labels: dict[Any, Any] = dict(zip(classes if text else spelled(classes), classes, strict=True))

    def label(rest: str) -> Any:
        return rest if text else spelled([rest])[0]

    prefixes = defaultdict[str, dict[str, str]](dict)
    for name in names:
        for cut in range(len(name)):
            if label(name[cut:]) in labels:
                prefixes[name[:cut]][name] = name[cut:]
    # Of prefixes for the same columns the longest: 'p0' and not 'p' for 'p01' and 'p02'.
    whole = {
        tuple(columns): prefix
        for prefix, columns in sorted(prefixes.items(), key=lambda item: len(item[0]))
        if len(columns) == len({*map(label, columns.values())}) == len(labels)
    }
    if optional and not whole:
        return {}
    if not whole:
        most = max(prefixes.values(), key=len, default={})
        missing = [labels[item] for item in labels if item not in {*map(label, most.values())}]
        got = f"none for {listed(missing)}" if missing else "several for one class"
        raise InputError(
            f"{place} must have a column of outputs for each class, named by the class, or by a prefix and the class, got {got}"
            f" among {listed(names) or 'no columns of numbers'}; {_ELSE}, or give the model if these"
            " are features."
        )
    if len(whole) > 1:
        raise InputError(
            f"{place} must have one column of outputs for each class, got several: {listed([name for own in whole for name in own])};"
            " name the columns of outputs with features (--features)."
        )
    [(own, prefix)] = whole.items()
    more = [name for name in names if name.startswith(prefix) and name not in own] if others else []
    if more and not prefix:
        raise InputError(f"{place} must have no columns that match no class, got {listed(more)}; {_ELSE}.")
    alike = [name for name in more if isinstance(label(name[len(prefix) :]), str) == text]
    return {name: name[len(prefix) :] for name in names if name in own or name in alike}
