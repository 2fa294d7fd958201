"""References, populations and held-out records: calibration data for stronger scores, coded in one way and kept apart from the audited records."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.core import Attack, AttackState, InputError, alike, validate
from auditor.core.values import Array, Booleans, Floats, Integers, Losses, LossScale, PerGroup
from auditor.records.features import pooled, ranks_of, table_of
from auditor.records.labels import codes

# --- Scored losses: new values under the same labels ---

_LARGEST = float(np.finfo(np.float64).max)


def scored(
    losses: Losses,
    facts: PerGroup,
    change: Callable[[Floats, Any], Floats],
    *,
    step: str,
    attack: Attack | None = None,
) -> Losses:
    """Return the losses adjusted by the references of each record, all labels kept, with the step and the attack that it is.

    Their scale is now unknown, and they are no chances of extraction any more.
    """
    member, nonmember = change(losses.member, facts.member), change(losses.nonmember, facts.nonmember)
    for fresh in (member, nonmember):
        fresh.setflags(write=False)  # so that it need not be copied
    history = (*losses.history, step)
    # Losses under a policy are not changed, and so are no longer beside this score.
    attacks = {**losses.attacks, **({} if attack is None else {attack: AttackState.RUN})}
    if attacks.get(Attack.EXTRACTION) is AttackState.RUN:
        del attacks[Attack.EXTRACTION]
    rest = dataclasses.replace(losses, policies={}, scale=LossScale.UNKNOWN, history=history, attacks=attacks)
    return dataclasses.replace(rest, member=member, nonmember=nonmember)


def finite_difference(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Return x - y, cut at the largest float."""
    with np.errstate(over="ignore"):
        return np.clip(np.subtract(x, y), -_LARGEST, _LARGEST)


def finite_ratio(x: Floats, y: Floats) -> Floats:
    """Return x/y for y > 0, cut at the largest float."""
    with np.errstate(over="ignore"):
        return np.clip(x / y, -_LARGEST, _LARGEST)


# --- Feature tables of audited and calibration records as numbers, coded alike ---


def encoded(features: Any, calibration: Any) -> tuple[Floats, Floats, Floats]:
    """Return the features of members, non-members and calibration records: numbers as they are, other values by rank.

    Raises:
        InputError: Not tables, other columns, or infinite values.
    """
    member, nonmember = _pair(features)
    named = (("member", member), ("nonmember", nonmember), ("calibration", calibration))
    tables = [table_of(name, values) for name, values in named]
    wanted = tables[0].names
    for (name, _), table in zip(named, tables, strict=True):
        if table.names != wanted:
            raise InputError(
                f"{name} features must have the columns of the member features, got {len(table.names)} columns against"
                f" {len(wanted)} or others of these names; select the same columns in each table."
            )
    columns = [_numbers([table.column(place) for table in tables]) for place in range(len(wanted))]
    matrix = np.column_stack(columns)
    if np.isinf(matrix).any():
        raise InputError(
            f"features must be finite or missing, got {int(np.isinf(matrix).sum()):,} infinite values; remove those"
            " records or columns."
        )
    first, second, third = np.split(matrix, np.cumsum([table.n for table in tables[:2]]))
    return first, second, third


def _pair(features: Any) -> tuple[Any, Any]:
    """Return both groups' tables, of a pair or of a value with the fields member and nonmember."""
    if hasattr(features, "member") and hasattr(features, "nonmember"):
        return features.member, features.nonmember
    return validate.pair("features", features, of=" of tables")


def _numbers(parts: list[Array]) -> Floats:
    values = pooled(*parts)
    if parts[0].dtype.kind == "M" and not isinstance(values, list):
        values = [None if np.isnan(time) else time for time in values]
    return ranks_of(values) if isinstance(values, list) else values


# --- The other records that scores rest on: reference losses, a population, a part held out; and that none of it is audited ---


