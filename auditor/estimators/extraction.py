"""Shares of secrets that sampling writes within so many tries, with limits that hold together over the numbers of tries.

A loss is -ln p, p the chance that one sample writes a record's secret: n independent samples write it with probability
1 - (1 - p)^n, a number in [0, 1] for each record, whose mean over the population is the share of secrets extracted.

The lower limit of such a mean is by betting. For n independent values x_i of mean m, each bet b in [0, 1] has the wealth

    W_b(m) = prod_i (1 - b + b x_i / m),

which is 0 or more and 1 on average, and so is the mean of W_b over bets that were fixed in advance: it exceeds 1/a with
probability at most a (Markov), and falls in m. The limit is the m at which it is 1/a; the upper limit is that of 1 - x_i.
Values count as split between the two points of a grid beside them with their mean kept, which lowers ln W_b (it is concave
in x_i) and so only lowers the limit.

Source: Waudby-Smith and Ramdas 2024, Section 4; Hayes et al. 2025, Section 3, for (n, p)-extraction; a mixture of constant
bets, and the grid [own].
"""

import math

import numpy as np
from scipy import optimize

from auditor.core.errors import InputError
from auditor.core.facts import Attack, AttackState
from auditor.core.values import Estimate, Floats, Integers, Losses, Subject, weighted
from auditor.curves.cells import LEAST
from auditor.estimators.evidence import Evidence
from auditor.estimators.limits import lower_limit, upper_limit

TRIES = (1, 10, 100, 1_000, 10_000)
LIKELY = 0.5  # from which chance on a record counts as (n, p)-extractable
_ROUNDING = 1e-9  # nats: a loss just below 0 is a chance of 1
_LEAST = 1e-12  # of a limit: lower ones are 0
_PRECISION = 1e-9  # of its logarithm


_LOW = np.geomspace(1e-9, 0.5, 256)
_GRID = np.unique(np.concatenate([[0.0], _LOW, 1 - _LOW, [1.0]]))


def _bets(n: int) -> Floats:
    """Return the bets on so many values: each twice the one before, from one that pays where all values are alike."""
    least = 0.3 / math.sqrt(n)
    return np.append(np.geomspace(least, 0.7, 1 + math.ceil(-math.log2(least))), [0.9, 0.99, 0.999])


