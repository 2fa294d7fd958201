"""The choices that change a number, as values: declarations, and rules.

A choice is data; the computations are elsewhere. Each is checked when it is built.
"""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

from auditor.core import validate
from auditor.core.claims import (
    DPSGD as DPSGD,
    SAMPLERS as SAMPLERS,
    FixedSizeSampling as FixedSizeSampling,
    Phase as Phase,
    PoissonSampling as PoissonSampling,
    Sampling as Sampling,
    ShuffledBatches as ShuffledBatches,
    StatedClaim as StatedClaim,
    StatedCurve as StatedCurve,
    TrainingClaim as TrainingClaim,
    delta_of as delta_of,
    delta_or_that_of as delta_or_that_of,
    for_equal_groups as for_equal_groups,
    for_persons as for_persons,
    of_group as of_group,
)
from auditor.core.errors import InputError
from auditor.core.facts import (
    Adjacency as Adjacency,
    Disclosure as Disclosure,
    Named as Named,
    PrivacyUnit as PrivacyUnit,
)
from auditor.core.numbers import plain

# --- Scored members ---


@dataclass(frozen=True)
class Sample:
    """The scored members are a random sample of the training set (or stand for a wider one).

    The member loss distribution is then estimated, and its uncertainty is part of every bound.
    """


@dataclass(frozen=True)
class Census:
    """Every training record was scored, so the member loss distribution is known exactly.

    Bounds then compare this finite training set with the population: they can be positive without any leakage.
    """


@dataclass(frozen=True)
class Subset:
    """The scored members were drawn at random, without repetition, from a training set of ``of`` records.

    Bounds then speak of that training set, as in a `Census`, with hypergeometric limits in place of binomial ones; a
    miss rate below one training record counts as one record. Intervals without a form for it treat it as a `Sample`.

    >>> Subset(of=50_000)
    Subset(of=50000)
    """

    of: int

    def __post_init__(self) -> None:
        vars(self)["of"] = validate.at_least("of", self.of, least=2)


Coverage = Sample | Census | Subset


# --- How membership was decided ------------------------------------------------------------------


@dataclass(frozen=True)
class UnknownSplit:
    """Nothing is declared about how membership was decided: no statement about the mechanism."""


@dataclass(frozen=True)
class RandomSplit:
    """A uniformly random split into members and non-members of fixed sizes (a shuffled ``train_test_split``).

    Given an unordered pair of one member and one non-member, which of them is the member is a fair coin:
    the replace-one adjacency. Not for splits by time, by source, after deduplication across the split, or for a
    hold-out that was used for early stopping.

    A stratified split fixes the numbers in each stratum, which ties the coins of different strata together: say
    ``stratified=True`` and give the strata as the ``group`` of the losses; pairs are then drawn within strata.

    >>> RandomSplit(stratified=True)
    RandomSplit(stratified=True)
    """

    stratified: bool = False

    def __post_init__(self) -> None:
        validate.instance("stratified", self.stratified, (bool,))


@dataclass(frozen=True)
class BernoulliSplit:
    """Each record was included by an independent coin of probability ``inclusion`` (for example a salted hash).

    The add/remove adjacency. ``inclusion`` lies in (0, 1): one number for all records, or a pair of columns (members,
    non-members) aligned with the losses where records had odds of their own, as by Poisson sampling within strata; None
    for the ``inclusion`` of the losses, or fair coins where they have none. Strata of fixed sizes, draws without
    replacement and bootstraps are no independent coins. Score every record that had a coin, or a sample of them drawn
    without looking at membership: a balanced sample of unbalanced coins has other odds.

    >>> BernoulliSplit(([0.2, 0.5], [0.5, 0.2, 0.2]))
    BernoulliSplit(inclusion=((0.2, 0.5), (0.5, 0.2, 0.2)))
    """

    inclusion: float | tuple[Sequence[float], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.inclusion, tuple | list):
            sides = zip(("member", "non-member"), validate.pair("inclusion", self.inclusion), strict=True)
            columns = (validate.coin_column(f"{side} inclusion", column) for side, column in sides)
            vars(self)["inclusion"] = tuple(tuple(column.tolist()) for column in columns)
        elif self.inclusion is not None:
            validate.fraction("inclusion", self.inclusion)


