"""What to do about a check that is not fine: fixed words, one for each check and status that can occur."""

from collections.abc import Mapping
from typing import Any

from auditor.report.lookup import dig
from auditor.values import Check, Status

__all__ = ["ADVICE", "advice"]

ADVICE = {
    (
        "collection",
        Status.WARN,
    ): "Mend what was noticed and collect the losses again. Until then read every small number"
    " here as “at least”, and never as reassurance.",
    (
        "direction",
        Status.WARN,
    ): "Look up which file holds the members. If they are the right way round, the column may be"
    " a score: say so with --higher-is-member. If neither is the cause, ask how the model was trained, for members that are"
    " harder than others point to two different populations.",
    (
        "duplicates",
        Status.FAIL,
    ): "Find out how a record came into both groups, remove it and its twins from both, and"
    " audit again. No number here measures leakage before that.",
    (
        "duplicates",
        Status.WARN,
    ): "Keep one record of each kind and audit again. Until then take every interval as too"
    " narrow and the leak as possibly larger.",
    (
        "duplicates",
        Status.UNKNOWN,
    ): "Give the records an id column, or their features, and duplicates will be looked for.",
    (
        "goodness_of_fit",
        Status.WARN,
    ): "Decide by the certified bound and not by Epsilon*. Ask for --mixture, which fits"
    " more flexible curves, and look at the pictures of the fit.",
    (
        "goodness_of_fit",
        Status.UNKNOWN,
    ): "Decide by the certified bound. Audit more records if Epsilon* is needed.",
    (
        "label_shuffle",
        Status.FAIL,
    ): "Do not rely on the certified bound here until records are independent: one score per"
    " person, one of each copy.",
    (
        "label_shuffle",
        Status.UNKNOWN,
    ): "Audit more records: so few cannot show that the method holds its level on them.",
    (
        "persons",
        Status.FAIL,
    ): "Keep equally many records of each person (the first ones, or drawn at random) and audit"
    " again, or count each record with --persons each.",
    (
        "persons",
        Status.WARN,
    ): "Ask for one score per person (--persons mean), keep equally many records of each person, and"
    " split by person so that nobody is in both groups.",
    (
        "persons",
        Status.UNKNOWN,
    ): "Fill the person column for every record. Records without a person count as one person"
    " each, and intervals are too narrow where that is not so.",
    (
        "placebo",
        Status.FAIL,
    ): "Draw the non-members like the members (same time, source and filters) and audit again. No"
    " number here measures leakage before that.",
    (
        "power",
        Status.WARN,
    ): "Audit more records, most of all the rarer kind. Do not read a small bound of this audit as"
    " reassurance: it could hardly have been larger.",
    ("saturation", Status.WARN): "Collect the losses from logits, or in double precision.",
    ("sensitivity", Status.WARN): "Decide by the certified bound, which moves little with single records.",
    (
        "sensitivity",
        Status.UNKNOWN,
    ): "Nothing hangs on this check where Epsilon* has no value: decide by the certified bound.",
    (
        "shift",
        Status.FAIL,
    ): "Draw the non-members like the members (same time, source and filters) and audit again. No"
    " number here measures leakage before that.",
    (
        "shift",
        Status.UNKNOWN,
    ): "Ask how the non-members were chosen. If they come from another time, source or filter than"
    " the training records, do not read these numbers as leakage. With the records' features (--features) a shift will be"
    " looked for.",
    (
        "ties",
        Status.WARN,
    ): "Ask for the model's logits, or for unrounded probabilities of all classes, and audit again.",
}

# For a check that this version does not know, as in a result that another one wrote.
_UNKNOWN = {
    Status.FAIL: "Find the cause and audit again before you rely on the numbers that it concerns.",
    Status.WARN: "Keep this in mind with every number that it concerns.",
    Status.UNKNOWN: "Ask for what is missing, and audit again if a decision hangs on it.",
    Status.OK: "",
}

# For the shift check where the split was declared random.
_DECLARED_RANDOM = (
    "Confirm the declared random split: if the declaration is true, it rules out a shift between the two groups; if it is"
    " not, do not read these numbers as leakage."
)

# For a shift that was found although the split was declared random.
_CONTRADICTED = (
    "The declared random split cannot be true of these records: find out how the groups were made."
)

# For fits of which a mixture is one.
_MIXTURE_REJECTED = (
    "Decide by the certified bound and not by Epsilon*: neither normals nor mixtures describe these losses."
)
_MIXTURE_STANDS = (
    "Decide by the certified bound. The mixture describes the bulk of the losses, but its Epsilon* hangs on few records in"
    " the tails and has no known error."
)


def advice(check: Check, data: Mapping[str, Any]) -> str:
    """Return what to do about a check; nothing where it is fine."""
    if check.status is Status.OK:
        return ""
    own = dig(check.details, "advice")
    if own:
        return str(own)
    if check.name == "shift" and str(data.get("split")) in {"random", "bernoulli"}:
        return _CONTRADICTED if check.status is Status.FAIL else _DECLARED_RANDOM
    if check.name == "goodness_of_fit" and dig(check.details, "mixture"):
        return _MIXTURE_REJECTED if dig(check.details, "mixture", "rejected") else _MIXTURE_STANDS
    return ADVICE.get((check.name, check.status), _UNKNOWN[check.status])
