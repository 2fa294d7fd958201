"""The command `auditor demo`, which needs no data of the user."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli import console, settings
from auditor.cli.options import Common
from auditor.cli.parsing import Options
from auditor.core import DPSGD, RandomSplit, StatedClaim, check_writable, write_all

if TYPE_CHECKING:
    from auditor.results.document import AuditResult

# --- The demo: an audit of three classifiers on the digits data of scikit-learn ---
#
# A random half of the records trains all models; the other half are the non-members. The split is random, every training
# record is scored, and no parameter is tuned for the demo.


_PROMISED = 0.5  # epsilon, claimed for a forest that was trained without noise
_CLASSES = 10


def run_demo(*, seed: int = 0, announce: Callable[[str], None] = lambda _: None) -> "list[AuditResult]":
    """Train and audit a model with a false claim, one without a claim, and one with a true claim.

    Args:
        seed: Seed of the split, the training and the audits.
        announce: Function that reports progress, one line at a time.
    """
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    from auditor.api import audit
    from auditor.collectors import collect

    features, labels = load_digits(return_X_y=True)
    x_in, x_out, y_in, y_out = train_test_split(features / 16.0, labels, test_size=0.5, random_state=seed)
    delta = 1 / (10 * len(y_in))
    forest = RandomForestClassifier(n_estimators=50, n_jobs=1, random_state=seed)
    private = DPSGD(noise_multiplier=4.0, sampling_rate=0.1, steps=200)
    models = {
        "A forest that claims epsilon 0.5": (forest.fit, StatedClaim(_PROMISED, delta)),
        "A logistic regression": (LogisticRegression(C=0.001, max_iter=200).fit, None),
        "The same trained with DP-SGD": (partial(_trained_privately, private, seed=seed), private),
    }
    results = []
    for name, (train, claim) in models.items():
        announce(
            f"Training and auditing {name[0].lower()}{name[1:]}, on {len(y_in)} of {len(labels)} digits ..."
        )
        losses = collect(train(x_in, y_in), members=(x_in, y_in), nonmembers=(x_out, y_out))
        audited = partial(audit, split=RandomSplit(), seed=seed, command="auditor demo")
        source = "scikit-learn digits, random halves"
        results.append(audited(losses, claim=claim, delta=delta, model=name, source=source))
    return results


def _trained_privately(training: DPSGD, features: Any, labels: Any, *, seed: int) -> Callable[[Any], Any]:
    """Train a logistic regression with DP-SGD (Abadi et al. 2016): Poisson batches, clipped gradients, Gaussian noise."""
    import numpy as np
    from scipy.special import softmax

    rng, rate, clip = np.random.default_rng(seed), 0.02, 1.0
    wanted, weights = np.eye(_CLASSES)[labels], np.zeros((features.shape[1], _CLASSES))
    for _ in range(training.steps):
        batch = rng.random(len(labels)) < training.sampling_rate
        x, error = features[batch], softmax(features[batch] @ weights, axis=1) - wanted[batch]
        # The gradient of a record is the product of both, and its norm is the product of their norms.
        norms = np.linalg.norm(x, axis=1) * np.linalg.norm(error, axis=1)
        clipped = x.T @ (error / np.maximum(1.0, norms / clip)[:, None])
        noise = rng.normal(0.0, training.noise_multiplier * clip, weights.shape)
        weights -= rate * (clipped + noise)
    return lambda rows: softmax(rows @ weights, axis=1)


# --- The command `auditor demo` ---


@dataclass(frozen=True)
class _Demo(Options, title="The demo"):
    """Options of the demo.

    Attributes:
        html: Write the report as one offline HTML page.
        open: Open the page in the browser.
        seed: Seed of the split, the training and the audits.
    """

    html: Path = Path("auditor-demo.html")
    open: bool = False
    seed: int = 0


def demo(wanted: _Demo, common: Common) -> None:
    """Audit three classifiers on bundled data of scikit-learn, and compare them on one page.

    Examples:
        Run a complete audit of three models on bundled data:
          auditor demo

        Write the page to another file:
          auditor demo --html "my first audit.html"
    """
    from auditor.report import html
    from auditor.report.terminal import one_line

    check_writable([wanted.html], inputs=settings.used_file())
    results = run_demo(seed=wanted.seed, announce=console.announcer(quiet=common.quiet))
    write_all(
        {wanted.html: html.render(results, title="Privacy audit: three classifiers on the digits data")}
    )
    if not common.quiet:
        width, color = console.width(least=30), console.colour()
        console.say("".join(one_line(result, width=width, color=color) for result in results))
        console.say(f"Report: {wanted.html.resolve()}\n")
    if wanted.open:
        console.open_page(wanted.html)