@alike
@dataclass(frozen=True, eq=False)
class References:
    """Losses of one or more reference models on the audited records, on the same scale as the target's losses.

    The reference models must have been trained on neither group, or on records that ``trained_on`` names; nothing in
    their losses can show that.

    Attributes:
        member: Shape (n1,) for one model or (n1, models), finite; kept as (n1, models), read-only.
        nonmember: Shape (n0,) or (n0, models), as above.
        id: Optional record ids, a pair of arrays (members, non-members). Where the losses have ids too, records are
            matched by id; otherwise row by row.
        trained_on: Optional, for shadow models: a pair of boolean arrays of the shapes of the losses, true where the
            model was trained on the record. Which records a model was trained on must have been drawn without regard to
            the target's membership, and the target is none of the models.

    Raises:
        InputError: NaN or infinite losses, another number of models in the groups, or columns of different lengths.

    >>> References(member=[0.4, 0.2], nonmember=[0.3, 0.1, 0.9]).models
    1
    """

    member: Floats
    nonmember: Floats
    id: PerGroup | None = None
    trained_on: PerGroup | None = None

    def __post_init__(self) -> None:
        for name in ("member", "nonmember"):
            vars(self)[name] = _loss_matrix(f"reference {name}", getattr(self, name))
        same_models("reference member losses", self.member, "reference nonmember losses", self.nonmember)
        if self.id is not None:
            ids = validate.pair("reference id", self.id)
            named = zip(PerGroup._fields, ids, strict=True)
            pair = PerGroup(*(validate.column(f"reference {side} id", column) for side, column in named))
            for side in PerGroup._fields:
                names = (f"reference {side} losses", f"reference {side} id")
                validate.same_length(names, (len(getattr(self, side)), getattr(pair, side).size))
            vars(self)["id"] = pair
        if self.trained_on is not None:
            masks = validate.pair("trained_on", self.trained_on)
            sides = self.member, self.nonmember
            vars(self)["trained_on"] = PerGroup(*map(_mask, PerGroup._fields, masks, sides))

    @property
    def models(self) -> int:
        """Number of reference models."""
        return int(self.member.shape[1])

    def take(self, rows: PerGroup) -> "References":
        """Return the records at these rows, as `HoldOut` names them.

        Args:
            rows: Positions or masks, a pair (members, non-members).

        >>> References(member=[0.1, 0.2], nonmember=[0.3, 0.4]).take(PerGroup(np.array([1]), np.array([1]))).member
        array([[0.2]])
        """
        labels = {
            name: PerGroup(pair.member[rows.member], pair.nonmember[rows.nonmember])
            for name in ("id", "trained_on")
            if (pair := getattr(self, name)) is not None
        }
        return References(self.member[rows.member], self.nonmember[rows.nonmember], **labels)

    def aligned(self, losses: Losses) -> PerGroup:
        """Return the reference losses of these records, in their order: by id where both have ids, else row by row.

        Raises:
            InputError: A record without a reference loss, an id given twice, or other numbers of rows.

        >>> reference = References(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a", "b"], ["c", "d"]))
        >>> losses = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], id=(["b", "a"], ["c", "d"]))
        >>> reference.aligned(losses).member.ravel()
        array([0.2, 0.1])
        """
        own = self._of(losses)
        return PerGroup(own.member, own.nonmember)

    def _of(self, losses: Losses) -> "References":
        """Return these references with the rows of the losses."""
        if self.id is None or losses.id is None:
            for side in PerGroup._fields:
                names = (f"{side} losses", f"reference {side} losses")
                validate.same_length(names, (getattr(losses, side).size, len(getattr(self, side))))
            return self
        at = (
            _rows_of(getattr(losses.id, side), getattr(self.id, side), side=side) for side in PerGroup._fields
        )
        return self.take(PerGroup(*at))

    def shadows(self, losses: Losses) -> "Shadows":
        """Return the shadow models' losses of these records, the members first, and which of them count.

        How many models were trained on a record may reveal whether the target was: where each record was drawn for exactly
        half of all models, the target among them, a member is left with one less of the others. So where these numbers
        differ by one at most over all records, as many of each kind count for every record, and the one too many is left
        out at a place that changes from row to row. Other numbers must be spread alike over both groups.

        Raises:
            InputError: No ``trained_on``, the target among the models, a record that no model was trained on or that
                all were, or numbers of such models that differ between members and non-members.
        """
        own = self._of(losses)
        if own.trained_on is None:
            raise InputError(
                "this score needs models that were trained on each record and models that were not; say which were with"
                " References(trained_on=...)."
            )
        loss = np.concatenate([own.member, own.nonmember])
        copies = (loss == np.concatenate([losses.member, losses.nonmember])[:, None]).all(axis=0)
        if copies.any():
            raise InputError(
                "the reference models must not have the target among them, got its losses as model"
                f" {int(np.argmax(copies))}, counting from 0; leave that column out."
            )
        inside = np.concatenate(own.trained_on)
        _refuse_telling(inside.sum(axis=1), losses.n_member)
        row = np.r_[np.arange(losses.n_member), np.arange(losses.n_nonmember)]
        return Shadows(loss, _as_many(inside, row), _as_many(~inside, row))


