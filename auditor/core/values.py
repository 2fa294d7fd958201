"""Every frozen value that crosses a room boundary: the map of the system.

Data becomes `Losses`; losses become a `FittedPair` and a trade-off curve (in `auditor.curves.tradeoff`); those become an
`Estimate` with its subject; an estimate meets a `Claim` in a `Comparison`; a `Check` says whether to
trust it; an `AuditResult` (in `auditor.results.document`) holds them all.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.facts import Attack, Attacks, AttackState, Released, attack_states
from auditor.core.fields import CheckDetails, Confidence, Delta, EstimateDetails, Keys, Number, YesOrNo
from auditor.core.options import Adjacency, Named
from auditor.core.verb import alike

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]  # of numbers, texts or objects


class Subject(StrEnum):
    """Subject of a number."""

    MODEL = "model"
    MECHANISM = "mechanism"


class Verdict(StrEnum):
    """Conclusion of an audit about a claim on the training algorithm."""

    REFUTED = "refuted"
    NOT_REFUTED = "not_refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_EVALUABLE = "not_evaluable"


class Status(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


WORST_FIRST = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.OK)


class LossScale(Named):
    """Scale of a loss, used to choose the log-odds transform."""

    LOG_ODDS = "log-odds"
    CROSS_ENTROPY = "cross-entropy"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class OutputPolicy:
    """Restricted answer of a model in place of its full outputs, or another score of its records.

    Attributes:
        name: ``full`` (all that it answers now), ``digits=N`` (every number rounded to N decimals, 1 to 15), ``topK`` (the
            K largest probabilities with their classes, and nothing of the others) or ``label`` (the predicted class); or
            ``score=NAME``, of another attack on the same records.

    Raises:
        InputError: Another name.

    >>> OutputPolicy("top2").words, OutputPolicy("top1").tells_no_more_than(OutputPolicy("top2"))
    ('the 2 largest probabilities alone', True)
    """

    name: str

    FULL = "full"
    COLUMN = "loss."  # prefix of the name of a column of its losses

    def __post_init__(self) -> None:
        name = self.name.strip() if isinstance(self.name, str) else ""
        vars(self)["name"] = name or self.name
        if not _POLICY.fullmatch(name):
            raise InputError(
                "policies must be among digits=N with N from 1 to 15, topK with K from 1 to 9999, label, and score=NAME with a"
                f" name of at most 40 letters, digits, spaces and dots, as in 'digits=2,label,score=entropy', got {self.name!r}."
            )

    @classmethod
    def several(cls, names: "str | Iterable[str | OutputPolicy]") -> "tuple[OutputPolicy, ...]":
        """Return each policy once, but for the full outputs, which are always there; a text has commas between names."""
        listed: Any = names.split(",") if isinstance(names, str) else names
        listed = listed if isinstance(listed, Iterable) else (listed,)
        result = dict.fromkeys(item if isinstance(item, cls) else cls(item) for item in listed)
        return tuple(item for item in result if item.name != cls.FULL)

    @classmethod
    def columns_among(cls, names: Iterable[str]) -> dict[str, str]:
        """Return the columns of losses under policies among these, each with the name of its policy.

        Raises:
            InputError: A column of another score whose name cannot be used.
        """
        result = {name: name.removeprefix(cls.COLUMN) for name in names if name.startswith(cls.COLUMN)}
        for column, kind in result.items():
            if kind.startswith(_SCORE) and not _POLICY.fullmatch(kind):
                raise InputError(
                    f"a column of another score must be called {cls.COLUMN}{_SCORE}NAME with a name of 1 to 40 letters, digits, spaces"
                    f" and dots, got {column!r}; rename it."
                )
        return {name: kind for name, kind in result.items() if kind != cls.FULL and _POLICY.fullmatch(kind)}

    @property
    def kind(self) -> str:
        """``full``, ``digits``, ``top``, ``label`` or ``score``."""
        return re.match("[a-z]+", self.name)[0]  # type: ignore[index]  # every name begins so

    @property
    def number(self) -> int:
        """Number of decimals or of probabilities; 0 if there is none."""
        return int("0" + re.sub(r"\D", "", self.name))

    @property
    def column(self) -> str:
        """The name of the column of its losses."""
        return self.COLUMN + self.name

    @property
    def words(self) -> str:
        """Description of the answer, as in "with the label alone"."""
        n = self.number
        decimals = f"outputs rounded to {n} decimal{'' if n == 1 else 's'}"
        largest = "the largest probability" if n == 1 else f"the {n} largest probabilities"
        text = {"full": "the full outputs", "digits": decimals, "top": f"{largest} alone"}
        return text.get(self.kind, self.of_score or "the label alone")

    @property
    def of_score(self) -> str:
        """The name of another score; empty for an answer."""
        return self.name.removeprefix(_SCORE) if self.name.startswith(_SCORE) else ""

    def tells_no_more_than(self, other: "OutputPolicy") -> bool:
        """Return whether the answer follows from the other's for all outputs; rounding to fewer decimals twice need not agree."""
        if self.of_score or other.of_score:  # a score may use more than the outputs
            return self == other
        fewer = self.kind == "label" or (self.kind == "top" and self.number <= other.number)
        return self == other or other.kind == "full" or (other.kind == "top" and fewer)