@dataclass(frozen=True)
class Propensity:
    """Nobody decided by chance who was a member: a classifier of the features estimates each record's odds of it.

    The features must hold all that the score uses of a record, its label too. A random half of the records is learnt from,
    the other is audited where the estimated odds lie between ``overlap`` and 1 - ``overlap``, which is in (0, 0.5). The bound
    holds if the estimated odds are right, which no audit can check: it refutes no claim.

    ``features`` may be given here or to `auditor.audit`.

    >>> Propensity(overlap=0.2)
    Propensity(overlap=0.2)
    """

    features: Any = field(default=None, repr=False)
    overlap: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < validate.number("overlap", self.overlap) < 0.5:  # noqa: PLR2004
            raise InputError(f"overlap must lie in (0, 0.5), got {self.overlap:g}.")


MembershipSplit = UnknownSplit | RandomSplit | BernoulliSplit | Propensity


def stratified(split: MembershipSplit) -> bool:
    """Return whether a random split was stratified."""
    return isinstance(split, RandomSplit) and split.stratified


NO_CHANCE = (UnknownSplit, Propensity)
"""Splits of which it is not declared that chance decided: nothing of them refutes a claim on the training algorithm."""


@dataclass(frozen=True)
class IndependentRuns:
    """Several models were trained apart, so that the pairs (or the coins) of all of them are one audit together.

    It declares that the split of each model was drawn again, independently of all others, and of all other records;
    that no two training runs shared a seed or any other randomness, none was started from another's weights, and none was
    kept or left out for its result; and that pairs are drawn again in each. The same records may occur in several.
    It is not so for the folds of a cross-validation, nor for a split and its complement: there each record's coin decides
    about several models.
    """


# --- How two counts become a bound on a ratio of rates ---------------------------------------------


@dataclass(frozen=True)
class ClopperPearson:
    """One exact limit for each of the two rates (Clopper and Pearson 1934), half of the error each."""


@dataclass(frozen=True)
class Melded:
    """One exact limit for the ratio of the two rates: never below two separate limits, and usually well above.

    At a threshold of fixed rank, the error rate of the ranked group has a known law, so that the hits of the other
    group can be tested against it directly [own]; the construction is that of Fay, Proschan and Brittain 2015.
    """


@dataclass(frozen=True)
class Calibrated:
    """Every rank of both tails at once, calibrated together: the largest epsilon that the whole of the scores refutes.

    The statistic is the largest melded bound of one rank, and its law the least favourable one at any confidence, by exact sums
    or by drawn audits whose error is counted in full. The bound is not below that of `Melded`, which takes its place for a `Subset`
    at an error below .01.

    See `auditor.estimators.exact_test`.
    """


_INTERVALS: dict[str, Callable[..., Any]] = {
    "calibrated": Calibrated,
    "clopper-pearson": ClopperPearson,
    "melded": Melded,
}


# --- How a certified bound picks its threshold ----------------------------------------------------


@dataclass(frozen=True)
class RankGrid:
    """Thresholds at order statistics whose ranks are fixed before the data are seen.

    `Calibrated`, the default, looks at ranks 3% apart, the others at {0} and round(1.5^j) < n/2.

    ``tails`` is ``"both"``, ``"lower"`` (members are those with low loss) or ``"upper"`` (non-members are those
    with high loss); both tails share the error probability. ``interval`` is `Calibrated`, `ClopperPearson` or `Melded`, or
    its name.

    >>> RankGrid("lower", interval="melded")
    RankGrid(tails='lower', interval=Melded())
    """

    tails: str = "both"
    interval: Any = Calibrated()  # a value once built

    def __post_init__(self) -> None:
        validate.one_of("tails", self.tails, ("both", "lower", "upper"))
        vars(self)["interval"] = chosen("interval", self.interval, _INTERVALS)


@dataclass(frozen=True)
class FixedThreshold:
    """A threshold chosen without looking at these losses: "member" if loss <= ``threshold``.

    >>> FixedThreshold(0.7).threshold
    0.7
    """

    threshold: float

    def __post_init__(self) -> None:
        validate.number("threshold", self.threshold)


