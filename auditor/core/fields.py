"""Constraints on the fields of a result besides their types: marks for `Annotated`, which `pydantic` reads.

Pydantic is imported when a result is read or its schema is made, and not before: an audit needs nothing of it.
"""

import re
from enum import EnumType
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from auditor.core.lazy import docstring

_INFINITE = ("inf", "-inf")  # as JSON says infinite numbers
_MAY_HOLD_WORDS = frozenset((str, list, dict))


class Must:
    """Constraint on a value besides its type, as arguments of `pydantic.Field`: ``Must(ge=0)``."""

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        annotated: Any = Annotated
        # No text and no truth value is a number.
        strict: dict[str, Any] = {"strict": True} if source in (bool, int, float) else {}
        return handler.generate_schema(annotated[source, Field(**strict, **self.keywords)])


class OrInfinite:
    """Mark of a number that may be infinite, written ``inf`` or ``-inf`` in JSON.

    Attributes:
        least: The smallest that it may be.
    """

    def __init__(self, least: float = -float("inf")) -> None:
        self.least = least

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._number)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        if self.least < 0:
            return {"anyOf": [{"type": "number"}, {"enum": list(_INFINITE)}]}
        return {"anyOf": [{"type": "number", "minimum": self.least}, {"const": "inf"}]}

    def _number(self, value: Any) -> float:
        """Return the number, a whole one as it is."""
        from pydantic_core import PydanticKnownError

        number: Any = restored(value)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise PydanticKnownError("float_type")
        if number < self.least:
            raise PydanticKnownError("greater_than_equal", {"ge": self.least})
        return number


# Limits of a release stay, so that one that cannot be read stops it.
_LIMITS = (("policy",), ("gates",), ("severity",))


class Keys:
    """An open object with these known keys: in a file, a value of the wrong type counts as missing.

    Attributes:
        of: A ``TypedDict`` of them; objects in it take no other keys.
        loose: Whether the schema describes its texts alone, as of details, which are read as far as they are known.
    """

    def __init__(self, of: Any, *, loose: bool = False) -> None:
        self.of, self.loose = of, loose

    @cached_property
    def texts(self) -> set[str]:
        """The keys that hold texts."""
        hints = get_type_hints(self.of).items()
        return {name for name, hint in hints if str in (hint, *get_args(hint))}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_wrap_validator_function(self._read, _object(self.of, handler))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        result: dict[str, Any] = handler(schema)
        if self.loose:
            texts = {name: item for name, item in result["properties"].items() if name in self.texts}
            return {"type": "object", "properties": texts}
        return described(result, self.of)

    def _read(self, value: Any, check: Any) -> dict[str, Any]:
        """Return the object with its numbers, whole ones as they are, and None in place of values of the wrong kind."""
        from pydantic_core import ValidationError

        if not isinstance(value, dict):
            check(value)
        read = {key: item if key in self.texts else restored(item) for key, item in value.items()}
        try:
            check(read)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_context=False, include_input=False):
                if fault["type"] not in ("missing", "extra_forbidden") and fault["loc"][:1] not in _LIMITS:
                    _forget(read, *fault["loc"])
        return read


def _object(of: Any, handler: Any, *, closed: bool = False) -> Any:
    """Return the schema of an object with the keys of a ``TypedDict``: pydantic takes those of `typing` from Python 3.12 on."""
    from pydantic_core import core_schema

    fields = {}
    for name, hint in get_type_hints(of, include_extras=True).items():
        kind = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        required = name in of.__required_keys__
        fields[name] = core_schema.typed_dict_field(_field(kind, handler), required=required)
    extra: Any = "forbid" if closed else "allow"
    return core_schema.typed_dict_schema(fields, extra_behavior=extra, config={"strict": True})


def _field(hint: Any, handler: Any) -> Any:
    from pydantic_core import core_schema

    if isinstance(hint, EnumType):
        words: Any = hint
        return core_schema.literal_schema([str(word) for word in words])
    parts = get_args(hint) or (hint,)
    if not any(map(is_typeddict, parts)):
        return handler.generate_schema(hint)
    if get_origin(hint) is list:
        return core_schema.list_schema(_field(parts[0], handler))
    kinds = [
        _object(part, handler, closed=True) if is_typeddict(part) else handler.generate_schema(part)
        for part in parts
        if part is not NoneType
    ]
    about: Any = {"custom_error_type": "kind", "custom_error_message": "is of another kind"}
    inner = kinds[0] if len(kinds) == 1 else core_schema.union_schema(kinds, **about)
    return core_schema.nullable_schema(inner) if NoneType in parts else inner


def _forget(value: dict[str, Any], key: Any, *path: Any) -> None:
    """Set the present value to None: of a list all of it."""
    inner = value.get(key)
    if path and isinstance(inner, dict):
        _forget(inner, *path)
    else:
        value[key] = None


def restored(value: Any) -> Any:
    """Return numbers again where JSON has the words for infinities."""
    if isinstance(value, str):
        return float(value) if value in _INFINITE else value
    if isinstance(value, dict):
        return {key: restored(item) for key, item in value.items()}
    if not isinstance(value, list) or _MAY_HOLD_WORDS.isdisjoint(map(type, value)):
        return value
    return [restored(item) for item in value]


def described(schema: dict[str, Any], of: Any) -> dict[str, Any]:
    """Return the schema of an object with the descriptions of the keys from the docstring of its type."""
    _, _, section = docstring(of).partition("Attributes:\n")
    lines = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section.split("\n\n")[0], flags=re.MULTILINE)
    words = {name: re.sub(r"\s+", " ", text).replace("``", "") for name, text in lines}
    properties = {
        name: {**item, **({"description": words[name]} if name in words else {})}
        for name, item in schema["properties"].items()
    }
    return {**schema, "properties": properties}


