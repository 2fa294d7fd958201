"""jax_privacy's bound from one run with its default options."""

from jax_privacy import auditing

ABOUT = {
    "name": "jax_privacy, one run",
    "requirements": ("jax-privacy==2.0.0", "scipy==1.17.1", "numpy==2.4.6"),
    "claims": "Lower bound on epsilon from fair coins of one run, Bonferroni over the thresholds of the hull.",
    "quote": "Computes lower bound on epsilon for a single round of auditing.",
    "source": "jax_privacy/auditing.py, CanaryScoreAuditor.epsilon_one_run",
    "subject": "mechanism",
    "coins": True,
    "draws": (1000, 200, 50),
}


def bound(member, nonmember, delta, confidence):
    """By the test of Steinke, Nasr and Jagielski."""
    return auditing.CanaryScoreAuditor(member, nonmember).epsilon_one_run(1 - confidence, delta)
