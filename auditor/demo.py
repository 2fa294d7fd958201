"""The demo: two classifiers on the digits that come with scikit-learn, audited and shown side by side.

Half of the records, drawn at random, train both models; the other half are the non-members. So the split is a random
one, every training record is scored, and nothing is tuned: the page shows what the audit finds.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from auditor.choices import RandomSplit
from auditor.collectors import collect
from auditor.pipeline import audit
from auditor.result import AuditResult

__all__ = ["run"]


def run(*, seed: int = 0, announce: Callable[[str], None] = lambda _: None) -> list[AuditResult]:
    """Train and audit both models.

    Args:
        seed: Of the split, the training and the audits.
        announce: Told what is being done, one line at a time.
    """
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split

    features, labels = load_digits(return_X_y=True)
    x_in, x_out, y_in, y_out = train_test_split(features / 16.0, labels, test_size=0.5, random_state=seed)
    results = []
    for name, model in _models(seed):
        announce(f"Training {name} on {len(y_in)} of {len(labels)} digits ...")
        with warnings.catch_warnings():
            # The network is trained for a fixed number of passes on purpose, past any sign of convergence.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x_in, y_in)
        announce(f"Auditing {name} ...")
        losses = collect(model, members=(x_in, y_in), nonmembers=(x_out, y_out))
        accuracy = f"accuracy {model.score(x_in, y_in):.3f} on members, {model.score(x_out, y_out):.3f} on non-members"
        source = f"scikit-learn digits, random halves; {accuracy}"
        results.append(
            audit(losses, split=RandomSplit(), seed=seed, model=name, source=source, command="auditor demo")
        )
    return results


def _models(seed: int) -> Iterator[tuple[str, Any]]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    yield (
        "an over-fitted neural network",
        MLPClassifier((256,), alpha=0.0, max_iter=200, tol=0.0, n_iter_no_change=200, random_state=seed),
    )
    yield "a regularised logistic regression", LogisticRegression(C=0.01, max_iter=1000)