class Shadows(NamedTuple):
    """Losses of records under shadow models, shape (n, models); and the models that count as with and as without the record."""

    loss: Floats
    inside: Booleans
    outside: Booleans


def _mask(side: str, values: object, losses: Floats) -> Booleans:
    mask = np.asarray(values)
    mask = mask[:, np.newaxis] if mask.ndim == 1 else mask
    if mask.shape != losses.shape or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"{side} trained_on must be true or false for each reference loss, shape {losses.shape}, got shape"
            f" {mask.shape} of type {mask.dtype}."
        )
    return mask.astype(np.bool_)


_FARTHEST = 4.0  # standard errors between the groups' mean numbers of models trained on a record


def _refuse_telling(times: Integers, split: int) -> None:
    """Refuse numbers of models trained on a record that differ between the groups by more than chance or than one model."""
    first, second = times[:split], times[split:]
    apart = abs(first.mean() - second.mean())
    chance = times.var() * (1 / first.size + 1 / second.size)
    if np.ptp(times) > 1 and apart**2 > _FARTHEST**2 * chance:
        raise InputError(
            f"which records the reference models were trained on must not depend on the target's membership, got"
            f" {first.mean():.3g} models trained on a member and {second.mean():.3g} on a non-member, on average; leave"
            " out models that were trained on the target's own split."
        )


def _as_many(mask: Booleans, row: Integers) -> Booleans:
    """Leave out one model for each record that has one too many, where numbers differ by one; refuse records without."""
    times = mask.sum(axis=1)
    if not times.all():
        raise InputError(
            "every record needs a reference model that was trained on it and one that was not, got"
            f" {int((times == 0).sum()):,} of {times.size:,} records without; leave those records out, or add models."
        )
    if np.ptp(times) != 1:
        return mask
    nth = np.cumsum(mask, axis=1) - 1  # of the models that count
    left_out = (nth == (row % times)[:, None]) & (times > times.min())[:, None]
    return np.asarray(mask & ~left_out)


def _rows_of(wanted: Array, own: Array, *, side: str) -> Integers:
    """Return the row of each wanted id."""
    pairs = codes(PerGroup(wanted, own))
    targets, there = pairs.member, pairs.nonmember
    times = np.bincount(there + 1, minlength=pairs.labels.size + 1)[1:]
    repeated = int(np.maximum(times[np.unique(targets[targets >= 0])] - 1, 0).sum())
    if repeated:
        raise InputError(
            f"reference {side} ids must be unique, got {repeated:,} repeated; keep one row of each record."
        )
    rows = np.full(pairs.labels.size + 1, -1)  # the last one is for records without an id
    rows[there] = np.where(there < 0, -1, np.arange(there.size))
    missing = rows[targets] < 0
    if missing.any():
        raise InputError(
            f"every {side} needs reference losses, got none for {int(missing.sum()):,} of {wanted.size:,} ids (first at"
            f" row {int(np.argmax(missing))}, counting from 0); score those records with the reference models too."
        )
    return np.asarray(rows[targets])


def same_models(first: str, one: Floats, second: str, other: Floats) -> None:
    """Refuse two matrices of reference losses with different numbers of models."""
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"{first} and {second} must come from the same models, got {one.shape[1]} and {other.shape[1]} columns."
        )


def _loss_matrix(name: str, values: object) -> Floats:
    """Return a fresh, read-only, finite (records, models) array of losses."""
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} losses must be one column per model, got rows of different lengths."
        ) from None
    if raw.ndim == 1:
        raw = raw[:, np.newaxis]
    if raw.ndim != 2 or raw.size == 0:  # noqa: PLR2004 - records and models
        raise InputError(f"{name} losses must have shape (records,) or (records, models), got {raw.shape}.")
    several = raw.shape[1] > 1
    columns = [
        validate.loss_vector(f"{name} (model {model})" if several else name, column, least=1)
        for model, column in enumerate(raw.T)
    ]
    matrix = np.stack(columns, axis=1)
    matrix.setflags(write=False)
    return matrix


# --- Population: non-members that only calibrate; none of them is audited ---


_LABELS = ("group", "id", "person", "fingerprint")


