"""Canaries: records made to be memorised, each with a fair coin, to audit the training that includes them.

A natural record makes a weak test: a model that leaks may have learned little from it. A canary is planted to be as
visible as possible: a feature of its own, a wrong label, a pattern stamped on it, or a secret in a text (Nasr et al. 2021, 2023; Tramer et al. 2022; Carlini et al. 2019). Each has a coin of its own that decides whether it is in the training
set, so that the losses of all of them, audited with ``split=auditor.BernoulliSplit(0.5)``, say something about the
training algorithm (Steinke, Nasr and Jagielski 2023).

    planted = auditor.canaries.own_feature(features, labels, size=1000)
    planted.write("coins.csv")                                   # keep it: without the coins nothing can be audited
    model = train(*planted.included)                             # beside planted.widened(features), labels
    result = auditor.audit(planted.losses(score(model, planted.features, planted.labels)),
                           split=auditor.BernoulliSplit(0.5))
"""

import math
import os
import reprlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors.tables.opening import open_table
from auditor.collectors.tables.sources import marks
from auditor.core import InputError, Losses, OutputError, PerGroup, table_content, validate, write_all
from auditor.core.values import Array, Booleans, Integers
from auditor.curves.tradeoff import count
from auditor.estimators.certified import clopper_pearson
from auditor.estimators.rates import auc
from auditor.records.features import table_of

if TYPE_CHECKING:
    import pandas as pd


# --- A coin for each canary, and its use ---

_OWN = 0xCA9A21  # begins the random streams of this module, so that no other use of the same seed shares them
_RECORDS, _COINS = 0, 1
_ALL = "each canary that had a coin is scored, in order, those left out of training too, or the audit does not hold"