def extraction(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the shares of the members' secrets extracted, and by how much the others' are exceeded; none without secrets.

    Raises:
        InputError: Losses below 0, which are no negative logs of chances.
    """
    losses, confidence = evidence.losses, evidence.setting.confidence
    if not are_chances(losses):
        return ()
    least = LEAST if evidence.setting.is_shared else 1
    shares = [_share(losses, tries, confidence=confidence, least=least) for tries in TRIES]
    secrets = losses.released.secrets
    space = None if secrets is None else secrets.space
    return (*shares, *(_beyond(losses, row, space, confidence=confidence) for row in shares))


def are_chances(losses: Losses) -> bool:
    """Return whether losses are negative logs of chances of extraction.

    Raises:
        InputError: They are declared as such, and one is below 0.
    """
    if losses.attacks.get(Attack.EXTRACTION) is not AttackState.RUN:
        return False
    lowest = min(float(losses.member.min()), float(losses.nonmember.min()))
    if lowest < -_ROUNDING:
        raise InputError(
            f"losses must be 0 or more where the attack extraction was run, negative logs of chances, got {lowest:.4g}; collect"
            " them with secret=..., or leave attack.extraction out."
        )
    return True


_ASSUMED = (
    "records within each group are independent draws",
    "samples are independent and follow the rules of sampling of the losses, given the text before the secret",
    "a secret counts as written by its own tokens only: other tokens may spell it, and the share is then larger",
)


def _share(losses: Losses, tries: int, *, confidence: float, least: int) -> Estimate:
    """Return the share of the members' secrets; that of likely ones only if it is of no record, or of so many at least."""
    error = (1 - confidence) / (2 * len(TRIES))
    (value, lower, upper), others = (
        _of_group(group, tries, error) for group in (losses.member, losses.nonmember)
    )
    likely = (
        int(np.count_nonzero(written(losses.member, tries)[0] >= LIKELY)) if losses.bits is None else None
    )
    extractable: dict[str, float | int] = (
        {}
        if likely is None or 0 < likely < least
        else {
            "extractable": likely,
            "value": likely / losses.n_member,
            "lower": float(lower_limit(likely, losses.n_member, error)),
            "upper": float(upper_limit(likely, losses.n_member, error)),
        }
    )
    return Estimate(
        f"extraction.{tries}",
        value,
        lower,
        upper,
        confidence,
        method=f"mean chance over the members; betting limits that hold together at {len(TRIES)} numbers of tries",
        subject=Subject.MODEL,
        assumptions=_ASSUMED,
        details={
            "tries": tries,
            "nonmember": dict(zip(("value", "lower", "upper"), others, strict=True)),
            **({"records": extractable} if extractable else {}),
        },
    )


def _beyond(losses: Losses, row: Estimate, space: int | None, *, confidence: float) -> Estimate:
    """Return how far the share of the members' secrets certainly exceeds that of secrets that the model never saw.

    Secrets that were drawn uniformly from ``space`` ones of one length are written with probability 1/space on average, at
    most, since the chances of all of them add up to 1 or less; within n tries, by Jensen's inequality, with 1 - (1 -
    1/space)^n at most. The others' losses then cost no error [own].
    """
    tries = row.details["tries"]
    if space is None:
        lower, baseline, method = (
            row.lower or 0.0,
            row.details["nonmember"]["upper"],
            "betting limits of both groups",
        )
    else:
        error = (1 - confidence) / len(TRIES)
        lower, method = (
            _of_group(losses.member, tries, error)[1],
            f"betting limit, less the chance in {space:,} secrets",
        )
        baseline = -math.expm1(tries * math.log1p(-1 / space)) if space > 1 else 1.0
    return Estimate.at_least(
        f"extraction_beyond.{tries}",
        max(0.0, lower - baseline),
        confidence=confidence,
        method=f"{method}; limits hold together at {len(TRIES)} numbers of tries",
        subject=Subject.MODEL,
        assumptions=(
            *_ASSUMED,
            *(() if space is None else ("secrets were drawn uniformly from a template of one length",)),
        ),
        details={"tries": tries, "baseline": baseline},
    )


def written(group: Floats, tries: int) -> tuple[Floats, Integers | None]:
    """Return the chances that so many tries write the secrets of a group, and how many records each stands for."""
    losses, counts = weighted(group)
    with np.errstate(divide="ignore"):
        return -np.expm1(tries * np.log1p(-np.exp(-np.maximum(losses, 0.0)))), counts


def _of_group(group: Floats, tries: int, error: float) -> tuple[float, float, float]:
    """Return the mean chance of a group and both its limits, each with this error."""
    chances, counts = written(group, tries)
    value = float(np.average(chances, weights=counts))
    lower = mean_limit(chances, error=error, counts=counts)
    return value, min(lower, value), max(value, 1 - mean_limit(1 - chances, error=error, counts=counts))


def mean_limit(values: Floats, *, error: float, counts: Integers | None = None) -> float:
    """Return the level 1 - error lower limit of the mean of independent values in [0, 1], by betting.

    Args:
        values: Shape (n,).
        error: In (0, 1).
        counts: How many records each value stands for; default one.

    >>> round(mean_limit(np.repeat([0.0, 1.0], [990, 10]), error=0.025), 4)
    0.0026
    """
    above = np.clip(np.searchsorted(_GRID, values, side="right"), 1, _GRID.size - 1)
    share = (values - _GRID[above - 1]) / (_GRID[above] - _GRID[above - 1])
    each = np.ones(values.size) if counts is None else counts
    weights = np.bincount(above, each * share, _GRID.size)
    weights += np.bincount(above - 1, each * (1 - share), _GRID.size)
    used = weights > 0
    points, weights, bets = _GRID[used], weights[used], _bets(int(np.sum(each)))

    def evidence(log_mean: float) -> float:
        wealth = np.log1p(bets[:, None] * (points / math.exp(log_mean) - 1)) @ weights
        return float(np.logaddexp.reduce(wealth)) - math.log(bets.size) + math.log(error)

    top = float(points @ weights / weights.sum())
    if top <= _LEAST or evidence(math.log(_LEAST)) <= 0:
        return 0.0
    return math.exp(optimize.brentq(evidence, math.log(_LEAST), math.log(top), xtol=_PRECISION) - _PRECISION)
