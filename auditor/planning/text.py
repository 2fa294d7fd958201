"""A plan as lines for the terminal."""

from auditor._format import count, given, number, percent
from auditor.choices import Adjacency
from auditor.planning.plan import Plan
from auditor.values import Subject

__all__ = ["plan_text"]


def plan_text(plan: Plan) -> str:
    """Return a plan as lines of text.

    >>> from auditor.planning import records_needed
    >>> print(plan_text(records_needed(3.0, delta=1e-5)).splitlines()[0])
    140 members and 140 non-members certify an epsilon of 3 at delta 1e-5.
    """
    target = f"an epsilon of {given(plan.epsilon)} at delta {given(plan.delta)}"
    if plan.n_member is None:
        lines = [f"No plan certifies {target}."]
        lines.append(f"Why: {plan.reason}.")
    else:
        lines = [
            f"{count(plan.n_member)} members and {count(plan.n_nonmember)} non-members certify {target}."
        ]
        if plan.chance is not None and plan.chance < 1:
            lines.append(f"Chance of reaching it: {percent(plan.chance, toward='down')}.")
        top = number(plan.ceiling, toward="down")
        lines.append(f"A perfect attack on so many records would be certified at {top}.")
    about = "this model" if plan.subject is Subject.MODEL else f"the training algorithm ({plan.adjacency})"
    level = percent(plan.confidence, toward="down")
    lines += [
        f"Assumed: {plan.attack}.",
        f"Bound: {plan.estimate}, about {about}, at {level} confidence; {plan.method}.",
    ]
    if plan.adjacency is Adjacency.ADD_REMOVE:
        lines.append("Inclusion coins are audited at delta 0; score every record that had a coin.")
    if plan.subject is Subject.MODEL:
        lines.append(
            "A bound about the model refutes no claim on the training algorithm; that takes a random split or inclusion"
            " coins."
        )
    return "\n".join(lines) + "\n"