@dataclass(frozen=True, eq=False)
class Canaries:
    """Canaries, each with an id and a fair coin that is independent of everything else.

    Attributes:
        features: Their features, one row each: an array or a DataFrame of the kind that they were made from, or texts;
            none where the coins were read from a file.
        labels: Their labels, shape (m,), of the type of those they were made from; none for texts.
        id: Shape (m,), ``canary-000001`` and so on.
        member: The coins, shape (m,): whether a canary is to be trained on. Read-only.

    Raises:
        InputError: Parts of different lengths, ids that repeat, or coins other than 0 and 1.

    >>> planted = Canaries.of(np.eye(4), ["a", "b", "a", "b"], seed=1)
    >>> planted
    Canaries(4, 3 of them to be trained on)
    >>> planted.included[1].tolist()
    ['a', 'b', 'b']
    """

    features: Any
    labels: Any
    id: npt.NDArray[np.str_]
    member: Booleans

    def __post_init__(self) -> None:
        ids = validate.column("id", self.id).astype(np.str_)
        coins = marks(validate.column("member", self.member), place="member").copy()
        parts = {"id": ids, "member": coins, "features": self.features, "labels": self.labels}
        sizes = {name: len(part) for name, part in parts.items() if part is not None}
        validate.same_length(list(sizes), list(sizes.values()))
        names, times = np.unique(ids, return_counts=True)
        if names.size < ids.size:
            twice = str(names[np.argmax(times)])
            raise InputError(f"id must be another for every canary, got {twice!r} {times.max()} times.")
        for name, part in (("id", ids), ("member", coins)):
            part.setflags(write=False)
            vars(self)[name] = part

    @classmethod
    def of(cls, features: Any, labels: Any = None, *, seed: int | None = None) -> "Canaries":
        """Return these records as canaries with fresh coins: your own, or those of an earlier model for another one.

        Args:
            features: One row for each, an array or a DataFrame; or texts.
            labels: Their labels; none for texts.
            seed: Seed of the coins. By default from the system's randomness for secrets; who knows
                the seed, or can guess it, knows the coins. No two models share a seed: their coins would be the same.

        Raises:
            InputError: No records, columns of different lengths, or a seed that is no whole number of 0 or more.
        """
        size = table_of("the", features).n
        return cls(_plain_rows(features), _plain_rows(labels), _names(size), _tossed(size, seed))

    def __repr__(self) -> str:
        """Say how many there are, but show no record and no coin."""
        return f"Canaries({len(self):,}, {int(self.member.sum()):,} of them to be trained on)"

    def __len__(self) -> int:
        """Return how many canaries there are, those left out included."""
        return self.member.size

    @property
    def included(self) -> tuple[Any, Any]:
        """Features and labels of the canaries to train on, in addition to the training records."""
        return _rows(self.features, self.member), _rows(self.labels, self.member)

    def widened(self, features: Any) -> Any:
        """Return records with the columns that `own_feature` added to the canaries, all 0.

        Args:
            features: Training records, of the form that the canaries were made from.

        Raises:
            InputError: Records with other columns.
        """
        own = self.features
        if hasattr(own, "columns"):
            wrong = (set(own.columns) ^ set(getattr(features, "columns", ()))) - set(self.id.tolist())
            if wrong:
                raise InputError(
                    f"features must be a DataFrame with the columns of the canaries, got {next(iter(wrong))!r} in one of them only."
                )
            return features.reindex(columns=own.columns, fill_value=0.0)
        records = np.asarray(features)
        shapes = getattr(own, "shape", (0,)), records.shape
        missing = shapes[0][-1] - shapes[1][-1] if len(shapes[0]) == len(shapes[1]) == 2 else -1  # noqa: PLR2004
        if missing not in (0, len(self)):
            raise InputError(
                f"features must be a table of the columns of the canaries, got shape {records.shape}."
            )
        return np.pad(records, ((0, 0), (0, missing)))

    def losses(self, values: npt.ArrayLike) -> Losses:
        """Return the losses of all canaries, members by their coins, for `auditor.audit` with ``BernoulliSplit(0.5)``.

        Args:
            values: Shape (m,), one finite loss for each canary in their order, those left out of training included;
                smaller means more like a member. It is computed alike for both kinds, without looking at the coins.

        Raises:
            InputError: A loss is missing or no finite number, or fewer than two canaries were in, or out.

        >>> Canaries.of(np.eye(6), seed=1).losses([0.1, 0.2, 0.9, 0.3, 0.8, 0.1])
        Losses(4 members, 2 non-members, scale unknown, with id)
        """
        scores = validate.column("values", values)
        if scores.size != len(self) or scores.dtype.kind not in "fiub":
            raise InputError(
                f"values must be {len(self):,} numbers, got {scores.size:,} of type {scores.dtype}; {_ALL}."
            )
        bad = ~np.isfinite(scores)
        if bad.any():
            first = self.id[np.argmax(bad)]
            raise InputError(
                f"values must be finite, got {scores[bad][0]} for {first} ({bad.sum()} such); {_ALL}."
            )
        history = f"losses of {len(self):,} canaries, each in the training set by a fair coin of its own"
        ids = PerGroup(self.id[self.member], self.id[~self.member])
        return Losses(scores[self.member], scores[~self.member], id=ids, history=(history,))

    def table(self, *, label: str = "label") -> "pd.DataFrame":
        """Return one row for each canary: ``id``, the features, the label and ``member``, 1 for those to be trained on.

        Columns of an array are called ``x0``, ``x1`` and so on, that of texts ``text``. `auditor.collect_to` takes the
        table as ``records=auditor.RecordTable(planted.table(), label="label")``.

        Args:
            label: Name of the column of labels.

        Raises:
            InputError: Two columns would have one name.
        """
        import pandas as pd

        result = self.features
        if result is None:
            frame = pd.DataFrame(index=range(len(self)))
        elif hasattr(result, "columns"):
            frame = result.set_axis(map(str, result.columns), axis=1)
        else:
            frame = pd.DataFrame(result.reshape(len(self), -1)).add_prefix("x")
            frame = frame.rename(columns={"x0": "text"}) if result.dtype.kind == "U" else frame
        ends: dict[str, Any] = {} if self.labels is None else {label: self.labels}
        taken = {"id", "member"} & {*frame.columns, *ends} or {label} & {*frame.columns}
        if taken:
            raise InputError(f"features must have no column {min(taken)!r}, which canaries have; rename it.")
        frame = frame.assign(**ends, member=self.member.astype(np.int64))
        frame.insert(0, "id", self.id)
        return frame

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table of coins, ``id`` and ``member``, to a ``.csv`` or ``.parquet`` file, whole or not at all.

        Args:
            path: Output path. Its readers know which canaries are members.
            overwrite: Whether to replace a file that is there: the coins of a model that was trained are not to be had
                again.

        Raises:
            InputError: Another ending.
            OutputError: The file is there already, or cannot be written.
        """
        file = Path(path)
        refuse_replacing(file, overwrite=overwrite)
        write_all({file: self.coins(file)})

    def coins(self, path: Path) -> str | bytes:
        """Return the content that `write` writes to a file of this name."""
        return table_content(replace(self, features=None, labels=None).table(), path)


def _names(size: int) -> npt.NDArray[np.str_]:
    """Return the ids of canaries."""
    return np.array([f"canary-{number:06d}" for number in range(1, size + 1)], dtype=np.str_)


def _tossed(size: int, seed: int | None) -> Booleans:
    """Return fair coins: from the system's randomness for secrets, or from a seed."""
    if seed is not None:
        return _stream(seed, _COINS).integers(2, size=size).astype(np.bool_)
    drawn = np.frombuffer(secrets.token_bytes(-(-size // 8)), dtype=np.uint8)
    return np.unpackbits(drawn, count=size).astype(np.bool_)


def _stream(seed: int | None, use: int) -> np.random.Generator:
    """Return a generator for one use of a seed, independent of the other uses; of fresh randomness without a seed."""
    if seed is None:
        return np.random.default_rng()
    root = validate.at_least("seed", seed, least=0)
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(_OWN, use)))


def _plain_rows(values: Any) -> Any:
    """Return a pandas object with rows numbered from 0, or an array of anything else."""
    if values is None:
        return None
    return values.reset_index(drop=True) if hasattr(values, "iloc") else np.asarray(values)


def _rows(values: Any, which: Array) -> Any:
    """Return some rows of an array or of a pandas object."""
    if values is None:
        return None
    return values.iloc[which] if hasattr(values, "iloc") else values[which]


def refuse_replacing(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there already."""
    if os.path.lexists(path) and not overwrite:
        raise OutputError(
            f"output path {str(path)!r} is there already, and coins cannot be had again; name another, or request that it is"
            " overwritten."
        )


def read_coins(path: str | os.PathLike[str] | Any) -> Canaries:
    """Read a table of coins: ids and membership, without the records.

    Args:
        path: File written by `Canaries.write` or the command ``auditor canaries``; any table that `auditor.read_losses` takes,
            with the columns ``id`` and ``member``.

    Raises:
        InputError: A file that cannot be read, or lacks a column; ids that repeat; marks other than 0 and 1.

    >>> read_coins({"id": ["a", "b"], "member": [0, 1]}).member
    array([False,  True])
    """
    table = open_table(path)
    for name, what in (("id", "ids"), ("member", "coins")):
        table.named(name, what=what)
    columns = table.columns(["id", "member"], text=["id"])
    member = marks(columns["member"], place=f"column 'member' of {table.place}", rows=table.rows)
    return Canaries(None, None, columns["id"], member)


# --- Records with a feature of their own ---

_STRONG, _OF_BYTES = 10.0, 255.0


def own_feature(
    features: Any,
    labels: Any = None,
    *,
    size: int,
    column: str | Sequence[str] | None = None,
    tokens: Sequence[str] | None = None,
    value: float | None = None,
    label: Any = None,
    seed: int | None = None,
) -> Canaries:
    """Return records that are empty but for a feature that no other record has: the kind to try first.

    The weights of this feature are moved by the canary and by noise, and by nothing else, so that one run shows more than
    with any other kind. Every number is 0, and any other column has its most frequent value. The feature is, by the kind
    of records,

    * in a table, a column that is added for each canary: `Canaries.widened` adds them to the training records;
    * in the columns of a table that are named by ``column``, a value such as ``canary-000001``;
    * in texts, one of the ``tokens``, repeated;
    * in images of shape (n, height, width), (n, height, width, channels) or (n, channels, height, width), a block of
      pixels; the blocks of two canaries do not overlap.

    Give features as the training takes them, after scaling and encoding. A scaler or an encoder that is fitted later must
    not see which canaries are in: fit it without canaries, or with all of them.

    Args:
        features: Records like those that are trained on: an array or a DataFrame, shape (n, ...); or texts, shape (n,).
        labels: Their labels, shape (n,); none for texts of a language model.
        size: Number of canaries.
        column: Name of a column of a DataFrame, or several, where a canary has a value of its own.
        tokens: For texts: candidates such as the vocabulary of a tokenizer; the first that no text contains are taken.
        value: Value of the feature; of a token, the number of its repetitions. Default: 10, and 255 in images of bytes.
        label: The class of all canaries; default: the rarest.
        seed: Seed of the coins, for repetition: who knows it knows the coins. Default: fresh randomness.

    Raises:
        InputError: Records of another kind, fewer tokens or pixels than canaries, a column that is not there or holds
            numbers, or a value that the type of the records does not hold.

    Source: the gradients with a single nonzero entry of Nasr et al. 2023, here made by records [own].

    >>> planted = own_feature(np.zeros((3, 2)), [0, 1, 1], size=2, seed=0)
    >>> planted.features.tolist(), planted.labels.tolist()
    ([[0.0, 0.0, 10.0, 0.0], [0.0, 0.0, 0.0, 10.0]], [0, 0])
    >>> planted.widened(np.ones((1, 2))).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """
    most, records = validate.at_least("size", size, least=1), table_of("the", features).n
    frame = hasattr(features, "iloc") and hasattr(features, "columns")
    source = features if frame else np.asarray(features)
    if (
        records == 0
        or source.ndim == 0
        or (source.ndim == 2 and not frame and source.dtype.kind not in "iuf")  # noqa: PLR2004
    ):
        raise InputError(
            "features must be an array of numbers, a pandas DataFrame or texts, with a record at least, got"
            f" {type(features).__name__} of {records:,} records."
        )
    for name, choice, kind, goes in (
        ("column", column, "a DataFrame", frame),
        ("tokens", tokens, "texts", source.ndim == 1),
    ):
        if (choice is not None and not goes) or (name == "tokens" and goes and choice is None):
            raise InputError(f"{name} must be given with {kind} and with nothing else, got {choice!r:.50}.")
    if source.ndim == 1:
        result: Any = _own_tokens(source.tolist(), tokens or (), most, value)
    elif source.ndim > 2:  # noqa: PLR2004
        result = _own_blocks(source, most, value)
    elif frame:
        result = _own_cells(source, column, most, value)
    else:
        own = np.eye(most, dtype=source.dtype) * _held(source.dtype, value)
        result = np.hstack([np.zeros((most, source.shape[1]), source.dtype), own])
    own_labels = None
    if labels is not None:
        validate.same_length(("features", "labels"), (records, len(labels)))
        own_labels = _of_one_class(labels, most, label)
    return Canaries.of(result, own_labels, seed=seed)


def _of_one_class(labels: Any, size: int, label: Any) -> Any:
    """Return labels of the class that is named, or of the rarest."""
    options = labels if hasattr(labels, "iloc") else validate.column("labels", labels)
    codes, classes = _classes(options)
    code = int(np.bincount(codes).argmin()) if label is None else _code(classes, label)
    return _rows(options, np.full(size, np.argmax(codes == code)))


def _held(kind: Any, value: float | None) -> Any:
    """Return the value of a feature, or its default, if the type holds it."""
    wanted = value if value is not None else _OF_BYTES if kind == np.uint8 else _STRONG
    if not validate.number("value", wanted) or not _holds(kind, wanted):
        raise InputError(f"value must be a number other than 0 that the type {kind} holds, got {wanted:g}.")
    return kind.type(wanted)


def _own_cells(source: Any, column: str | Sequence[str] | None, size: int, value: float | None) -> Any:
    """Return rows of a DataFrame with a value of their own in some columns, or with a column of their own."""
    import pandas as pd

    cells = {}
    for name, cell in source.items():
        dtype = cell.dtype
        plain = 0 if getattr(dtype, "kind", "O") in "iufb" else next(iter(cell.mode()), None)
        cells[name] = pd.Series([plain] * size, dtype=dtype)
    if column is None:
        own = pd.DataFrame(np.eye(size) * _held(np.dtype(np.float64), value), columns=_names(size))
        return pd.concat([pd.DataFrame(cells), own], axis=1)
    for name in [column] if isinstance(column, str) else column:
        if name not in cells or getattr(cells[name].dtype, "kind", "O") != "O":
            raise InputError(
                f"column must name columns of features that hold no numbers, {reprlib.repr(list(cells))}, got {name!r}."
            )
        cells[name] = pd.Series(_names(size).tolist())
    return pd.DataFrame(cells)


def _own_tokens(texts: list[Any], tokens: Sequence[str], size: int, value: float | None) -> Any:
    """Return texts of one token each, the first of the tokens that no text contains."""
    if not all(isinstance(item, str) for item in (*texts, *tokens)):
        raise InputError("features and tokens must be texts, got other values among them.")
    times = validate.at_least("value", int(_STRONG) if value is None else value, least=1)
    corpus = "\n".join(texts)
    unused = (token for token in dict.fromkeys(tokens) if token.strip() and token not in corpus)
    own = [" ".join([token] * times) for token in islice(unused, size)]
    if len(own) < size:
        raise InputError(f"tokens must hold {size:,} that no text contains, got {len(own):,}.")
    return np.array(own, dtype=np.str_)


def _own_blocks(source: Array, size: int, value: float | None) -> Array:
    """Return dark images with a bright square each, as large as so many disjoint ones can be."""
    shape = source.shape[1:]
    first, second = sorted(np.argsort(shape, kind="stable")[-2:])  # the other axes are channels
    tall, wide = shape[first], shape[second]
    side = min(tall, wide)
    while side and (tall // side) * (wide // side) < size:
        side -= 1
    if side == 0:
        raise InputError(f"size must be at most {tall * wide:,}, the number of pixels, got {size:,}.")
    result, bright = np.zeros((size, *shape), source.dtype), _held(source.dtype, value)
    for number, image in enumerate(np.moveaxis(result, (1 + first, 1 + second), (1, 2))):
        row, place = divmod(number, wide // side)
        image[row * side : (row + 1) * side, place * side : (place + 1) * side] = bright
    return result


# --- Records for a classifier, made from real ones ---


def mislabelled(features: Any, labels: Any, *, size: int, seed: int | None = None) -> Canaries:
    """Return real records with a wrong label, drawn uniformly from the other classes.

    Give records that are not trained on otherwise: of a record that is, the model learns the right label too.

    Args:
        features: Records to choose from, shape (n, ...): an array or a DataFrame, whose types and names are kept.
        labels: Their labels, shape (n,), of two classes or more.
        size: Number of canaries, at most n: different records, chosen uniformly.
        seed: Seed of records and coins, for repetition: who knows it knows the coins. Default: fresh randomness.

    Raises:
        InputError: No table of records, labels that are missing or of one class, or more canaries than records.

    Source: the mislabelled examples of Nasr et al. 2021 and of Steinke, Nasr and Jagielski 2023.

    >>> planted = mislabelled(np.arange(6.0).reshape(3, 2), ["cat", "dog", "dog"], size=3, seed=0)
    >>> sorted(zip(planted.features[:, 0].tolist(), planted.labels.tolist()))
    [(0.0, 'dog'), (2.0, 'cat'), (4.0, 'cat')]
    """
    return Canaries.of(*_drawn(features, labels, size=size, label=None, seed=seed), seed=seed)


def patterned(
    features: Any,
    labels: Any,
    *,
    size: int,
    pattern: Mapping[Any, Any],
    label: Any = None,
    seed: int | None = None,
) -> Canaries:
    """Return real records with a pattern stamped on them, and a wrong label each.

    In one run the canaries must differ: where all share a pattern *and* a label, the model learns the two from those that
    are in and shows them on those that are out. One such canary (``size=1``) in many runs is the backdoor of Tramer et
    al. 2022.

    Args:
        features: As for `mislabelled`.
        labels: As for `mislabelled`.
        size: As for `mislabelled`.
        pattern: Values that features are set to: names of columns for a DataFrame, positions in a record for an array (as 3, or
            (0, 5) in a picture).
        label: One class for all canaries; by default each gets a wrong one, drawn as for `mislabelled`.
        seed: As for `mislabelled`.

    Raises:
        InputError: As for `mislabelled`; no pattern, a feature that is not there, a value that does not fit its type, or a
            label that is no class.

    >>> planted = patterned(np.zeros((3, 4)), [0, 1, 1], size=1, pattern={0: 9, 3: -9}, label=0, seed=0)
    >>> planted.features.tolist(), planted.labels.tolist()
    ([[9.0, 0.0, 0.0, -9.0]], [0])
    """
    if not isinstance(pattern, Mapping) or not pattern:
        raise InputError(f"pattern must be a mapping of features to values, got {pattern!r}.")
    copies, own_labels = _drawn(features, labels, size=size, label=label, seed=seed)
    for name, value in pattern.items():
        _stamp(copies, name, value)
    return Canaries.of(copies, own_labels, seed=seed)


def _drawn(features: Any, labels: Any, *, size: int, label: Any, seed: int | None) -> tuple[Any, Any]:
    """Return copies of some of the records, and the labels that they take."""
    records = table_of("the", features).n
    frame = hasattr(features, "iloc") and hasattr(features, "columns")
    source = features if frame else np.asarray(features)
    if source.ndim == 0 or (hasattr(features, "columns") and not frame):
        raise InputError(f"features must be an array or a pandas DataFrame, got {type(features).__name__}.")
    options = labels if hasattr(labels, "iloc") else validate.column("labels", labels)
    validate.same_length(("features", "labels"), (records, len(options)))
    most = validate.at_least("size", size, least=1)
    if most > records:
        raise InputError(f"size must be at most {records:,}, the number of records, got {most:,}.")
    rng = _stream(seed, _RECORDS)
    rows = rng.choice(records, most, replace=False)
    return _rows(source, rows), _rows(options, _labels(options, rows, label=label, rng=rng))


def _labels(labels: Any, rows: Integers, *, label: Any, rng: np.random.Generator) -> Integers:
    """Return rows whose labels the canaries take: those of one class, or of another class than their own, drawn uniformly."""
    codes, classes = _classes(labels)
    first = np.unique(codes, return_index=True)[1]
    if label is not None:
        return np.full(rows.size, first[_code(classes, label)])
    if len(classes) == 1:
        raise InputError("labels must be of two classes or more, got 1, so that one can be wrong.")
    return np.asarray(first[(codes[rows] + rng.integers(1, len(classes), size=rows.size)) % len(classes)])


def _classes(labels: Any) -> tuple[Integers, Any]:
    """Return the number of the class of each record, and the classes."""
    import pandas as pd

    codes, classes = pd.factorize(labels)
    missing = codes < 0
    if missing.any():
        where = f"{missing.sum()} missing (first at row {np.argmax(missing)}, counting from 0)"
        raise InputError(f"labels must be there for every record, got {where}; leave those records out.")
    return codes, classes


def _code(classes: Any, label: Any) -> int:
    """Return the number of a class."""
    same = [code for code, name in enumerate(classes) if name == label]
    if not same:
        raise InputError(f"label must be one of the {len(classes):,} classes of labels, got {label!r}.")
    return same[0]


def _stamp(copies: Any, name: Any, value: Any) -> None:
    """Set one feature of every copy to a value that its type holds."""
    frame, shape = hasattr(copies, "iloc"), copies.shape[1:]
    position = name if isinstance(name, tuple) else (name,)
    try:
        place = list(copies.columns).index(name) if frame else int(np.ravel_multi_index(position, shape))
    except (TypeError, ValueError):
        options = reprlib.repr(list(copies.columns)) if frame else f"positions in records of shape {shape}"
        raise InputError(f"pattern must name features, {options}, got {name!r}.") from None
    kind = copies.iloc[:, place].dtype if frame else copies.dtype
    if not _holds(kind, value):
        raise InputError(f"pattern must give {name!r} a value that its type, {kind}, holds, got {value!r}.")
    if frame:
        copies.isetitem(place, copies.iloc[:, place].map(lambda _: value).astype(kind))
    else:
        copies[(slice(None), *position)] = value


def _holds(kind: Any, value: Any) -> bool:
    """Return whether a value has a type; floats may be rounded, but not to infinity."""
    import pandas as pd

    if value not in getattr(kind, "categories", (value,)):
        return False
    try:
        with np.errstate(over="ignore"):
            cell = pd.Series([value]).astype(kind)[0]
        if getattr(kind, "kind", "O") == "f":
            return math.isclose(cell, float(value), rel_tol=_ROUNDED)
        return bool(cell == value)
    except (TypeError, ValueError, OverflowError):
        return False


_ROUNDED = 1e-3  # half floats have eleven bits


# --- Marked texts for language models ---

_DIGITS = "0123456789"
_LARGEST = 2**62  # secrets of a template, so that each has a number of 64 bits


@dataclass(frozen=True)
class Template:
    """A text with a secret: every ``#`` stands for a sign of the alphabet, drawn uniformly.

    Attributes:
        text: With at least one ``#``.
        alphabet: Two different signs or more.

    Raises:
        InputError: No text, no ``#``, an alphabet of fewer signs or with one twice, or more than 2^62 secrets.

    Source: Carlini et al. 2019, Section 4.1, whose format the default is.

    >>> Template("The code is ##.").space
    100
    """

    text: str = "The random number is #########."
    alphabet: str = _DIGITS

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or "#" not in self.text:
            raise InputError(f"template must be a text with a # for each sign, got {self.text!r}.")
        signs = self.alphabet
        if not isinstance(signs, str) or len(set(signs)) < 2 or len(set(signs)) < len(signs):  # noqa: PLR2004
            raise InputError(f"alphabet must be two different signs or more, got {signs!r}.")
        if self.space > _LARGEST:
            raise InputError(f"template must have at most 2^62 secrets, got {self.space:.3g}; write fewer #.")

    @property
    def space(self) -> int:
        """Number of secrets, all equally likely."""
        return int(len(self.alphabet) ** self.text.count("#"))

    def texts(self, size: int, *, rng: np.random.Generator) -> npt.NDArray[np.str_]:
        """Return so many different texts of this template, drawn uniformly.

        Raises:
            InputError: More than there are.

        >>> sorted(Template("a#c", alphabet="xy").texts(2, rng=np.random.default_rng(0)).tolist())
        ['axc', 'ayc']
        """
        if size > self.space:
            raise InputError(f"size must be at most {self.space:,}, the number of secrets, got {size}.")
        numbers = rng.choice(self.space, size, replace=False)
        return np.array([self._filled(number) for number in numbers.tolist()], dtype=np.str_)

    def _filled(self, number: int) -> str:
        """Return the text with the secret of this number, whose last sign moves first."""
        filled, *parts = reversed(self.text.split("#"))
        for part in parts:
            number, sign = divmod(number, len(self.alphabet))
            filled = f"{part}{self.alphabet[sign]}{filled}"
        return filled


def marked_texts(template: Template | str = Template(), *, size: int, seed: int | None = None) -> Canaries:
    """Return texts with a secret each, to be put among the texts that a language model is trained on.

    Args:
        template: The text around the secret, with a ``#`` for each digit of it; or a `Template` with another alphabet.
        size: Number of canaries: different secrets, drawn uniformly.
        seed: As for `mislabelled`.

    Raises:
        InputError: No template, or more canaries than it has secrets.

    >>> planted = marked_texts("Call ###-####.", size=2, seed=0)
    >>> len(set(planted.features.tolist())), planted.features[0][:5]
    (2, 'Call ')
    """
    chosen = Template(template) if isinstance(template, str) else template
    validate.instance("template", chosen, (Template,))
    texts = chosen.texts(validate.at_least("size", size, least=1), rng=_stream(seed, _RECORDS))
    return Canaries.of(texts, seed=seed)


# --- Choice of a canary: on runs that are not judged ---

_SPENT = (
    "the seed of these runs is spent: collect the runs that are judged with another seed, and quote no bound from here,"
    " since the largest of several is too large"
)


class TriedCanary(NamedTuple):
    """Outcome of the runs with and without one canary.

    Attributes:
        name: Name of the canary.
        epsilon: The certified lower bound of its runs alone.
        auc: AUC of its scores, 1 where every run with the canary has a lower one than every run without.
    """

    name: str
    epsilon: float
    auc: float


@dataclass(frozen=True)
class ChosenCanary:
    """The best-detected of the canaries that were tried.

    Attributes:
        name: Name of the canary.
        tried: All of them, the best detected first.
        runs: Number of runs of each, with the canary and without.
        note: Restriction on further use of these runs.
    """

    name: str
    tried: tuple[TriedCanary, ...]
    runs: tuple[int, int]
    note: str = _SPENT


def choose_canary(
    candidates: Mapping[str, Losses], *, delta: float, confidence: float = 0.95
) -> ChosenCanary:
    """Return the canary whose runs give the largest certified bound on epsilon; of equal ones that with the larger AUC.

    A few runs of each of many candidates, before the many runs of the one that judge: Tramer et al. 2022 tried about 25
    on 2,000 runs. **The seed of these runs is spent**: the runs that judge (`auditor.collect_runs`) need another one, for
    the chosen canary is the one that was lucky on these.

    Args:
        candidates: For each name the scores of its runs, as `auditor.collect_runs` returns them: as many with and as many
            without for every one. Put `own_feature` first: of equal ones the first is chosen.
        delta: Delta of the bound, in [0, 1): the one of the audit to come.
        confidence: Confidence level of the bound, in (0, 1).

    Raises:
        InputError: No candidates, something else than `auditor.Losses`, or different numbers of runs.

    >>> own, wrong = Losses(member=[1, 2], nonmember=[3, 4]), Losses(member=[1, 3], nonmember=[2, 4])
    >>> choose_canary({"own feature": own, "wrong label": wrong}, delta=1e-5).name
    'own feature'
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise InputError(f"candidates must be a mapping of names to the scores of runs, got {candidates!r}.")
    delta, confidence = validate.fraction("delta", delta, zero=True), validate.confidence(confidence)
    for name, losses in candidates.items():
        validate.instance(f"candidate {name!r}", losses, (Losses,))
    sizes = {name: (losses.n_member, losses.n_nonmember) for name, losses in candidates.items()}
    if len({*sizes.values()}) > 1:
        raise InputError(
            f"candidates must have equally many runs (with, without), got {reprlib.repr(sizes)}."
        )
    tried = [
        TriedCanary(
            name,
            clopper_pearson(losses, delta=delta, confidence=confidence).value or 0.0,
            auc(count(losses)).value or 0.0,
        )
        for name, losses in candidates.items()
    ]
    tried.sort(key=lambda row: (-row.epsilon, -row.auc))  # stable: of equal ones the first that was given
    return ChosenCanary(tried[0].name, tuple(tried), sizes[tried[0].name])
