"""audit_runs(): the scores of many runs, and the claim on the mechanism that made them."""

from typing import Any, get_args

from auditor import _validate, theory
from auditor.choices import (
    Adjacency,
    BernoulliSplit,
    RandomSplit,
    Split,
    StatedClaim,
    ThresholdRule,
    TrainingClaim,
)
from auditor.compare import judge, overall
from auditor.provenance import input_hash, provenance
from auditor.runs.estimates import CERTIFIED, estimates
from auditor.runs.result import RunsResult
from auditor.runs.thresholds import Judged, judged
from auditor.runs.trust import checks_of
from auditor.setting import promises
from auditor.values import Claim, Losses

__all__ = ["audit_runs"]


def audit_runs(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    claim: TrainingClaim | None = None,
    threshold: ThresholdRule = Split(),  # noqa: B008 - a frozen value
    threshold_runs: Losses | None = None,
) -> RunsResult:
    """Audit a training mechanism from the scores of many independent runs, with a canary and without.

    One threshold on the score guesses the world of a run. It is chosen on runs that it does not judge, because the
    best threshold of the judged runs themselves makes every bound too high. The two error rates bound epsilon from
    below in both directions, by four methods at the same threshold; only the certified one judges a claim. Fix the
    number of runs before you look: a bound that is looked at again and again until it refutes no longer holds at its
    confidence.

    Args:
        losses: One score for each run, smaller meaning more like a run with the canary: of runs with it (``member``) and
            without it (``nonmember``), as `collect_runs` makes them.
        delta: In [0, 1). With a claim, all rows are stated at the claim's own delta, or at the one that follows from it
            for replaced records.
        confidence: In (0, 1).
        adjacency: What the two worlds differ by: the canary is there or not (``"add-remove"``), or there is another record
            in its place (``"replace-one"``).
        claim: What is claimed of the mechanism: `DPSGD`, judged at its accountant's epsilon, or `StatedClaim`.
        threshold: `Split` (default) chooses it on one part of the runs and judges the rest; `FixedThreshold` takes one that
            was chosen without any of them; `RankGrid` has no single threshold, and only the certified row.
        threshold_runs: Other runs of the same kind, which choose the threshold; then all of ``losses`` are judged.
            Collect them with another seed: with the same one, `collect_runs` makes the same runs again.

    Raises:
        InputError: Arguments that cannot be used, or too few runs.

    Source: Jagielski et al. 2020 and Nasr et al. 2021 (Clopper-Pearson), Lu et al. 2022 (Katz), Zanella-Beguelin et
    al. 2023 (Bayesian), Nasr et al. 2023 (Gaussian).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> runs = Losses(member=rng.normal(-3, 1, 2000), nonmember=rng.normal(0, 1, 2000))
    >>> result = audit_runs(runs, delta=1e-5, claim=StatedClaim(epsilon=1.0, delta=1e-5))
    >>> str(result.verdict), result.estimate("epsilon_bound.clopper_pearson").value > 3
    ('refuted', True)
    """
    _validate.instance("losses", losses, (Losses,))
    _validate.instance("claim", claim, (*get_args(TrainingClaim), type(None)))
    _validate.instance("threshold", threshold, get_args(ThresholdRule))
    _validate.instance("threshold_runs", threshold_runs, (Losses, type(None)))
    delta = _validate.fraction("delta", delta, zero=True)
    confidence = _validate.confidence(confidence)
    between = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    claims, audited = _promised(claim, delta=delta, adjacency=between)
    stated_at = delta if audited is None or audited.delta is None else audited.delta
    found = judged(
        losses, rule=threshold, threshold_runs=threshold_runs, delta=stated_at, alpha=1 - confidence
    )
    rows = estimates(found, delta=stated_at, confidence=confidence, adjacency=between, rule=threshold)
    checks = checks_of(losses)
    comparisons = () if audited is None else (judge(audited, rows[0], checks=checks),)
    seed = threshold.seed if isinstance(threshold, Split) else 0
    about = {"delta": stated_at, "confidence": confidence, "adjacency": str(between)}
    origin = provenance(losses, seed=seed, source=None, command=None)
    if threshold_runs is not None:
        origin["threshold_runs_sha256"] = input_hash(threshold_runs)
    return RunsResult(
        data={**_counted(losses, found), **about, **_claimed(claim), "history": list(losses.history)},
        estimates=rows,
        claims=claims,
        comparisons=comparisons,
        checks=checks,
        verdict=overall(comparisons),
        provenance=origin,
    )


def _promised(
    claim: TrainingClaim | None, *, delta: float, adjacency: Adjacency
) -> tuple[tuple[Claim, ...], Claim | None]:
    """Everything that the description promises, and the form of it for the worlds that were run."""
    if claim is None or adjacency is Adjacency.REPLACE_ONE:
        return promises(claim, delta=delta, split=RandomSplit())
    claims, _ = promises(claim, delta=delta, split=BernoulliSplit())
    at = claim.delta if isinstance(claim, StatedClaim) else delta
    return claims, theory.epsilon(claim, delta=at, adjacency=Adjacency.ADD_REMOVE)


def _counted(losses: Losses, found: Judged) -> dict[str, Any]:
    counts = found.counts
    return {
        "n_with": losses.n_member,
        "n_without": losses.n_nonmember,
        "judged": [found.losses.n_member, found.losses.n_nonmember],
        "chosen_on": None if found.chosen_on is None else list(found.chosen_on),
        "rule": found.rule,
        "threshold": found.threshold,
        "true_positives": None if counts is None else counts.true_positives,
        "false_positives": None if counts is None else counts.false_positives,
        "certified": CERTIFIED,
    }


def _claimed(claim: TrainingClaim | None) -> dict[str, Any]:
    return {
        "claim": None if claim is None else claim.in_words(),
        "claim_delta": claim.delta if isinstance(claim, StatedClaim) else None,
    }
