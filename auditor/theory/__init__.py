"""What a training description promises: claims, to set beside what an audit finds.

Start with `overview` (everything at once) or `claims` (what an audit compares with). Each number is a `Claim` that says
for which neighbours it holds, how it was found, and whether it is proven, an approximation or an estimate. Importing
this package loads nothing heavy; each function imports what it needs.
"""

from auditor.core.lazy import face, in_stub

__getattr__, __dir__, __all__ = face(
    __name__,
    in_stub(__name__, __file__),
    inside={
        "accountant": "accountant_has_replace_one loss_grid",
        "attackers": "tpr_metric",
        "attributes": "log_spread steps_of",
        "composition": "advanced advanced_sharper basic optimal",
        "gaussian": (
            "StepPair gaussian_delta gaussian_deltas gaussian_epsilon gaussian_epsilons gaussian_mu log_mixture"
        ),
        "monte_carlo": "simulated",
        "steps": "MOST_PHASES Step kinds_of step_deltas step_epsilons",
    },
)