_SCORE = "score="
_POLICY = re.compile(rf"full|label|digits=([1-9]|1[0-5])|top[1-9][0-9]{{0,3}}|{_SCORE}\w[\w .-]{{0,39}}")


class PerGroup(NamedTuple):
    """One column of per-record labels, for the members and for the non-members."""

    member: npt.NDArray[Any]
    nonmember: npt.NDArray[Any]


class Counted:
    """The ascending losses of a group by the number of records in each bin: takes the place of arrays in a `Losses`.

    It is sorted, ranked and counted as the array would be that repeats each value, at any number of records; what takes
    records one by one has no use of it.

    Attributes:
        levels: Shape (k,), ascending: the representative value of each bin.
        counts: Shape (k,), how many records each holds, 1 or more.
        bits: Number of bits of a loss that decide its bin.

    >>> group = Counted(np.array([0.5, 2.0]), np.array([3, 1]), bits=22)
    >>> group.size, group[np.array([2, 3])].tolist(), int(np.searchsorted(group, 0.5, side="right"))
    (4, [0.5, 2.0], 3)
    """

    def __init__(self, levels: Floats, counts: npt.NDArray[np.int64], bits: int) -> None:
        """Store the two values."""
        self.levels, self.counts, self.bits = levels, counts, bits
        self._starts = np.append(0, np.cumsum(counts))

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self._starts[-1])

    def min(self) -> float:
        """Return the smallest value."""
        return float(self.levels[0])

    def max(self) -> float:
        """Return the largest."""
        return float(self.levels[-1])

    def __getitem__(self, ranks: Any) -> Any:
        """Return the values at ranks from 0 on, or the part of a group between two of them."""
        if isinstance(ranks, slice):
            start, stop, _ = ranks.indices(self.size)
            counts = np.diff(np.clip(self._starts, start, stop))
            return type(self)(self.levels[counts > 0], counts[counts > 0], self.bits)
        ranks = np.asarray(ranks)
        return self.levels[np.searchsorted(self._starts, ranks + self.size * (ranks < 0), side="right") - 1]

    def searchsorted(self, values: Any, side: Any = "left", sorter: None = None) -> Any:  # noqa: ARG002 - of NumPy's protocol
        """Return how many records lie below these values, or up to them: `numpy.searchsorted` calls it."""
        return self._starts[np.searchsorted(self.levels, values, side=side)]

    def mapped(self, function: Callable[[Floats], Floats]) -> "Counted":
        """Return the group by an increasing function of its values."""
        return type(self)(function(self.levels), self.counts, self.bits)

    def mirrored(self) -> "Counted":
        """Return the group of the negative values."""
        return type(self)(-self.levels[::-1], self.counts[::-1], self.bits)

    def without(self, ranks: npt.NDArray[Any]) -> "Counted":
        """Return the losses without the records at these ranks."""
        bins = np.searchsorted(self._starts, ranks, side="right") - 1
        left = self.counts - np.bincount(bins, minlength=self.counts.size)
        return type(self)(self.levels[left > 0], left[left > 0], self.bits)


