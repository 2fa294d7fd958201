"""Facts as enums: named facts about an audit; the words for them are made in `auditor.report`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from auditor.core import validate
from auditor.core.errors import InputError


class Named(StrEnum):
    """Choices by name; an error calls them by the last word of the class."""

    @classmethod
    def named(cls, name: object) -> Self:
        """Return the choice of this name.

        Raises:
            InputError: There is none of it.
        """
        what = re.findall("[A-Z][a-z]*", cls.__name__)[-1].lower()
        return cls(validate.one_of(what, name, [str(item) for item in cls]))


class Adjacency(Named):
    """Relation between neighbouring training sets.

    >>> Adjacency("replace-one") == "replace-one"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Decision(Named):
    """Outcome of a review of a release, in the terms of trusted research environments."""

    RELEASE = "release"
    REVISE = "revise"
    REFUSE = "refuse"


class Basis(Named):
    """Part of an interval that meets a limit: all of it, the estimate alone, its safer end alone, or neither all nor nothing."""

    ALL = "all"
    POINT = "point estimate"
    SAFER_END = "safer end"
    PART = "part"


class Severity(Named):
    """Size of a leak, from the lower limit of the membership advantage."""

    NONE = "none shown"
    SLIGHT = "slight"
    MARKED = "marked"
    SEVERE = "severe"


class Attack(Named):
    """Kinds of attack that a reviewer expects."""

    LOSS = "loss"
    LABEL = "label"
    ESTIMATED = "estimated"
    REFERENCE = "reference"
    ATTRIBUTE = "attribute"
    TRAINING_LABELS = "training_labels"
    EXTRACTION = "extraction"
    INVERSION = "inversion"
    RECONSTRUCTION = "reconstruction"
    SYNTHETIC = "synthetic"
    FILE = "file"

    @property
    def column(self) -> str:
        """The column of a table that marks the records that were attacked."""
        return f"attack.{self}"


class AttackState(Named):
    """State of an attack."""

    RUN = "run"
    NOT_RUN = "not run"
    NOT_APPLICABLE = "not applicable"


Attacks = Mapping[Attack, AttackState]
_OF_ANSWERS = (
    Attack.LOSS,
    Attack.LABEL,
    Attack.TRAINING_LABELS,
    Attack.EXTRACTION,
    Attack.INVERSION,
    Attack.FILE,
)


def attack_states(attacks: Attacks) -> dict[Attack, AttackState]:
    """Return the state of each attack, from the names of both."""
    return {Attack.named(name): AttackState.named(state) for name, state in dict(attacks).items()}


def all_attacks(attacks: Attacks) -> dict[str, str]:
    """Return the state of every attack, by name.

    The attack by the loss was run if no other was: a search of the file needs no losses, and chances of extraction are losses
    too. Attacks on the answers of a model are not applicable to a synthetic table.
    """
    run = {name for name, state in attacks.items() if state == AttackState.RUN}
    run -= {Attack.FILE, Attack.EXTRACTION}
    others = dict.fromkeys(_OF_ANSWERS, AttackState.NOT_APPLICABLE) if Attack.SYNTHETIC in run else {}
    states = {**others, **({} if run else {Attack.LOSS: AttackState.RUN}), **attacks}
    return {str(name): str(states.get(name, AttackState.NOT_RUN)) for name in Attack}


@dataclass(frozen=True)
class Secrets:
    """Facts about the sampling of secrets, of losses that are negative logs of its chances.

    Attributes:
        space: Number of secrets that the template of theirs allows, each as likely as another; None if it is not known.
    """

    space: int | None = None


@dataclass(frozen=True)
class SyntheticTable:
    """Facts about a released table, of losses that are distances to its rows.

    Attributes:
        rows: Released rows.
        copies: Members and non-members of which the table has an exact copy.
        near: Members and non-members nearer to a released row than 1 in 100 non-members, copies not counted.
        nearer: Share of the released rows that are nearer to a member than to any non-member, of groups of one size.
    """

    rows: int
    copies: tuple[int, int]
    near: tuple[int, int]
    nearer: float


# In a leaf of two, each of the two people knows the other's record: the threshold rule of statistical offices, of which some
# require three and others five (Glossary on Statistical Disclosure Control, UNECE/Eurostat 2005).
FEWEST_IN_LEAF = 3


class Carried(Named):
    """Form of the training records in a model's file: as they were, after a transform, or alone in a leaf of a tree."""

    COPIES = "copies"
    TRANSFORMED = "transformed"
    LEAVES = "leaves"


@dataclass(frozen=True)
class CarriedRows:
    """Training records that a model's file carries.

    Attributes:
        part: Class of the part that carries them, such as ``SVC``.
        form: Their form.
        count: Number of rows, or of leaves with fewer than `FEWEST_IN_LEAF` training records.
        of: Number of all leaves; None for rows.

    Raises:
        InputError: A count below 0, or above that of all leaves.
    """

    part: str
    form: Carried
    count: int
    of: int | None = None

    def __post_init__(self) -> None:
        vars(self)["form"] = Carried.named(self.form)
        if self.count < 0 or (self.of is not None and self.of < self.count):
            raise InputError(
                f"count must lie between 0 and the number of all leaves, got {self.count} of {self.of}."
            )


@dataclass(frozen=True)
class Released:
    """Facts about a released model or table that its losses do not hold.

    Attributes:
        secrets: The sampling of secrets, if the losses are of it.
        table: The synthetic table, if one was released.
        rows: Training records in the model's file.
    """

    secrets: Secrets | None = None
    table: SyntheticTable | None = None
    rows: tuple[CarriedRows, ...] = ()


def released_of(values: "Released | Mapping[str, Any]") -> Released:
    """Return the facts from JSON-like values.

    Raises:
        ValueError: Values of another form.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(Released).validate_python(values)


class Tail(Named):
    """The end of the losses at which a threshold lies: members are called below it, or non-members above it."""

    LOWER = "lower"
    UPPER = "upper"


class Disclosure(Named):
    """Audience of a result.

    ``PUBLIC`` results show nothing that few records make: see `auditor.results.disclosure`. ``INSIDERS`` results have every
    digit and every view, from which records of the audit can be recognised.
    """

    PUBLIC = "public"
    INSIDERS = "insiders"


class PrivacyUnit(Named):
    """Unit of neighbouring training sets: one record, or all records of one person.

    >>> PrivacyUnit("person") == "person"
    True
    """

    RECORD = "record"
    PERSON = "person"

    def ending(self, records: int | None = None) -> str:
        """Return the end of a claim in words: empty for the usual unit."""
        if self is PrivacyUnit.RECORD:
            return ""
        some = "" if records == 1 else "s"
        return ", per person" + ("" if records is None else f" of up to {records:,} record{some}")
