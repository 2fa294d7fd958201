"""Records in batches, read in one pass: loaders and data sets of PyTorch, Lightning, TensorFlow and Hugging Face, and iterators.

The first batches of each group serve for the trial, and are scored like the others. Memory holds one batch, and of all records
the losses, labels, ids and fingerprints. So a loader may shuffle, and an iterator that cannot start again is enough.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from auditor.collectors.base.records import Batch, Records, count_records, joined_records, labels_beside
from auditor.collectors.base.scorer import Scorer, file_warnings, losses_of, score_batches
from auditor.collectors.base.tasks import BatchLosses, Classifier, Task, concatenated, records_of
from auditor.collectors.streaming.scorers import ScoringOptions, opened_model
from auditor.collectors.streaming.trial import Preflight, preflight
from auditor.collectors.tables.arrays import is_map_style
from auditor.collectors.tables.opening import RecordTable, open_source
from auditor.collectors.tables.sources import refuse_same
from auditor.collectors.texts.scorer import TextScorer
from auditor.collectors.texts.scores import cells, is_passage
from auditor.core import InputError, Losses, PerGroup, about, explained, is_a, validate, with_kind

# --- Kinds of loaders, recognised without importing their libraries ---


_MODULES = (("lightning", "LightningDataModule"), ("pytorch_lightning", "LightningDataModule"))
_KINDS = (
    ("torch", "DataLoader"),
    ("torch", "Dataset"),
    ("tensorflow", "DatasetV2"),
    ("datasets", "IterableDataset"),
    *_MODULES,
)


def _data_of(group: Any) -> Any:
    return group.data if isinstance(group, RecordTable) else group


def is_loader(group: Any) -> bool:
    """Return whether the records of a group, or of its table, come in batches and in one pass."""
    data = _data_of(group)
    # What a transform of Hugging Face gives is in no column.
    transformed = is_a(data, "datasets", "Dataset") and data.format["type"] == "custom"
    return transformed or isinstance(data, Iterator) or any(is_a(data, *kind) for kind in _KINDS)


def refuse_loaders(*, data_sets: bool = False, **groups: Any) -> None:
    """Refuse records that come in batches where they are read by number, and random ones of map-style ``data_sets``."""
    for argument, group in groups.items():
        data = _data_of(group)
        if is_loader(group) and not (data_sets and is_map_style(data)):
            raise InputError(
                f"{argument} must be a table, whose records are read by number, got {type(data).__name__}; give it to"
                " auditor.collect as members= or nonmembers=, which reads it once."
            )
        if is_loader(group) and (random := _random(argument.removesuffix("s"), data)):
            raise InputError(random)


def _is_module(group: Any) -> bool:
    return any(is_a(_data_of(group), *kind) for kind in _MODULES)


def _loader(argument: str, data: Any, hooks: Sequence[str]) -> Any:
    """Return the loader of a Lightning data module, from the first of these methods that it has; any other data as they are."""
    if not _is_module(data):
        return data
    name = type(data).__name__
    # A module that lacks a method inherits one that raises.
    own = [hook for hook in hooks if not getattr(data, hook).__qualname__.startswith("DataHooks.")]
    if not own:
        raise InputError(f"{argument} must come from a {' or '.join(hooks)}, but {name} has none; write it.")
    failed = f"{argument} must come from a data module that is set up, but {own[0]} of {name} failed"
    with explained(failed, reason=with_kind):
        loader = getattr(data, own[0])()
    if not is_loader(loader):
        kind = type(loader).__name__
        raise InputError(
            f"{argument} must come from one loader, got {kind} from {own[0]}; pass the one to read."
        )
    return loader


# --- The batches of a loader ---


_AT_ONCE = 256  # records of a data set that has no batches of its own
_END = object()  # for a loader may give None, as a function that leaves out broken records does


def _opened(data: Any, size: int, *, texts: bool) -> Iterator[Any]:
    """Yield the batches of a loader as it gives them; single texts in lists."""
    if is_a(data, "datasets", "IterableDataset") or is_a(data, "datasets", "Dataset"):
        yield from data.iter(batch_size=size)
    elif is_a(data, "torch", "Dataset"):
        import torch

        own = torch.Generator()  # the caller's random numbers stay as they are
        collate = list if texts else None
        yield from torch.utils.data.DataLoader(data, size, generator=own, collate_fn=collate)
    elif is_a(data, "tensorflow", "DatasetV2"):
        spec = data.element_spec
        parts = spec.values() if isinstance(spec, Mapping) else spec if isinstance(spec, tuple) else (spec,)
        shapes = [part.shape for part in parts if hasattr(part, "shape")]
        batched = all(shape.rank != 0 for shape in shapes) and len({shape[0] for shape in shapes}) == 1
        if batched and not (isinstance(spec, Mapping) and len(shapes) > 1):
            # Vectors of one known length are single records, not batches of numbers.
            batched = shapes[0][0] is None or any(shape.rank != 1 for shape in shapes)
        yield from (data if batched else data.batch(size)).as_numpy_iterator()
    elif texts:
        for single, run in groupby(data, key=is_passage):
            items = iter(run)
            while single and (some := list(islice(items, size))):
                yield some
            yield from items
    else:
        yield from data


def _items(argument: str, data: Any, size: int, *, texts: bool) -> Iterator[Any]:
    """Yield the batches of a loader; any exception in it becomes one sentence."""
    items = _opened(data, size, texts=texts)
    failed = f"{argument} must come in batches, but {type(data).__name__} failed"
    while True:
        with explained(failed, reason=with_kind):
            item = next(items, _END)
        if item is _END:
            return
        yield item


def _labelled(name: str, pair: Any, task: Task | None, *, least: int = 2) -> Batch:
    """Return the records of a pair (x, y) as a batch, with their classes as a column; or texts."""
    if task is None:
        records = Records(name, pair, np.zeros(count_records(name, pair)))
    else:
        records = records_of(name, f"{name}s", pair, task, least=least)
    columns = {"label": records.labels} if isinstance(task, Classifier) and pair[1] is not None else {}
    return Batch(records, np.full(len(records), records.name == "member"), columns)


def _copied(item: Any) -> Any:
    """Return a batch with arrays of its own: a loader may write the next one into the same, before the model is done."""
    if isinstance(item, np.ndarray):
        return item.copy()
    if isinstance(item, Mapping):
        return {key: _copied(part) for key, part in item.items()}
    pair = type(item) in (tuple, list) and len(item) <= 2  # noqa: PLR2004 - not a list of records
    return type(item)(map(_copied, item)) if pair else item


def _batch(name: str, item: Any, group: Any, task: Task | None) -> Batch:
    """Return a batch that a loader gave: a pair (x, y), x alone, or a dictionary or a table with the labels; or texts."""
    several = isinstance(item, tuple | list)
    first = next(iter(item), None) if several else item
    named = isinstance(item, Mapping) or hasattr(item, "__arrow_c_stream__")
    if task is None and isinstance(first, Mapping):
        import pandas as pd

        with explained(f"{name}s must hold one value for each text by name", reason=with_kind):
            item, named = pd.DataFrame(item), True  # whose cells may be chats
    if named:
        table = replace(group, data=item) if isinstance(group, RecordTable) else RecordTable(item)
        source = open_source(table, task=task, member=name == "member", name=f"a {name} batch")
        batch = source.read(0, len(source))
        return replace(batch, records=replace(batch.records, name=name))
    if task is None and isinstance(first, tuple) and is_a(_data_of(group), "torch", "DataLoader"):
        raise InputError(
            f"{name}s must come in batches of texts, got tuples, in which prompts and completions may be rows or columns; give"
            " dictionaries with these keys."
        )
    if task is None:
        return _labelled(name, item, task)
    own = item if several else (item,)
    if len(own) == 1 and not task.needs_labels:
        return _labelled(name, (own[0], None), task, least=0)
    if len(own) != 2:  # noqa: PLR2004
        got = type(item).__name__ + (f" of {len(item)}" if several else "")
        raise InputError(
            f"{name}s must come in batches (x, y) with true labels, or in dictionaries with label=, got {got}; give both."
        )
    if item[1] is not None and np.ndim(validate.detached(item[1])) == 0:
        raise InputError(
            f"{name}s must come in batches, got a pair (x, y) of a single record; batch the records."
        )
    return _labelled(name, item, task, least=0)


def _as_texts(batch: Batch) -> Batch:
    """Return a batch of texts with one column of them, prompts with completions, or chats."""
    column = np.fromiter(cells(batch.records), dtype=object, count=len(batch.records))
    return replace(batch, records=replace(batch.records, features=column))


def _batches(name: str, group: Any, task: Task | None, size: int) -> Iterator[Batch]:
    """Yield the records of a group: a loader, or its table; another table; or a pair (X, y) or texts, which are one batch."""
    data, first_row, width = _data_of(group), 0, None
    if isinstance(group, RecordTable) and not is_loader(group):
        source = open_source(group, task=task, member=name == "member", name=name)
        yield from (source.read(start, start + size) for start in range(0, len(source), size))
        return
    if not is_loader(data):
        yield _labelled(name, data, task)
        return
    for item in _items(f"{name}s", data, size, texts=task is None):
        batch = _batch(name, _copied(item), group, task)
        features, n = batch.records.features, len(batch.records)
        own = (*getattr(features, "columns", ()), *getattr(features, "shape", ())[1:])
        if width not in (None, own):
            raise InputError(
                f"{name}s must have one shape or the same columns in every batch, got {width} and then {own} (first at row"
                f" {first_row}, counting from 0); pad or crop the records, or order the columns."
            )
        if n:
            yield replace(batch, records=replace(batch.records, first_row=first_row))
        first_row, width = first_row + n, own


def _places(members: Any, nonmembers: Any) -> PerGroup | None:
    """Return the place of each record in the whole data set, of two PyTorch Subset of one; else a number is not one record."""
    (places, whole), (places_out, another) = (_subset(_data_of(group)) for group in (members, nonmembers))
    same = whole is another and places is not None and places_out is not None
    return PerGroup(places, places_out) if same else None


def _subset(data: Any) -> tuple[Any, Any]:
    """Return the place of each record of a PyTorch Subset in the whole data set, and that; None and any other data."""
    places = None
    while is_a(data, "torch", "Subset"):
        indices = np.asarray(validate.detached(data.indices))
        places, data = indices if places is None else indices[places], data.dataset
    return places, data


# --- One pass over each group ---


_TRIED = 100  # records of each group on which the model is tried
_LEAST = 2
_FEW = 10  # records that are read twice


def losses_in_one_pass(
    model: Any, members: Any, nonmembers: Any, *, options: ScoringOptions, **beside: Any
) -> tuple[Losses, tuple[str, ...]]:
    """Return the losses of groups of records in batches, or of texts in any form, and the warnings for the caller.

    Args:
        model: As for `collect`, or a `TextScorer`.
        members: A loader, a `RecordTable` of one or of another table, or a pair (X, y); or texts.
        nonmembers: The same; None of a Lightning data module, which has both.
        options: Scoring options; without a batch size, the batches are those of the loader.
        beside: Labels of texts in memory, as for `labels_beside`.

    Raises:
        InputError: Batches without labels or of different shapes, fewer than two records, or a loader that fails.
    """
    if _is_module(members) and nonmembers is None:
        nonmembers = members
    elif not _is_module(members) and (is_loader(members) or is_loader(nonmembers)):
        refuse_same(_data_of(members), _data_of(nonmembers))
    hooks = {"member": ("train_dataloader",), "nonmember": ("test_dataloader", "val_dataloader")}
    groups = {}
    for (name, methods), group in zip(hooks.items(), (members, nonmembers), strict=True):
        data = _loader(f"{name}s", _data_of(group), methods)
        groups[name] = replace(group, data=data) if isinstance(group, RecordTable) else data
    size, of_texts = options.batch_size, isinstance(model, TextScorer)
    passes = [_Pass(name, group, None if of_texts else options.task, size) for name, group in groups.items()]
    first, second = (joined_records([batch.records for batch in item.head]) for item in passes)
    labels = labels_beside((first, second), values="texts", **beside)
    scorer: Any = model.of(first) if of_texts else options.scorer(opened_model(model), [first, second])
    if of_texts:
        for item in passes:
            item.check(scorer)
        tried = Preflight(deterministic=True, warnings=scorer.trial(first))
    else:
        tried = preflight(scorer, [first, second], batch_size=size)
    random = [_random(name, _data_of(group)) for name, group in groups.items() if is_loader(group)]
    noticed = (*tried.warnings, *filter(None, random))
    (member, columns), (nonmember, others) = (item.scored(scorer, size=size) for item in passes)
    labels |= {name: PerGroup(column, others[name]) for name, column in columns.items() if name in others}
    if places := _places(*groups.values()):
        labels.setdefault("id", places)
    cut = [item.cut for item in passes]
    aside = f" ({about(cut[0])} member and {about(cut[1])} non-member texts were)" if any(cut) else ""
    losses = losses_of(scorer, member, nonmember, labels=labels, noticed=noticed, aside=aside)
    return losses, (*noticed, *tried.provisional, *file_warnings(losses))


class _Pass:
    """One pass over a group, of which the first batches are held until they are scored."""

    def __init__(self, name: str, group: Any, task: Any, size: int | None) -> None:
        """Read the first batches."""
        batches = _batches(name, group, task, size or _AT_ONCE)
        self.rest = batches if task else map(_as_texts, batches)
        self.head: list[Batch] = []
        n = self.cut = 0
        while n < _TRIED and (batch := next(self.rest, None)) is not None:
            self.head.append(batch)
            n += len(batch.records)
        if n < _LEAST:
            fix = "check that it is no iterator that was read before" if n == 0 else "give more"
            raise InputError(
                f"{name}s must hold at least {_LEAST} records, got {n} from {type(_data_of(group)).__name__}; {fix}."
            )

    def check(self, scorer: TextScorer) -> None:
        """Refuse texts that cannot be scored, those that are held at once and the others as they come; count those that are cut."""

        def checked(batch: Batch) -> Batch:
            self.cut += scorer.check(batch.records)
            return batch

        self.head, self.rest = [*map(checked, self.head)], map(checked, self.rest)

    def scored(self, scorer: Scorer, *, size: int | None) -> "_Scored":
        """Return the losses of all records, and the columns and fingerprints that every batch has."""
        pieces: list[_Scored] = []
        recent: list[_Scored] = []
        head = (self.head.pop(0) for _ in range(len(self.head)))  # each is released when it is scored
        for batch, losses in score_batches(scorer, chain(head, self.rest), size=size):
            own = {} if batch.fingerprint is None else {"fingerprint": batch.fingerprint}
            recent.append((losses, {**batch.columns, **own}))
            if len(recent) == _RECENT:
                pieces.append(_joined(recent))
                recent = []
        return _joined([*pieces, *recent])


_Scored = tuple[BatchLosses, dict[str, Any]]
_RECENT = 64  # batches, whose small arrays would else keep the memory of larger ones from being used again


def _joined(scored: Sequence[_Scored]) -> _Scored:
    """Return the losses of several batches as one, and the columns that each has."""
    losses, columns = zip(*scored, strict=True)
    common = [name for name in columns[0] if all(name in own for own in columns)]
    return concatenated(losses), {name: np.concatenate([own[name] for own in columns]) for name in common}


# --- Records that differ each time they are read ---


def _random(name: str, data: Any) -> str:
    """Return a warning for readers if a map-style data set gives other values when its first records are read again."""
    data = data.dataset if is_a(data, "torch", "DataLoader") else data
    with suppress(Exception):  # of data that are not read by number, or fail in the pass
        if not all(_same(data[row], data[row]) for row in range(min(_FEW, len(data)))):
            return (
                f"the {name} data set ({type(data).__name__}) draws random numbers, as augmentation does: a record that is read"
                " twice differs, and its loss is that of one random version; give the data set without augmentation."
            )
    return ""


def _same(first: Any, second: Any) -> bool:
    """Return whether two readings of a record are equal."""
    if isinstance(first, Mapping):
        return all(_same(value, second[key]) for key, value in first.items())
    if isinstance(first, tuple | list):
        return all(map(_same, first, second))
    one, other = (np.asarray(validate.detached(value)) for value in (first, second))
    return one.shape == other.shape and (one.dtype.hasobject or one.tobytes() == other.tobytes())