@dataclass(frozen=True)
class Split:
    """The threshold is chosen on a random ``fraction`` of each group and judged on the rest.

    >>> Split(0.5, seed=0)
    Split(fraction=0.5, seed=0)
    """

    fraction: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        validate.fraction("fraction", self.fraction)
        validate.at_least("seed", self.seed, least=0)


ThresholdRule = RankGrid | FixedThreshold | Split


# --- Unit of the audit ---


class Rows(Named):
    """Meaning of several rows with one id.

    >>> Rows("scorings") == "scorings"
    True
    """

    RECORDS = "records"  # each was a training record, or nobody says: a claim is judged for groups of so many
    SCORINGS = "scorings"  # of one training record: a claim is judged as it is


@dataclass(frozen=True)
class _Units:
    """Rule that combines several rows into one score.

    Attributes:
        by: ``mean`` (default), ``min`` or ``max`` of their losses.
        rows: ``"records"`` (default) where each of the rows of an id was a training record, or it is not known;
            ``"scorings"`` where all of them are scorings of one training record, such as repeated queries.
    """

    by: str = "mean"
    rows: Rows = Rows.RECORDS

    def __post_init__(self) -> None:
        validate.one_of("by", self.by, ("min", "mean", "max"))
        vars(self)["rows"] = Rows.named(self.rows)


@dataclass(frozen=True)
class EachRecord(_Units):
    """Every record is a unit of its own, also where a person has several; the rows of one id become one score.

    A claim for single records is judged in its form for groups of as many rows as an id has at most, unless ``rows`` says
    that they are scorings of one training record.

    >>> EachRecord(rows="scorings").by
    'mean'
    """


@dataclass(frozen=True)
class OnePerPerson(_Units):
    """The records of one data subject become one score: the ``by`` (``min``, ``mean`` or ``max``) of their losses.

    Records of one person are not independent, and privacy is promised to people: intervals then count people. People who
    have records in both groups, though membership was decided by person, are left out.

    >>> OnePerPerson("min").by
    'min'
    """


Persons = EachRecord | OnePerPerson


# --- Fitted family ---


@dataclass(frozen=True)
class Mixture:
    """Gaussian mixtures of 1 to ``max_components`` components; the smallest number that is not rejected is taken.

    >>> Mixture(max_components=5)
    Mixture(max_components=5)
    """

    max_components: int = 20

    def __post_init__(self) -> None:
        vars(self)["max_components"] = validate.at_least("max_components", self.max_components, least=1)


# --- How the guesses of a one-run audit are judged -------------------------------------------------


@dataclass(frozen=True)
class FDP:
    """The recursion of Mahloujifar, Melis and Chaudhuri 2024, on a fixed list of orders and numbers of guesses that share the error.

    It also judges a claim's whole curve.
    """


@dataclass(frozen=True)
class AnyGuesses:
    """Every order and number of guesses of the list, calibrated together; delta 0 only [own].

    It judges no claim with a delta: for one leave the test out, or take `FDP`.
    """


OneRunTest = FDP | AnyGuesses


# --- Utility of the model ---


@dataclass(frozen=True)
class Utility:
    """Performance of the model at its task, for the privacy-utility landscape of several audits.

    Attributes:
        value: Finite.
        name: Name of the measure, for example ``test accuracy``.
        higher_is_better: Whether a larger value is a better model.

    Raises:
        InputError: The value is no finite number, or the name is no text, empty or of more than 1,000 characters.

    >>> Utility(0.87, "test accuracy")
    Utility(value=0.87, name='test accuracy', higher_is_better=True)
    """

    value: float
    name: str = "utility"
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        vars(self)["value"] = validate.number("utility", self.value)
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"utility name must be a text such as 'test accuracy', got {self.name!r}.")
        validate.name("utility name", self.name)
        validate.instance("higher_is_better", self.higher_is_better, (bool,))

    @classmethod
    def from_text(cls, text: str) -> "Utility":
        """Return the utility that a text states: its value, and after colons its name and ``lower`` where less is better.

        Raises:
            InputError: The value is no number, or the last part something else.

        >>> Utility.from_text("0.13:test error:lower")
        Utility(value=0.13, name='test error', higher_is_better=False)
        """
        value, name, better = (*text.split(":"), "", "")[:3]
        if text.count(":") > 2 or better not in ("", "lower", "higher"):  # noqa: PLR2004
            raise InputError(f"utility must be VALUE, VALUE:NAME or VALUE:NAME:lower, got {text!r}.")
        return cls(value, name or "utility", higher_is_better=better != "lower")  # type: ignore[arg-type]  # read as a number