class Merged(Counted):
    """Losses of a group by bins of which neighbours were merged."""


SIGN_AND_EXPONENT = 12  # bits of a double


def weighted(group: Any) -> tuple[Floats, npt.NDArray[np.int64] | None]:
    """Return the values of a group, and how many records each stands for where it is not one."""
    return (group.levels, group.counts) if isinstance(group, Counted) else (group, None)


# The fields of `Losses` that hold one label for each record.
PER_RECORD = ("id", "group", "label", "person", "fingerprint", "correct", "inclusion")


@alike
@dataclass(frozen=True, eq=False)
class Losses:
    """Per-record losses of one model on its members and on non-members; smaller means more like a member.

    Attributes:
        member: Shape (n1,), finite, read-only, float64; n1 >= 2.
        nonmember: Shape (n0,), as above.
        id: Optional record ids, a pair of arrays (members, non-members).
        group: Optional slices to report by (region, age band), in pairs.
        label: Optional true class of each record, also a slice to report by, in pairs.
        person: Optional data subject of each record, for records that belong together, in pairs.
        fingerprint: Optional hash of each record's features, so that records of equal content can be found, in pairs.
        correct: Optional, whether the model classified each record correctly, in pairs: true or false, or 1 or 0.
        inclusion: Optional probability that each record becomes a member, in pairs: in (0, 1). Used by `BernoulliSplit`.
        policies: Optional losses of the same records under restricted answers, or other scores of them, smaller for members, in
            pairs, by an `OutputPolicy`: ``digits=2``, ``top1``, ``label`` or ``score=entropy``. See `with_scores`.
        scale: Scale of the loss: the negative log-odds of the true class, its cross-entropy, or unknown.
        saturated: Numbers of member and non-member losses from a probability of exactly 0 or 1.
        history: Steps applied to the losses, first step first.
        notes: The steps of the history that a reader must know before relying on the losses, as found out when they were
            collected; default none.
        stopped_by_evidence: Whether these are scores of runs whose number their own evidence decided, as of
            ``collect_runs(stop=...)``: no interval for a fixed number of runs holds for them.
        attacks: Attacks that the losses are the scores of, and attacks that cannot apply; default the attack by the loss.
        released: Facts about what was released that the losses do not hold: how secrets are sampled, a synthetic table, training
            records in a model's file.

    Raises:
        InputError: NaN or infinite losses, fewer than two records in a group, or columns of different lengths.

    >>> losses = Losses(member=[0.1, 0.2], nonmember=[0.3, 0.1, 0.9])
    >>> losses.n_member, losses.n_nonmember
    (2, 3)
    >>> losses  # counts only: losses and ids are personal data, and a notebook shows what stands alone on a line
    Losses(2 members, 3 non-members, scale unknown)
    """

    member: Floats
    nonmember: Floats
    id: PerGroup | None = None
    group: PerGroup | None = None
    person: PerGroup | None = None
    fingerprint: PerGroup | None = None
    scale: LossScale = LossScale.UNKNOWN
    saturated: tuple[int, int] = (0, 0)
    history: tuple[str, ...] = ()
    label: PerGroup | None = None
    notes: tuple[str, ...] = ()
    correct: PerGroup | None = None
    inclusion: PerGroup | None = None
    policies: Mapping[str, PerGroup] = field(default_factory=dict)
    stopped_by_evidence: bool = False
    attacks: Attacks = field(default_factory=dict)
    released: Released = Released()  # noqa: RUF009 - a frozen value

    def __post_init__(self) -> None:
        for name in ("member", "nonmember"):
            values: Any = getattr(self, name)
            vars(self)[name] = values if isinstance(values, Counted) else validate.loss_vector(name, values)
        for name in PER_RECORD:
            labels = getattr(self, name)
            if labels is not None:
                vars(self)[name] = self._pair(name, validate.pair(name, labels), validate.label_column)
        if self.inclusion is not None:
            sides = zip(PerGroup._fields, self.inclusion, strict=True)
            odds = [validate.coin_column(f"{side} inclusion", column) for side, column in sides]
            vars(self)["inclusion"] = PerGroup(*odds)
        under = {}
        for name in (item.name for item in OutputPolicy.several(self.policies)):
            losses = validate.pair(f"policies[{name!r}]", self.policies[name])
            under[name] = self._pair(name, losses, validate.loss_vector, " losses")
        vars(self)["policies"] = under
        for side, column in zip(PerGroup._fields, self.correct or (), strict=False):
            if not np.isin(column, (0, 1)).all():
                raise InputError(
                    f"{side} correct must be true or false for each record, got other values of type {column.dtype}."
                )
        vars(self).update(scale=LossScale.named(self.scale), attacks=attack_states(self.attacks))
        counts = validate.pair("saturated", self.saturated, of=" of counts")
        vars(self)["saturated"] = tuple(validate.at_least("saturated", item, least=0) for item in counts)
        for name in ("history", "notes"):
            lines: Any = getattr(self, name)
            vars(self)[name] = (lines,) if isinstance(lines, str) else tuple(lines)

    def __repr__(self) -> str:
        """Say how many losses there are and which columns they have, but show none of them."""
        columns = [*self.labelled, *self.policies]
        having = f", with {', '.join(columns)}" if columns else ""
        counts = f"{self.n_member:,} members, {self.n_nonmember:,} non-members"
        return f"Losses({counts}, scale {self.scale}{having})"

    def _pair(self, name: str, sides: tuple[Any, Any], checked: Callable[..., Any], of: str = "") -> PerGroup:
        """Return one value for each record, of a label or of losses under a policy."""
        pair = PerGroup(
            *(checked(f"{side} {name}", at) for side, at in zip(PerGroup._fields, sides, strict=True))
        )
        for side, column, own in zip(PerGroup._fields, pair, (self.member, self.nonmember), strict=True):
            validate.same_length((f"{side} losses", f"{side} {name}{of}"), (own.size, column.size))
        return pair

    @property
    def labelled(self) -> dict[str, PerGroup]:
        """The labels of the records that there are, by name."""
        return {name: pair for name in PER_RECORD if (pair := getattr(self, name)) is not None}

    @property
    def n_member(self) -> int:
        """Number of member losses."""
        return self.member.size

    @property
    def n_nonmember(self) -> int:
        """Number of non-member losses."""
        return self.nonmember.size

    @property
    def bits(self) -> int | None:
        """Number of leading bits of a loss that decide its bin, if the losses are counts of a `Summary`; None for exact losses."""
        group: Any = self.member
        return group.bits if isinstance(group, Counted) else None

    @property
    def swapped(self) -> "Losses":
        """The non-members as members, and the other way round, without labels."""
        about: Any = {name: getattr(self, name) for name in ("stopped_by_evidence", "attacks", "released")}
        return Losses(self.sorted_nonmember, self.sorted_member, **about)

    @property
    def marks(self) -> tuple[str, ...]:
        """The columns of ones that a table of the losses has for facts about all of them."""
        # A table has no place for what was found in a file.
        run = [
            name.column
            for name, state in self.attacks.items()
            if state is AttackState.RUN and name is not Attack.FILE
        ]
        return (*["stopped_by_evidence"] * self.stopped_by_evidence, *run)

    def refuse_stopped(self) -> None:
        """Refuse runs that their evidence stopped, where the number must have been fixed in advance."""
        if self.stopped_by_evidence:
            raise InputError(
                "losses must be of a number of runs that was fixed in advance, got runs that were stopped by their"
                " evidence; audit them by auditor.audit_runs with test=Sequential(), whose evidence holds at any time."
            )

    def take(self, *, member: npt.NDArray[Any], nonmember: npt.NDArray[Any], step: str = "") -> "Losses":
        """Return the records at these positions (or of these masks), with their labels.

        Args:
            member: Positions or a mask, of the members to keep.
            nonmember: Rows of the non-members to take.
            step: Description of the step, added to the history.

        Counts of saturated records are of the whole set and are not carried over.

        Raises:
            InputError: Fewer than two records remain in a group.

        >>> Losses(member=[0.1, 0.2, 0.3], nonmember=[0.4, 0.5]).take(member=np.array([2, 0]), nonmember=np.array([0, 1])).member
        array([0.3, 0.1])
        """

        def rows(pairs: Mapping[str, PerGroup]) -> dict[str, Any]:
            return {name: PerGroup(pair[0][member], pair[1][nonmember]) for name, pair in pairs.items()}

        taken = {"member": self.member[member], "nonmember": self.nonmember[nonmember], **rows(self.labelled)}
        history = (*self.history, step) if step else self.history
        return replace(self, **taken, policies=rows(self.policies), saturated=(0, 0), history=history)

    def with_scores(self, **scores: "Losses") -> "Losses":
        """Return the losses with other scores of the same records, in the same order, for an audit of all of them together.

        Args:
            scores: The losses of another attack by its name, such as those of `auditor.scores.difficulty`.

        Raises:
            InputError: No losses, or other records, by their number or their ids.

        >>> losses = Losses(member=[0.1, 0.2], nonmember=[0.3, 0.1])
        >>> losses.with_scores(entropy=Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0]))
        Losses(2 members, 2 non-members, scale unknown, with score=entropy)
        """
        for name, other in scores.items():
            if not isinstance(other, Losses):
                raise InputError(
                    f"{name} must be an auditor.Losses of the same records, got {type(other).__name__}."
                )
            if self.id and other.id and not all(map(np.array_equal, self.id, other.id)):
                raise InputError(
                    f"{name} must score the same records in the same order, got other ids; sort both by their ids."
                )
        more = {f"{_SCORE}{name}": PerGroup(other.member, other.nonmember) for name, other in scores.items()}
        return replace(self, policies={**self.policies, **more})

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each record, members first: ``loss``, ``member`` (1 or 0), the labels and ``loss.POLICY``.

        Runs that their evidence stopped have a column ``stopped_by_evidence`` of ones, and scores of an attack a column such as
        ``attack.reference``, which every reader takes back.

        >>> losses = Losses(member=[0.1, 0.2], nonmember=[0.3, 0.1], id=(["a", "b"], ["c", "d"]))
        >>> losses.to_frame().iloc[0].to_dict()
        {'loss': 0.1, 'member': 1, 'id': 'a'}
        """
        import pandas as pd

        membership = np.repeat([1, 0], [self.n_member, self.n_nonmember])
        labels = self.labelled | {OutputPolicy(name).column: pair for name, pair in self.policies.items()}
        losses = np.concatenate([self.member, self.nonmember])
        columns: dict[str, Any] = {"loss": losses, "member": membership}
        columns |= {name: [*pair.member, *pair.nonmember] for name, pair in labels.items()}
        return pd.DataFrame(columns | dict.fromkeys(self.marks, 1))

    @cached_property
    def ids_may_repeat(self) -> bool:
        """Whether an id may occur twice within a group: false only where all are text, or whole numbers, and differ."""
        for column in self.id or ():
            words = column.tolist()
            if set(map(type, words)) == {str}:
                words = [word.strip() for word in words]
            elif column.dtype.kind not in "iu":
                return True
            if len(set(words)) < len(words):
                return True
        return False

    @cached_property
    def sorted_member(self) -> Floats:
        """The member losses in ascending order, computed once."""
        return _sorted(self.member)

    @cached_property
    def sorted_nonmember(self) -> Floats:
        """The non-member losses in ascending order, computed once."""
        return _sorted(self.nonmember)


def _sorted(values: Any) -> Floats:
    result: Floats = values
    if isinstance(values, Counted) or bool((values[1:] >= values[:-1]).all()):
        return result  # as transformed losses are: those of sorted ones by an increasing function
    result = np.sort(values)
    result.setflags(write=False)
    return result


class Density(Protocol):
    """A fitted one-dimensional distribution, evaluated in logs."""

    @property
    def mean(self) -> float:
        """Mean."""

    @property
    def sd(self) -> float:
        """Standard deviation."""

    def log_cdf(self, x: Floats) -> Floats:
        """Return the log of the lower tail."""

    def log_sf(self, x: Floats) -> Floats:
        """Return the log of the upper tail."""

    def quantile(self, probability: Floats) -> Floats:
        """Return the smallest points with at least this much probability at or below them."""

    def spread(self, z: Floats) -> Floats:
        """Return the points at these standard distances from every mean, ascending: dense wherever the density changes."""

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """Test of a fitted density.

    Attributes:
        test: Name of the test.
        statistic: Largest distance of the two distribution functions, in [0, 1].
        p_value: In [0, 1].
        n: Number of held-out records that the fit was tested on.
        level: The fit is rejected when ``p_value < level``.
        paper: The published test of the same fit, which decides nothing, or None.
        distance_p_value: p-value of the distance alone, if ``p_value`` joins it with another test's; None otherwise.
        likelihood_p_value: p-value of that other test, the likelihood ratio against more components; None without one.
    """

    test: str
    statistic: float
    p_value: float
    n: int
    level: float = 0.05
    paper: "GoodnessOfFit | None" = None
    distance_p_value: float | None = None
    likelihood_p_value: float | None = None

    @property
    def rejected(self) -> bool:
        """Whether the fit is rejected at the level."""
        return self.p_value < self.level


@dataclass(frozen=True)
class KSGrid:
    """The published test for every number of components and sample size: Negoescu et al. 2024, Figure 6.

    Attributes:
        components: Numbers of components tried, ascending.
        sample_sizes: Numbers of held-out records compared with as many draws from the fit, ascending.
        p_values: One row for each number of components, one column for each sample size.
        choice_p_values: The p-value of the test that the choice goes by, for 1, 2, ... components, until one survives.
    """

    components: tuple[int, ...]
    sample_sizes: tuple[int, ...]
    p_values: tuple[tuple[float, ...], ...]
    choice_p_values: tuple[float, ...]


@dataclass(frozen=True)
class FittedPair:
    """Two densities, the data that they were fitted on, and whether each survives its test.

    Attributes:
        member: Density of the member losses.
        nonmember: Density of the non-member losses.
        member_fit: The test of the first.
        nonmember_fit: The test of the second.
        n_member: Number of records the first was fitted on.
        n_nonmember: Number of records the second was fitted on.
        transform: Steps applied to the losses.
        member_grid: The published test at several sample sizes, for each number of components that was tried, if
            requested.
        nonmember_grid: Published test of the non-members' fit.
    """

    member: Density
    nonmember: Density
    member_fit: GoodnessOfFit
    nonmember_fit: GoodnessOfFit
    n_member: int
    n_nonmember: int
    transform: str
    member_grid: KSGrid | None = None
    nonmember_grid: KSGrid | None = None

    @property
    def rejected(self) -> bool:
        """Whether either fit is rejected."""
        return self.member_fit.rejected or self.nonmember_fit.rejected


# --- Estimates, claims and checks: the parts of results ---


@dataclass(frozen=True)
class Estimate:
    """One number with everything needed to read it.

    Attributes:
        name: Stable name, for example ``epsilon_bound.clopper_pearson``.
        value: None when it could not be computed; ``details["reason"]`` then says why.
        lower: Lower end of the interval, or None.
        upper: Upper end of the interval, or None.
        confidence: Level of the interval; None means that ``value`` is a point estimate.
        method: How it was computed, in words.
        subject: Whether it is about this model or about the training mechanism.
        delta: The delta it is stated at, or None if there is none.
        adjacency: The neighbouring relation, for a number about the mechanism.
        assumptions: Assumptions of the number.
        details: Everything else, JSON-like.

    Raises:
        InputError: A number about the training mechanism without its adjacency, or one about a model with one: the two
            subjects never share a row.
    """

    name: str
    value: Number | None
    lower: Number | None
    upper: Number | None
    confidence: Confidence | None
    method: str
    subject: Subject
    delta: Delta | None = None
    adjacency: Adjacency | None = None
    assumptions: tuple[str, ...] = ()
    details: Annotated[Mapping[str, Any], Keys(EstimateDetails, loose=True)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.subject is Subject.MODEL and self.adjacency is not None:
            raise InputError(
                f"estimate {self.name!r} is about a model and so has no adjacency, got {self.adjacency!s}; adjacency"
                " belongs to the training mechanism."
            )
        if self.subject is Subject.MECHANISM and self.value is not None and self.adjacency is None:
            raise InputError(
                f"estimate {self.name!r} is about the training mechanism and needs the adjacency it is stated for; give"
                " 'add-remove' or 'replace-one'."
            )

    @classmethod
    def missing(
        cls, name: str, reason: str, *, details: Mapping[str, Any] | None = None, **said: Any
    ) -> "Estimate":
        """Return a row without a value, which says why; the other fields as they are given."""
        details = {**(details or {}), "reason": reason}
        return cls(name, None, None, None, None, details=details, **said)

    @classmethod
    def at_least(cls, name: str, bound: float, *, confidence: float, **said: Any) -> "Estimate":
        """Return a certified lower bound, which is its own value."""
        return cls(name, bound, bound, None, confidence, **said)

    @classmethod
    def point(cls, name: str, value: float, **said: Any) -> "Estimate":
        """Return a point estimate, which has no interval."""
        return cls(name, value, None, None, None, **said)

    def emptied(self, reason: str, **changes: Any) -> "Estimate":
        """Return the row without its value, with the reason, and with other changes."""
        details = {**self.details, "reason": reason}
        without = {"value": None, "lower": None, "confidence": None, "assumptions": (), "details": details}
        return replace(self, **(without | changes))

    @property
    def reason(self) -> str | None:
        """Reason why there is no value, or None."""
        return self.details.get("reason")

    def __float__(self) -> float:
        """Return the value.

        Raises:
            InputError: There is none; the message says why.
        """
        if self.value is None:
            raise InputError(f"estimate {self.name!r} has no value: {self.reason}.")
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """Return the value in a format of numbers, such as ``.3f``."""
        return format(float(self), spec) if spec else str(self)


@dataclass(frozen=True)
class Claim:
    """One number that a training description promises.

    Attributes:
        metric: ``epsilon``, ``bayes_security``, ``advantage`` or another name of `auditor.theory`.
        value: None when it cannot be computed here; ``note`` then says why.
        delta: The delta it is stated at, or None if there is none.
        adjacency: The neighbouring relation.
        method: How it follows from the description, in words.
        proven: False for approximations.
        note: Caveat.
        lower: Lower end of the interval that an exact total variation is known to lie in; None elsewhere.
        upper: Upper end of that interval.
    """

    metric: str
    value: Number | None
    delta: Delta | None
    adjacency: Adjacency
    method: str
    proven: YesOrNo
    note: str = ""
    lower: Number | None = None
    upper: Number | None = None

    @property
    def status(self) -> str:
        """``proven``, or ``approximation`` without a bound on its error.

        >>> Claim("advantage", 0.1, None, Adjacency.REPLACE_ONE, "by hand", proven=False).status
        'approximation'
        """
        return "proven" if self.proven else "approximation"


@dataclass(frozen=True)
class Check:
    """One question about the reliability of an audit; the message is a sentence for a privacy reviewer."""

    name: str
    status: Status
    message: str
    details: Annotated[Mapping[str, Any], Keys(CheckDetails, loose=True)] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A claim beside an estimate.

    Attributes:
        claim: Claim about the training algorithm.
        estimate: Name of the estimate.
        verdict: None where the estimate stands beside the claim and can refute nothing.
        reason: Reason, in a sentence.
        p_value: p-value of the claim, if its test has one: the chance of so much evidence or more if the claim is true, at
            most; None elsewhere.
        e_value: e-value of the claim: evidence that multiplies over audits, above 1/alpha at most with probability alpha.
        subject: Subject of the estimate; by default the mechanism if there is a verdict, otherwise the model.

    Raises:
        InputError: A verdict from a number about the model: only a number about the mechanism can judge a claim on it.
    """

    claim: Claim
    estimate: str
    verdict: Verdict | None
    reason: str
    subject: Subject | None = None
    p_value: Number | None = None
    e_value: Number | None = None

    def __post_init__(self) -> None:
        if self.subject is None:
            vars(self)["subject"] = Subject.MODEL if self.verdict is None else Subject.MECHANISM
        if self.verdict is not None and self.subject is not Subject.MECHANISM:
            raise InputError(
                f"estimate {self.estimate!r} is about the model and gives no verdict on a claim about the training"
                f" mechanism, got {self.verdict!s}; compare the claim with a number about the mechanism."
            )
