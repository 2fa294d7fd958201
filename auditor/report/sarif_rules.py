"""What each kind of finding means and what to do about it: the rules of a SARIF log."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from auditor.report import trust
from auditor.report.summary import told
from auditor.values import Check, Status

__all__ = [
    "CLAIM_REFUTED",
    "CLAIM_UNDECIDED",
    "GATE_TRUE",
    "GATE_UNDECIDED",
    "check_rule",
    "message",
    "rules",
]

CLAIM_REFUTED = "claim/refuted"
CLAIM_UNDECIDED = "claim/undecided"
GATE_TRUE = "gate/failed"
GATE_UNDECIDED = "gate/not-evaluable"
_CHECK = "check/"
_LONGEST_NAME = 100


@dataclass(frozen=True)
class _Rule:
    name: str
    short: str
    help: str
    level: str


_RULES = {
    CLAIM_REFUTED: _Rule(
        "ClaimRefuted",
        "The claimed privacy of the training algorithm is refuted.",
        "A certified lower bound on the training algorithm's epsilon exceeds the claim, at the stated confidence and at the"
        " same delta and adjacency. Look for a fault in the training code or in the accounting, and correct the claim.",
        "error",
    ),
    CLAIM_UNDECIDED: _Rule(
        "ClaimUndecided",
        "The claimed privacy of the training algorithm could not be judged.",
        "Membership was not random, a validity check failed, or the audit had too little power. The claim is neither refuted"
        " nor supported. Audit a model whose training records were drawn at random and declare that split, or score more"
        " records.",
        "warning",
    ),
    GATE_TRUE: _Rule(
        "GateFailed",
        "A gate of the pipeline is true, so the pipeline stops.",
        "The condition that was to stop the pipeline holds for this audit. Read the report, and either change the model or"
        " agree on another gate.",
        "error",
    ),
    GATE_UNDECIDED: _Rule(
        "GateNotEvaluable",
        "A gate of the pipeline asks for what this audit cannot answer, so it does not pass.",
        "The number is missing, the verdict is undecided, a validity check failed, or the audit could not have shown what the"
        " gate asks for. Mend the audit, score more records, or ask for a number that it has.",
        "error",
    ),
}


def check_rule(name: str) -> str:
    """Return the id of the rule of a check.

    >>> check_rule("goodness_of_fit")
    'check/goodness-of-fit'
    """
    return _CHECK + (told(name, longest=_LONGEST_NAME).replace("_", "-") or "unnamed")


def message(words: str) -> str:
    r"""Return words as the text of a message, in which a link and a placeholder are text too (3.11.5 and 3.11.6).

    >>> message("[x](http://y) {0}")
    '\\[x\\](http://y) {{0}}'
    """
    text = re.sub(r"\{(\d+)\}", r"{{\1}}", told(words))
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text) if "[" in text else text


def rules(used: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rules of these ids, in their order."""
    return [_descriptor(name, _RULES.get(name) or _of_check(name)) for name in used]


def _of_check(rule: str) -> _Rule:
    name = rule.removeprefix(_CHECK)
    asked = trust.check(Check(name.replace("-", "_"), Status.UNKNOWN, ""), {})["question"]
    question = asked or "Does this audit deserve trust?"
    return _Rule(
        "Check" + "".join(word.capitalize() for word in name.split("-") if word.isalnum()),
        f"Whether the audit can be trusted, check {name}: {question}",
        "A failed check can leave the numbers without their meaning; a warning says what to keep in mind; an unknown outcome"
        " says what was not looked at. The message says what was found and what to do.",
        "warning",
    )


def _descriptor(rule: str, words: _Rule) -> dict[str, Any]:
    return {
        "id": rule,
        "name": words.name,
        "shortDescription": {"text": message(words.short)},
        "fullDescription": {"text": message(f"{words.short} {words.help}")},
        "help": {"text": words.help, "markdown": words.help},
        "defaultConfiguration": {"level": words.level},
        "properties": {"tags": ["privacy", "membership-inference"], "problem.severity": words.level},
    }