# --- Declared context of the release, for a reviewer ---


@dataclass(frozen=True)
class Context:
    """Declared context of a model's release. No number depends on it, and nothing in it is inferred.

    Fields that are left out are shown as "not stated".

    Attributes:
        release: ``internal``, ``API``, ``open weights``, or other words.
        exposed: Exposed outputs, such as labels, probabilities or weights.
        query_limits: Query limits for one caller.
        privacy_unit: Privacy unit, such as a record, a person or a household.
        attacker: Assumed knowledge and access of an attacker.
        mitigations: Mitigations of leakage.
        owner: Person or team responsible for the model.
        next_audit: When the next audit is due, as YYYY-MM-DD; a `datetime.date` goes in too.

    Raises:
        InputError: A field that is no text, empty or of more than 1,000 characters, or a date that is none.

    >>> Context(release="API", next_audit="2027-01-31").next_audit
    '2027-01-31'
    """

    release: str | None = None
    exposed: str | None = None
    query_limits: str | None = None
    privacy_unit: str | None = None
    attacker: str | None = None
    mitigations: str | None = None
    owner: str | None = None
    next_audit: str | dt.date | None = None  # a text once built

    def __post_init__(self) -> None:
        if self.next_audit is not None:
            vars(self)["next_audit"] = _day(str(self.next_audit))
        for name, value in vars(self).items():
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise InputError(
                    f"{name} of the context must be a text that is not empty, got {value!r:.80}."
                )
            validate.name(f"{name} of the context", value)

    @classmethod
    def from_table(cls, raw: object, *, named: str) -> "Context":
        """Return the context that a file states, its keys spelled with dashes or with underscores.

        Args:
            raw: A table of texts, as a TOML or JSON reader returns it.
            named: Name in error sentences.

        Raises:
            InputError: It is no table, has a key that is none or one twice, or a value that is none.
        """
        if not isinstance(raw, Mapping):
            raise InputError(f"{named} must be a table of texts, got {raw!r:.80}.")
        options = [item.name for item in fields(cls)]
        keys = [validate.one_of(f"{named}: the key", str(key)[:80].replace("-", "_"), options) for key in raw]
        stated = dict(zip(keys, raw.values(), strict=True))
        if len(stated) < len(raw):
            raise InputError(f"{named} states a field twice, with a dash and with an underscore; keep one.")
        try:
            return cls(**stated)
        except InputError as error:
            raise InputError(f"{named}: {error}") from None


def _day(text: str) -> str:
    try:
        return dt.datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        raise InputError(
            f"next_audit of the context must be a date such as 2027-01-31, got {text!r:.80}."
        ) from None


# --- Choices as text, as a command line or a file of settings names them ----------------------------------------------

SPLITS: dict[str, Callable[..., MembershipSplit]] = {
    "unknown": UnknownSplit,
    "random": RandomSplit,
    "bernoulli": BernoulliSplit,
    "propensity": Propensity,
}
COVERAGES: dict[str, Callable[..., Coverage]] = {"sample": Sample, "census": Census, "subset": Subset}
THRESHOLDS: dict[str, Callable[..., ThresholdRule]] = {
    "rank-grid": RankGrid,
    "melded": partial(RankGrid, interval=Melded()),
    "clopper-pearson": partial(RankGrid, interval=ClopperPearson()),
    "fixed": FixedThreshold,
    "split": Split,
}
UNITS: dict[str, Callable[..., Persons]] = {
    "each": partial(EachRecord, "mean"),
    **{by: partial(OnePerPerson, by) for by in ("mean", "min", "max")},
}
ONE_RUN_TESTS: dict[str, Callable[..., OneRunTest]] = {"f-dp": FDP, "any-guesses": AnyGuesses}
TOGETHER: dict[str, Callable[..., IndependentRuns]] = {"independent-runs": IndependentRuns}


