"""audit_labels(): what a model gives away about the labels it was trained on, without any record that it was not.

For each training record a fair coin decides whether a guesser is shown its real label or one drawn from a law D of the label
given the features, and the model's probabilities tell which. It is about label privacy alone: two data sets are neighbours
where one label differs, and the features are known to all.
"""

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core import options
from auditor.core.values import Floats
from auditor.estimators.guesses import Guesses

# --- Real or drawn? Guesses about the labels shown, and how right they can be [own] ---
#
# Let the label y of record x have the law p(.|x), independently of the other labels given all features, and let training be
# (eps, 0)-DP in the labels: one label replaced changes the probability of every output m by a factor of at most e^eps. A
# fair coin shows z = y ("real") or z drawn from D(.|x) ("drawn"). Write f(m|y) for the probability of the model m with label
# y in its place, all other labels, coins and labels shown being given. Bayes' rule gives
#
#     odds(drawn | m, z) = D(z)/p(z) * sum_y p(y) f(m|y)/f(m|z), which is at most D(z)/p(z) * (p(z) + (1 - p(z)) e^eps).
#
# With p = D, and in the same way with f(m|y) >= e^-eps f(m|z),
#
#     odds(drawn | m, z) <= D(z) + (1 - D(z)) e^eps   and   odds(real | m, z) <= 1/(D(z) + (1 - D(z)) e^-eps).
#
# So given the model, the labels shown and all other coins, a guess is right at most so often, whatever it is: guesses, orders
# and sets may depend on the model, the features, D and the labels shown, on no coin and no label that was not shown. Revealing
# the coins one after another shows the number of right guesses to be stochastically below a Poisson-binomial number, as in
# `auditor.estimators.guess_tests`; delta is 0.
#
# Where p is not D, D(z)/p(z) * (p(z) + (1 - p(z)) e^eps) = D(z) (1 + e^eps (1 - p(z))/p(z)). If the odds of z under the two
# laws differ by a factor of at most e^kappa, that is at most D(z) + (1 - D(z)) e^(eps + kappa), and likewise below: a bound
# eps_L under D is one of eps_L - kappa under p, at the same level.


def label_odds(prior: Floats, inside: bool, epsilon: float) -> Floats:  # noqa: FBT001 - as of every `Odds`
    """Return the largest log-odds of guesses to be right, "real" (``inside``) or "drawn", under pure label privacy.

    Args:
        prior: Log-odds of another label than the one that is shown, by D: log((1 - D)/D).
        inside: Whether the guesses say "real".
        epsilon: In nats.

    >>> label_odds(np.zeros(1), True, 0.0), label_odds(np.zeros(1), False, np.log(3.0)).round(6)
    (array([0.]), array([0.693147]))
    """
    sign = -1 if inside else 1
    # log(D + (1 - D) e^(sign eps)), D = expit(-prior)
    return np.asarray(
        sign * np.logaddexp(special.log_expit(-prior), special.log_expit(prior) + sign * epsilon)
    )


_NO_OTHER = -36.0  # log-odds of another label where D is sure of the one shown; smaller ones round to that


def draw_labels(
    law: Floats, codes: npt.NDArray[np.intp], rng: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Toss the coins: return which records show their real label, and the column of each label shown.

    Args:
        law: Shape (n, K), D; rows sum to 1.
        codes: Shape (n,), the column of each real label.
        rng: Tosses and draws.
    """
    real = rng.random(codes.size) < 0.5  # noqa: PLR2004 - a fair coin
    reached = np.cumsum(law, axis=1)
    drawn = np.argmax(reached > (rng.random(codes.size) * reached[:, -1])[:, None], axis=1)
    return real, np.where(real, codes, drawn)


def label_guesses(log_probability: Floats, log_law: Floats, real: npt.NDArray[np.bool_]) -> Guesses:
    """Guess of each label shown whether it is real: where the model gives it more than D does.

    Args:
        log_probability: Shape (n,), of the label shown by the model; minus infinity where it excludes it.
        log_law: Shape (n,), the same by D; finite.
        real: Shape (n,), the coins, which decide nothing but which guesses are right.
    """
    told = log_probability - log_law
    says_real = told > 0
    order, back = np.argsort(told, kind="stable"), np.argsort(-told, kind="stable")
    drawn = order[: int((~says_real).sum())]
    with np.errstate(divide="ignore"):
        prior = np.log(-np.expm1(log_law)) - log_law
    return Guesses(
        right=says_real == real,
        orders={
            "surest": np.argsort(-np.abs(told), kind="stable"),
            "real": back[: int(says_real.sum())],
            "drawn": drawn,
        },
        prior=np.maximum(prior, _NO_OTHER),
        adjacency=options.Adjacency.REPLACE_ONE,
        evidence="labels shown, real or drawn",
        assumptions=(),
        details={},
        inside=says_real,
        odds=label_odds,
    )