Number = Annotated[float, OrInfinite()]
Finite = Annotated[float, Must(allow_inf_nan=False)]
NotNegative = Annotated[float, Must(ge=0)]
Rate = Annotated[float, Must(ge=0, le=1)]
Confidence = Annotated[float, Must(gt=0, lt=1)]
Delta = Annotated[float, Must(ge=0, lt=1)]
Count = Annotated[int, Must(ge=0)]
YesOrNo = Annotated[bool, Must()]


# --- Details of estimates and checks that are read; each has more ---


class FitOfGroup(TypedDict, total=False):
    """Fitted law of one group, and its test."""

    mean: float
    components: float
    level: float
    ks_statistic: float
    ks_p_value: float
    ks_n: float
    distance_p_value: float
    likelihood_p_value: float


class GridOfGroup(TypedDict, total=False):
    """The published test of one group, as `KSGrid` holds it."""

    components: list[float]
    sample_sizes: list[float]
    p_values: list[list[float | None]]
    choice_p_values: list[float | None]


class Grids(TypedDict, total=False):
    """Grids of both groups."""

    member: GridOfGroup
    nonmember: GridOfGroup


class FitDetails(TypedDict, total=False):
    """The fits behind a parametric estimate."""

    member: FitOfGroup
    nonmember: FitOfGroup
    grid: Grids
    rejected: bool


class Place(TypedDict, total=False):
    """Point of the curve where a supremum is attained."""

    fpr: float
    fnr: float
    reached_by_data: bool
    on_clip: bool


class NoiseFloor(TypedDict, total=False):
    """Values that two groups without any difference would give."""

    mean: float
    q95: float


class Supported(TypedDict, total=False):
    """The supremum at rates that the records can show, of the fit and of logistic laws with its means and spreads."""

    value: float
    logistic: float


class CurvePoint(TypedDict, total=False):
    """Point where the claimed curve was contradicted most; see `auditor.estimators.joint_test.JointTest.point`."""

    tail: str
    alarms: float
    alarms_of: float
    hits: float
    hits_of: float
    rate: float
    allowed: float


class Growth(TypedDict, total=False):
    """The growth of the evidence against a claim: after so many pairs of runs, the log of the e-value."""

    pairs: list[float]
    log_evidence: list[float]


class CurveRejected(TypedDict, total=False):
    """Rejection of the whole trade-off curve of the claimed training, and whether it was possible."""

    rejected: bool
    could_have_been: bool
    decides: bool
    p_value: float
    e_value: float
    needed: float
    reason: str
    refuted_at_pair: float
    growth: Growth
    point: CurvePoint


class Placements(TypedDict):
    """Statistics of the members' and the non-members' placements, for the interval of an AUC.

    The placement of a record is the share of the other group that lies on the right side of it, ties counting half.

    Attributes:
        variances: Variances of their means, as DeLong has them.
        least: The least of each group.
        largest: The largest.
    """

    variances: list[float]
    least: list[float]
    largest: list[float]


class Area(TypedDict):
    """An AUC, or another share, with its interval at the confidence of the audit."""

    value: float
    lower: float
    upper: float


class EstimatedOdds(TypedDict):
    """Estimated odds of membership: numbers of records learnt from, held back and audited.

    Attributes:
        learnt_from: Records that the classifier saw.
        held: The others.
        kept: Those of them with estimated probabilities between the overlap and 1 less the overlap.
        overlap: In (0, 0.5).
        columns: Columns of numbers that the features make.
        used: Number of columns that each classifier used: those that differ most in the records learnt from.
        members: Number of held members with estimated probabilities in each of equal parts of (0, 1).
        others: The same of the non-members.
        by_features: AUC on the kept records by the estimated odds.
        by_losses: AUC on the same by the losses.
        misfit: Nats by which the odds are off in the quarter of the kept records where they fit worst.
    """

    learnt_from: float
    held: float
    kept: float
    overlap: float
    columns: float
    used: float
    members: list[float]
    others: list[float]
    by_features: Area
    by_losses: Area
    misfit: float


class RowDetails(TypedDict, total=False):
    """Details of a row that are read, with its members as draws or not."""

    reason: str
    ceiling: float
    ceiling_of_score: float
    rate: float
    fpr: float
    fpr_upper: float
    tpr_lower: float
    fnr_upper: float
    tnr_lower: float
    rank: float
    lift: float
    clip: float
    unclipped: float
    best_region: float
    scale_free: float
    curve_gap: float
    accuracy_baseline: float
    curve_gap_fpr: float
    standard_error: float
    placements: Placements
    at: Place
    supported: Supported
    noise_floor: NoiseFloor
    fit: FitDetails
    claimed_curve: CurveRejected
    odds: EstimatedOdds


class AsDraws(RowDetails, total=False):
    """A row about a finite training set, with its members as draws."""

    value: float
    lower: float
    upper: float
    assumptions: list[str]


class Extractable(Area):
    """Share of the members whose secret so many tries write with a probability of a half or more, with its interval.

    Attributes:
        extractable: Number of them.
    """

    extractable: float


class EstimateDetails(RowDetails, total=False):
    """Details of estimates that are read."""

    nonmember: Area
    records: Extractable
    finite: bool
    pure: bool
    as_draws: AsDraws


class MixtureTested(TypedDict, total=False):
    """Result of testing the mixture where the normals are rejected."""

    rejected: bool


class CheckDetails(TypedDict, total=False):
    """Details of checks that are read."""

    largest: float
    mixture: MixtureTested
