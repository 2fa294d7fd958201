"""The limits of a release: a policy that must hold, gates that must not, and the decision that follows.

A policy is a list of conditions with semicolons between, such as ``advantage.upper < 0.1; no group above 0.2; claim not
refuted``; each is read as a gate on the opposite. ``no group above 0.2`` is a policy on ``group.advantage.upper``.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.core import Decision, ExitCode, InputError, Verdict, numbers
from auditor.core.facts import Carried
from auditor.results.document import Document
from auditor.results.metrics import is_known, metric
from auditor.verdicts.gates import (
    ALTERED,
    GROUP,
    LONGEST,
    OPPOSITE,
    PATTERN,
    Gate,
    GateOutcome,
    Gates,
    as_gates,
    judged,
    parse,
)
from auditor.verdicts.severities import cut_points

_MOST_CONDITIONS = 100


_CLAUSES = {
    r"no (?:group|class) above (\S+)": f"{GROUP}advantage.upper <= {{}}",
    r"(?:the )?claim (?:is )?not refuted": "verdict != refuted",
}


def parse_policy(text: str) -> list[Gate]:
    """Read a policy, which states what must hold, as gates on the opposite.

    Raises:
        InputError: It has no condition, or one is not NAME OPERATOR NUMBER, ``verdict`` or ``checks.NAME`` with == or !=
            and a word, ``no group above NUMBER`` or ``claim not refuted``.

    >>> [(gate.name, gate.symbol) for gate in parse_policy("advantage.upper < 0.1; no group above 0.2; claim not refuted")]
    [('advantage.upper', '>='), ('group.advantage.upper', '>'), ('verdict', '==')]
    """
    parts = re.split(r"[;\n]", text) if isinstance(text, str) else []
    clauses = [" ".join(part.split()) for part in parts if part.strip()]
    if len(clauses) > _MOST_CONDITIONS:
        raise InputError(
            f"policy must have at most {_MOST_CONDITIONS} conditions, got {len(clauses):,}; join or drop some."
        )
    if not clauses:
        raise InputError(
            "policy must be conditions that must hold, with semicolons between, such as 'advantage.upper < 0.1; no group"
            f" above 0.2; claim not refuted', got {numbers.clean(repr(text), most=LONGEST)}."
        )
    return [_opposite(clause) for clause in clauses]


def _opposite(clause: str) -> Gate:
    whole = clause
    for pattern, meaning in _CLAUSES.items():
        if match := re.fullmatch(pattern, clause, re.IGNORECASE):
            whole = meaning.format(*match.groups())
    if not PATTERN.fullmatch(whole):
        raise InputError(
            "policy must have conditions such as 'advantage.upper < 0.1', 'no group above 0.2' or 'claim not refuted', with"
            f" semicolons between, got {numbers.clean(repr(clause), most=LONGEST)}."
        )
    gate = parse(clause, meaning=whole)
    _refuse_backwards(gate)
    return replace(gate, symbol=OPPOSITE[gate.symbol], is_policy=True)


_MIRRORED = str.maketrans("<>", "><")


def _refuse_backwards(condition: Gate) -> None:
    """Raise an error for a condition that demands leakage, as one does that was meant as a gate."""
    name = re.sub(r"\.(value|lower|upper|add-remove|replace-one)", "", condition.name.removeprefix(GROUP))
    more = metric(name).more_is_worse
    if is_known(name) and condition.symbol in ((">", ">=") if more else ("<", "<=")):
        right = f"{condition.name} {condition.symbol.translate(_MIRRORED)} {numbers.number(float(condition.bound), digits=17)}"
        raise InputError(
            f"policy must state what has to hold, and {condition.text!r} demands leakage, since a {'larger' if more else 'smaller'}"
            f" {name} is worse; write {right!r}."
        )


def limits(data: Mapping[str, Any]) -> list[Gate]:
    """Return the conditions of the policy and the gates that the data of a result hold.

    Raises:
        InputError: One cannot be read.
    """
    policy, gates = data.get("policy"), data.get("gates")
    if data.get("severity") is not None:
        cut_points(data["severity"])
    return [*([] if policy is None else parse_policy(policy)), *([] if gates is None else as_gates(gates))]


def outcomes(result: Document) -> tuple[GateOutcome, ...]:
    """Return the outcome of each limit in the result, and of conditions that always apply.

    Limits in a result from another program may be unreadable; these are undecided.
    """
    try:
        of_limits = judged(result, limits(result.data))
    except InputError as error:
        of_limits = (_open("the limits of this result", str(error)),)
    return (*of_limits, *_standing(result), *(_of_the_file(result) if of_limits else ()))


def _standing(result: Document) -> tuple[GateOutcome, ...]:
    """Return the conditions that always stop a release: an altered result, or a claim that could not be judged."""
    claimed = result.kind != "claim" and bool(result.claims or result.comparisons)
    settled = not claimed or result.verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED)
    if result.altered:
        return (_open("the result is as it was written", ALTERED),)
    if settled or result.data.get("allow_unjudged"):
        return ()
    reasons = (item.reason for item in result.comparisons if item.verdict is result.verdict)
    reason = next(reasons, "no measurement is about the training algorithm")
    words = f"The claim could not be judged (allow_unjudged lets it pass): {reason}"
    return (_open("the claim is judged", words, Verdict.NOT_EVALUABLE),)


def _of_the_file(result: Document) -> tuple[GateOutcome, ...]:
    """Return the condition that a file carries no training records, unless answers alone are declared to be released."""
    rows = (result.data.get("released") or {}).get("rows") or ()
    release = (result.data.get("context") or {}).get("release")
    carried = [item for item in rows if item and item.get("form") in (Carried.COPIES, Carried.TRANSFORMED)]
    if not carried or str(release).strip().lower() == "api":
        return ()
    words = "The file carries training records; release the answers alone (context release API), or a model that keeps no records"
    return (_open("the file carries no training records", words),)


def _open(text: str, why: str, bound: float | Verdict = math.nan) -> GateOutcome:
    """Return the outcome of a condition that is not a written limit and stops a release."""
    return GateOutcome(Gate(text, "", "==", bound), ExitCode.NOT_EVALUABLE, None, numbers.sentence(why))


_DECISIONS = {
    ExitCode.DONE: Decision.RELEASE,
    ExitCode.FAILED: Decision.REFUSE,
    ExitCode.NOT_EVALUABLE: Decision.REVISE,
}


def decision(result: Document, of_limits: Sequence[GateOutcome]) -> Decision | None:
    """Return the decision on a release; None if no limit was set and nothing stops it."""
    code = exit_code(result, of_limits)
    return _DECISIONS[code] if of_limits or code else None


def exit_code(result: Document, outcomes: Iterable[GateOutcome]) -> ExitCode:
    """Return the exit code of an audit: a refuted claim fails with or without a gate."""
    codes = {outcome.code for outcome in outcomes}
    if result.verdict is Verdict.REFUTED or ExitCode.FAILED in codes:
        return ExitCode.FAILED
    return ExitCode.NOT_EVALUABLE if ExitCode.NOT_EVALUABLE in codes else ExitCode.DONE


def with_limits(
    result: Any,
    policy: str | None = None,
    gates: Gates = (),
    *,
    allow_unjudged: bool = False,
    severity: Sequence[float] | str | None = None,
) -> Any:
    """Return a result with the limits of a release; omitted limits stay unchanged.

    Args:
        result: The result of any audit.
        policy: Conditions that must hold, with semicolons between.
        gates: Conditions that must not hold.
        allow_unjudged: Whether a claim that could not be judged stops no release.
        severity: Lower limits of the advantage from which a leak is slight, marked and severe.

    Raises:
        InputError: A condition cannot be read, or names no number of this audit; or the limits of severity do not increase
            from 0 to 1.
    """
    more: dict[str, Any] = {}
    if policy is not None:
        judged(result, parse_policy(policy))
        more["policy"] = policy
    if gates:
        read = as_gates(gates)
        if wrong := [item.text for item in read if item.is_policy]:
            raise InputError(
                f"gates must be conditions that must not hold, got the policy {wrong[0]!r}; give it as policy."
            )
        judged(result, read)
        more["gates"] = [item.text for item in read]
    if allow_unjudged:
        more["allow_unjudged"] = True
    if severity is not None:
        more["severity"] = list(cut_points(severity))
    return replace(result, data={**result.data, **more}) if more else result