@dataclass(frozen=True, eq=False)
class Population:
    """Records outside the training set and outside the audit, drawn like the audited non-members.

    Attributes:
        loss: Shape (n,), the target model's losses, finite, read-only; n >= 2.
        reference: Optional losses of the reference models, shape (n,) or (n, models); `rmia` needs them.
        group: Optional class of each record; `class_conditional` needs it.
        id: Optional ids, by which an overlap with the audited records is found.
        person: Optional data subject of each record.
        fingerprint: Optional hash of each record's features, by which an overlap is found where there are no ids.
        scale: Scale of the losses, as in `Losses`.

    Raises:
        InputError: NaN or infinite losses, fewer than two records, or columns of different lengths.

    >>> Population(loss=[0.1, 0.5, 0.2]).n
    3
    """

    loss: Floats
    reference: Floats | None = None
    group: Array | None = None
    id: Array | None = None
    person: Array | None = None
    fingerprint: Array | None = None
    scale: LossScale = LossScale.UNKNOWN

    def __post_init__(self) -> None:
        vars(self)["loss"] = validate.loss_vector("population", self.loss)
        if self.reference is not None:
            reference = _loss_matrix("population reference", self.reference)
            validate.same_length(
                ("population losses", "population reference losses"), (self.n, len(reference))
            )
            vars(self)["reference"] = reference
        for name in _LABELS:
            labels = getattr(self, name)
            if labels is not None:
                column = validate.column(f"population {name}", labels)
                validate.same_length(("population losses", f"population {name}"), (self.n, column.size))
                vars(self)[name] = column
        vars(self)["scale"] = LossScale.named(self.scale)

    @classmethod
    def from_losses(cls, losses: Losses, *, reference: References | None = None) -> "Population":
        """Return the non-members of these losses, with their labels; the members are left aside.

        Args:
            losses: The held-out part of `hold_out`, for example.
            reference: The reference losses of the same records, for `rmia`.

        Raises:
            InputError: Reference losses of other records.

        >>> Population.from_losses(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4])).loss
        array([0.3, 0.4])
        """
        labels = {name: pair.nonmember for name in _LABELS if (pair := getattr(losses, name)) is not None}
        own = None if reference is None else reference.aligned(losses).nonmember
        return cls(loss=losses.nonmember, reference=own, **labels, scale=losses.scale)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(np.size(self.loss))


def as_population(name: str, calibration: object) -> Population:
    """Return the calibration non-members, of a population as it is or of losses."""
    if isinstance(calibration, Population):
        return calibration
    if isinstance(calibration, Losses):
        return Population.from_losses(calibration)
    raise InputError(
        f"{name} must be auditor.Losses or auditor.scores.Population, got {type(calibration).__name__}."
    )


# --- The one check that calibration data and audited records have no record in common ---
#
# Ids decide where both sides have them: two records of equal content are then different records. Without ids equal
# content counts as the same record. Without either only a copy of the audited losses can be recognised.


_FEWEST_SHARED = 10  # fewer equal losses can be equal by chance


def require_comparable(losses: Losses, calibration: Population, *, name: str) -> str:
    """Return a phrase for the history that says how it was checked that no record is audited; refuse an overlap.

    Refuse calibration losses on another scale than the audited ones, too.
    """
    phrase = _require_disjoint(losses, calibration, name)
    if calibration.scale is not losses.scale:
        raise InputError(
            f"{name} losses must be on the scale of the audited losses, got {calibration.scale!s} and"
            f" {losses.scale!s}; put both through the same steps, or give Population(scale=...)."
        )
    return phrase


def _require_disjoint(losses: Losses, calibration: Population, name: str) -> str:
    for label, word in (("id", "id"), ("fingerprint", "content")):
        audited, own = getattr(losses, label), getattr(calibration, label)
        if audited is None or own is None:
            continue
        pair = codes(PerGroup(own, _in_one(audited)))
        ours, theirs = (column[column >= 0] for column in (pair.member, pair.nonmember))
        if not ours.size or not theirs.size:
            continue
        if shared := int(np.isin(ours, theirs).sum()):
            raise InputError(
                f"{name} must hold no audited record, got {shared:,} of {calibration.n:,} with the {word} of one;"
                f" remove them from {name}, or hold out other non-members with auditor.scores.hold_out."
            )
        return f"no {word} in common with the audited records"
    n, ordered = calibration.n, losses.sorted_nonmember
    same_size = n == ordered.size >= _FEWEST_SHARED
    if (
        same_size
        and np.array_equal(np.sort(calibration.loss), ordered)
        and 2 * np.count_nonzero(np.diff(ordered)) >= n
    ):
        raise InputError(
            f"{name} must hold no audited record, got {calibration.n:,} losses equal to the audited non-members';"
            " hold out other non-members with auditor.scores.hold_out."
        )
    return "not checked to be disjoint from the audited records: no ids or fingerprints on both sides"