def from_text(name: str, value: Any, kinds: Mapping[str, Callable[..., Any]]) -> Any:
    """Return a choice that a text names, such as ``bernoulli:0.3`` or ``random:stratified``; anything else as it is.

    After the colon stand the fields of the choice, with commas between: ``name=value``, a value alone for the next field,
    or the name of a field alone where that is to be true.

    Args:
        name: The argument, for error sentences.
        value: A text, or a choice already.
        kinds: The choices by their names.

    Raises:
        InputError: A text that names no choice, or not with these fields.

    >>> from_text("split", "propensity:overlap=0.2", SPLITS)
    Propensity(overlap=0.2)
    """
    if not isinstance(value, str):
        return value
    word, _, rest = value.partition(":")
    kind = kinds[validate.one_of(name, word.strip(), kinds)]
    made: Any = getattr(kind, "func", kind)
    taken = len(getattr(kind, "args", ())), set(getattr(kind, "keywords", ()))
    free = [item.name for item in fields(made) if item.name not in taken[1]][taken[0] :]
    values: dict[str, Any] = {}
    for part in filter(None, map(str.strip, rest.split(","))):
        field_name, sign, text = part.partition("=")
        if not sign and part not in free:
            field_name, text = next((item for item in free if item not in values), ""), part
        if field_name not in free:
            has = f"has the fields {', '.join(free)}" if free else "has no fields"
            raise InputError(f"{name} must be one of {', '.join(kinds)}, and {word!r} {has}, got {value!r}.")
        values[field_name] = _scalar(text) if text else True
    try:
        return kind(**values)
    except TypeError:
        required = [
            item.name for item in fields(made) if item.default is MISSING and item.default_factory is MISSING
        ]
        raise InputError(
            f"{name} {word!r} needs {' and '.join(required)}, as in '{word}:VALUE', got {value!r}."
        ) from None


def chosen(name: str, value: Any, kinds: Mapping[str, Callable[..., Any]], *, optional: bool = False) -> Any:
    """Return one of these choices, also by its name as in `from_text`, or None if it is ``optional``.

    Raises:
        InputError: As `from_text`; or a value of another type.
    """
    result = from_text(name, value, kinds)
    types: list[Any] = [getattr(kind, "func", kind) for kind in kinds.values()]
    validate.instance(name, result, [*dict.fromkeys(types), *([type(None)] if optional else [])])
    return result


def name_of(choice: object, kinds: Mapping[str, Any]) -> str:
    """Return the name of a choice among these classes.

    >>> name_of(Census(), COVERAGES)
    'census'
    """
    return next(name for name, kind in kinds.items() if type(choice) is kind)


def _scalar(text: str) -> Any:
    """Return a number where the text is one."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


# --- Choices as JSON, so that an audit can be made again --------------------------------------------


def stored(choice: Any) -> Any:
    """Return a choice as JSON holds it: its class by name, and its fields.

    >>> stored(RandomSplit(stratified=True))
    {'choice': 'RandomSplit', 'stratified': True}
    """
    if not is_dataclass(choice):
        return json.loads(json.dumps(plain(choice), default=float))  # a decimal is a number too
    result = {item.name: stored(getattr(choice, item.name)) for item in fields(choice)}
    return {"choice": type(choice).__name__, **result}


def restored(raw: Any) -> Any:
    """Return the choice that `stored` made JSON of; only classes of this module are built, whatever the JSON names.

    Raises:
        InputError: There is no such choice, or not with these fields.

    >>> restored({"choice": "RankGrid", "tails": "lower", "interval": {"choice": "Melded"}})
    RankGrid(tails='lower', interval=Melded())
    """
    if isinstance(raw, list):
        return tuple(map(restored, raw))
    if not isinstance(raw, dict):
        return raw
    made = _STORED[validate.one_of("stored choice", raw.get("choice"), _STORED)]
    try:
        return made(**{key: restored(value) for key, value in raw.items() if key != "choice"})
    except TypeError as error:
        raise InputError(f"stored choice cannot be made again: {validate.one_line(error)}.") from None


_STORED: dict[str, Any] = {name: item for name, item in globals().items() if is_dataclass(item)}
