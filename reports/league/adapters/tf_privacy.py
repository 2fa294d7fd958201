"""TF Privacy's epsilon lower bounds: the largest by Clopper-Pearson limits."""

from tensorflow_privacy.privacy.privacy_tests.epsilon_lower_bound import BoundMethod, EpsilonLowerBound

ABOUT = {
    "name": "TF Privacy",
    "requirements": (
        "tensorflow-empirical-privacy==0.1.0",
        "scikit-learn==1.3.2",
        "scipy==1.11.4",
        "numpy==1.26.4",
    ),
    "without": ("tensorflow", "tensorflow-privacy", "tf-models-official"),
    "python": "3.11",
    "claims": "Lower bounds on epsilon at delta 0, one for each threshold and method; here the largest by Clopper-Pearson limits.",
    "quote": "This class computes a statistical epsilon lower bound by looking at the log ratio of tpr and fpr.",
    "source": "tensorflow_privacy/privacy/privacy_tests/epsilon_lower_bound.py, EpsilonLowerBound",
    "delta": 0.0,
    "draws": (1000, 200, 50),
}


def bound(member, nonmember, delta, confidence):
    """The report prints the five largest of five methods; this is the largest of one."""
    bounds = EpsilonLowerBound(member, nonmember, 1 - confidence)
    return max(0.0, *bounds.compute_epsilon_lower_bound(BoundMethod.CLOPPER_PEARSON, k=1))