# --- Holding records out of an audit, so that a score can be calibrated on them ---


_FEWEST = 2  # records that each group keeps on each side


@dataclass(frozen=True)
class HoldOut:
    """Two disjoint parts of one set of losses; unpacks as ``audited, calibration``.

    Attributes:
        audited: The records to audit.
        calibration: The records to calibrate a score on; most scores use their non-members.
        audited_rows: Positions of the audited records in the whole, a pair (members, non-members): for `References` and
            feature matrices without ids.
        calibration_rows: Positions of the calibration records, a pair as well.
    """

    audited: Losses
    calibration: Losses
    audited_rows: PerGroup
    calibration_rows: PerGroup

    def __iter__(self) -> Iterator[Losses]:
        return iter((self.audited, self.calibration))


def hold_out(losses: Losses, *, fraction: float = 0.5, rng: np.random.Generator) -> HoldOut:
    """Return a random split of the records into an audited and a calibration part.

    Records are drawn without looking at membership, so that the declaration about the split into members and
    non-members still holds. Records with an id, a person or a fingerprint in common stay on one side. The audited
    members are then a sample of the training set, so declare `Sample`, and give `audit` the ``training_size``.

    Args:
        losses: All records.
        fraction: Share of the records that calibrate, in (0, 1).
        rng: Draws the split.

    Raises:
        InputError: A fraction outside (0, 1), or fewer than two members or non-members on a side.

    >>> losses = Losses(member=np.arange(40.0), nonmember=np.arange(60.0))
    >>> audited, calibration = hold_out(losses, fraction=0.4, rng=np.random.default_rng(0))
    >>> audited.n_member + audited.n_nonmember, calibration.n_member + calibration.n_nonmember
    (60, 40)
    """
    validate.instance("losses", losses, (Losses,))
    share = validate.fraction("fraction", fraction)
    n1 = losses.n_member
    linking = [_in_one(pair) for pair in (losses.id, losses.person, losses.fingerprint) if pair is not None]
    held = random_part(units(linking, size=n1 + losses.n_nonmember), share=share, rng=rng)
    parts: list[Losses] = []
    rows: list[PerGroup] = []
    for name, mask in (("audited", ~held), ("calibration", held)):
        chosen = PerGroup(np.flatnonzero(mask[:n1]), np.flatnonzero(mask[n1:]))
        sizes = chosen.member.size, chosen.nonmember.size
        if min(sizes) < _FEWEST:
            raise InputError(
                f"hold_out needs at least {_FEWEST} members and {_FEWEST} non-members on each side, got {sizes[0]:,}"
                f" and {sizes[1]:,} in the {name} part at fraction {share:g}; give more records, another fraction,"
                " or labels that tie fewer records together."
            )
        step = f"hold_out: the {name} part, {sizes[0]:,} members and {sizes[1]:,} non-members drawn without looking at membership"
        parts.append(losses.take(member=chosen.member, nonmember=chosen.nonmember, step=step))
        rows.append(chosen)
    return HoldOut(parts[0], parts[1], rows[0], rows[1])


def units(labels: list[Array], *, size: int) -> Integers:
    """Return the unit of each record: records that share a label, directly or through others, are one unit."""
    if not labels:
        return np.arange(size)
    from scipy.sparse import coo_array, csgraph

    records, ends, n_nodes = [], [], size
    for column in labels:
        code = codes(PerGroup(column, column[:0])).member
        records.append(np.flatnonzero(code >= 0))
        ends.append(n_nodes + code[code >= 0])
        n_nodes += code.size
    edges = (np.concatenate(records), np.concatenate(ends))
    graph = coo_array((np.ones(edges[0].size, dtype=np.int8), edges), shape=(n_nodes, n_nodes))
    component = csgraph.connected_components(graph, directed=False)[1][:size]
    return np.asarray(np.unique(component, return_inverse=True)[1])


def random_part(unit: Integers, *, share: float, rng: np.random.Generator) -> Booleans:
    """Return a mask of the records of a random share of the units."""
    n_units = int(unit.max()) + 1
    chosen = np.zeros(n_units, dtype=bool)
    chosen[rng.permutation(n_units)[: round(share * n_units)]] = True
    return np.asarray(chosen[unit])


def _in_one(pair: PerGroup) -> Array:
    """Return both groups' labels in one column, without turning a number into another number's text."""
    alike = pair.member.dtype.kind == pair.nonmember.dtype.kind
    return np.concatenate(pair if alike else [column.astype(object) for column in pair])
