"""jax_privacy's certified bound with its default options."""

from jax_privacy import auditing

ABOUT = {
    "name": "jax_privacy",
    "requirements": ("jax-privacy==2.0.0", "scipy==1.17.1", "numpy==2.4.6"),
    "claims": "Lower bound on epsilon, Bonferroni over the thresholds of the hull.",
    "quote": "Finds epsilon lower bound from scores of held-in/held-out canaries.",
    "source": "jax_privacy/auditing.py, CanaryScoreAuditor.epsilon_clopper_pearson",
    "draws": (1000, 200, 100),
}


def bound(member, nonmember, delta, confidence):
    """By Clopper-Pearson limits, one-sided."""
    return auditing.CanaryScoreAuditor(member, nonmember).epsilon_clopper_pearson(1 - confidence, delta)
