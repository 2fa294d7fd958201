"""audit(): the one place that knows the order."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from auditor import _limits, _validate, checks, estimators, setting, views
from auditor.choices import (
    DPSGD,
    FDP,
    AnyGuesses,
    EachRecord,
    Members,
    MembershipSplit,
    Mixture,
    OnePerPerson,
    OneRunTest,
    Persons,
    RandomSplit,
    RankGrid,
    Sample,
    Steinke,
    Subset,
    ThresholdRule,
    TrainingClaim,
    UnknownSplit,
    Utility,
)
from auditor.compare import compare, overall
from auditor.errors import InputError
from auditor.estimators import empirical, epsilon_star
from auditor.estimators.alternatives import alternatives
from auditor.estimators.gdp import gdp, one_run_gdp
from auditor.estimators.noise_floor import noise_floor
from auditor.exposed import most_exposed
from auditor.features import Features
from auditor.fingerprints import fingerprints
from auditor.fitters import fit_gaussian_pair, fit_mixture_pair
from auditor.fitters.goodness_of_fit import SAMPLE_SIZES
from auditor.instances import rank_curves
from auditor.persons import PersonsFound, claim_reason, mechanism_reason, per_person
from auditor.provenance import provenance
from auditor.result import AuditResult
from auditor.setting import Setting, default_delta
from auditor.slices import slices
from auditor.tradeoff import ThresholdCounts, TradeoffCurve, count
from auditor.transforms import published
from auditor.values import Check, Claim, Estimate, FittedPair, Losses

__all__ = ["audit", "default_delta"]

_RATES = (0.1, 0.01, 0.001)


def audit(
    losses: Losses,
    *,
    delta: float | None = None,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    split: MembershipSplit = UnknownSplit(),  # noqa: B008
    claim: TrainingClaim | None = None,
    training_size: int | None = None,
    threshold: ThresholdRule = RankGrid(),  # noqa: B008
    fpr: Iterable[float] = _RATES,
    persons: Persons | None = None,
    mixture: Mixture | None = None,
    one_run_test: OneRunTest = Steinke(),  # noqa: B008
    features: Features | None = None,
    reference: Losses | None = None,
    seed: int = 0,
    model: str | None = None,
    strategy: str | None = None,
    utility: Utility | None = None,
    top_records: int = 10,
    source: str | None = None,
    command: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Audit a model from its losses.

    Args:
        losses: Per-record losses, smaller meaning more like a member.
        delta: In [0, 1). By default the delta of a stated claim, otherwise 1/(n ln n) with n the training size.
        confidence: Of every interval, in (0, 1).
        members: `Sample` (the scored members are a random sample of the training set), `Subset` (the same, of a
            training set of known size) or `Census` (all of it).
        split: How membership was decided; without a declaration no verdict on a claim is possible.
        claim: What is claimed of the training algorithm: `DPSGD` or `StatedClaim`.
        training_size: Number of training records, by default the number of member losses.
        threshold: How the certified bound picks its threshold.
        fpr: False positive rates to report the true positive rate at.
        persons: `OnePerPerson`, the default where the losses name persons, or `EachRecord`.
        mixture: Fit Gaussian mixtures too, up to so many components.
        one_run_test: How the guesses about the training algorithm are judged.
        features: The records' features, aligned with the losses: looks for a shift between the groups and for twins.
        reference: Losses of the same records under a model that was trained on neither group: a placebo audit.
        seed: Of everything random here; the same seed gives the same result.
        model: A name for the model, shown in the report.
        strategy: What several audits of one way of training share, such as ``DP, epsilon 10``; `compare_audits` takes
            them together.
        utility: How good the model is at its task; `compare_audits` sets it against what the model gives away.
        top_records: How many training records to name by id, the most exposed first, where they have ids and the losses
            tell anything; ``data["top_records"]`` says why there are none. Ids are personal data too: 0 names none, and
            1,000 is the most.
        source: Where the losses come from, shown in the report.
        command: The command line, if there was one.
        progress: Called with (done, total) while mixtures are fitted.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000))
    >>> result = audit(losses, delta=1e-5)
    >>> 0 < result.estimate("epsilon_bound.clopper_pearson").lower < 4.38
    True
    """
    for name, value, kinds in (
        ("losses", losses, (Losses,)),
        ("members", members, get_args(Members)),
        ("split", split, get_args(MembershipSplit)),
        ("claim", claim, (*get_args(TrainingClaim), type(None))),
        ("threshold", threshold, get_args(ThresholdRule)),
        ("persons", persons, (*get_args(Persons), type(None))),
        ("mixture", mixture, (Mixture, type(None))),
        ("one_run_test", one_run_test, get_args(OneRunTest)),
        ("features", features, (Features, type(None))),
        ("reference", reference, (Losses, type(None))),
        ("utility", utility, (Utility, type(None))),
    ):
        _validate.instance(name, value, kinds)
    given = losses
    if features is not None:
        features.check_rows(losses)
        given = replace(losses, fingerprint=fingerprints(features))
    found = _units(given, persons)
    losses = found.losses
    if found.combined and isinstance(members, Subset):
        raise InputError(
            f"members must be auditor.Sample or auditor.Census where a score stands for a person, got {members}; the number"
            " of persons in the training set is not known."
        )
    size = setting.training_size(training_size, given, members)
    asked = Setting(
        size=size,
        delta=setting.delta(delta, claim, size),
        confidence=_validate.confidence(confidence),
        members=members,
        split=split,
        claim=claim,
        threshold=threshold,
        rates=setting.rates(fpr),
        persons=found.choice,
        mixture=mixture,
        one_run_test=one_run_test,
    )
    seed = _validate.at_least("seed", seed, least=0)
    top_records = _validate.at_least("top_records", top_records, least=0)
    _limits.top_records(top_records)
    _limits.name("model (--model-name on the command line)", model)
    _limits.name("strategy (--strategy on the command line)", strategy)
    fit_rng, floor_rng, pair_rng, mixture_rng, check_rng, rank_rng = np.random.default_rng(seed).spawn(6)
    claims, audited = setting.promises(claim, delta=asked.delta, split=split)
    promised = _claimed_curve(claim, audited)

    # The counts come first: they need the most memory, and the transformed losses are not there yet.
    counts = count(losses)
    curve_rows = _from_counts(losses, counts, asked)
    transformed = _sorted_already(published()(_in_order(losses)))
    pair = fit_gaussian_pair(transformed, rng=fit_rng, transform="published", sample_sizes=SAMPLE_SIZES)
    mixed = None
    if mixture is not None:
        mixed = fit_mixture_pair(
            transformed, choice=mixture, rng=mixture_rng, transform="published", progress=progress
        )
    estimates = (
        estimators.clopper_pearson(
            losses, delta=asked.delta, rule=threshold, confidence=asked.confidence, members=members
        ),
        *_mechanism(found, asked, audited, pair_rng, promised),
        *_parametric(losses, transformed, counts, (pair, mixed), asked, floor_rng),
        *curve_rows,
        *(
            estimators.tpr_at_fpr(losses, rate=rate, confidence=asked.confidence, members=members)
            for rate in asked.rates
        ),
        gdp(losses, delta=asked.delta, confidence=asked.confidence, members=members),
    )
    trust = _checks(
        given,
        found,
        estimates,
        (pair, mixed),
        asked,
        audited=audited,
        features=features,
        reference=reference,
        rng=check_rng,
    )
    comparisons = compare(claims, estimates, trust, audited=audited)
    exposed = most_exposed(found, checks=trust, most=top_records, rng=rank_rng)
    result = AuditResult(
        data={
            "model": model,
            "strategy": strategy,
            "utility": None if utility is None else dataclasses.asdict(utility),
            **asked.described(losses),
            **_data(found),
            "top_records": exposed.reason,
        },
        estimates=estimates,
        claims=claims,
        comparisons=comparisons,
        checks=trust,
        slices=slices(losses, delta=asked.delta, confidence=asked.confidence),
        curves=(
            *views.curves(
                losses,
                counts,
                pair,
                mixture=mixed,
                claim=audited,
                promised=promised,
                confidence=asked.confidence,
                members=members,
            ),
            *rank_curves(losses),
        ),
        histograms=views.histograms(losses, transformed, pair),
        verdict=overall(comparisons),
        provenance=provenance(
            given, seed=seed, source=_limits.shortened(source), command=_limits.shortened(command)
        ),
        top_records=exposed.records,
    )
    too_large = _limits.problem(result.to_dict())
    if too_large is not None:
        raise InputError(f"the result would be larger than one that can be read again: {too_large}.")
    return result


def _units(losses: Losses, persons: Persons | None) -> PersonsFound:
    """The units of the audit: as asked for; else persons, where records name them and nobody is in both groups."""
    if persons is not None:
        return per_person(losses, choice=persons)
    found = per_person(losses, choice=EachRecord())
    # Persons in both groups were split record by record: what one score of theirs rests on would hang on the split.
    if found.largest == 1 or found.in_both or min(found.persons) < 2:  # noqa: PLR2004
        return found
    return per_person(losses, choice=OnePerPerson())


def _mechanism(
    found: PersonsFound,
    asked: Setting,
    audited: Claim | None,
    rng: np.random.Generator,
    promised: TradeoffCurve | None,
) -> tuple[Estimate, ...]:
    """What the declared split says about the training algorithm; the Gaussian reading only where one was declared."""
    delta = asked.delta if audited is None or audited.delta is None else audited.delta
    refusal = mechanism_reason(found)
    split = UnknownSplit() if refusal else asked.split
    first, second = rng.spawn(2)
    bound = estimators.one_run(
        found.losses,
        split=split,
        delta=0.0 if isinstance(asked.one_run_test, AnyGuesses) else delta,
        confidence=asked.confidence,
        rng=first,
        test=asked.one_run_test,
        # The one test that can use the whole curve, which is that of replaced records under a random split.
        curve=promised
        if isinstance(asked.one_run_test, FDP) and isinstance(asked.split, RandomSplit)
        else None,
    )
    if isinstance(asked.split, UnknownSplit):
        return (bound,)
    gaussian = one_run_gdp(found.losses, split=split, delta=delta, confidence=asked.confidence, rng=second)
    about = claim_reason(found)
    extra = {"reason": refusal} if refusal else {} if about is None else {"not_for_claim": about}
    person = (
        ()
        if about is None
        else ("a score stands for a person: neighbours differ in all records of one person",)
    )
    return tuple(
        replace(item, details={**item.details, **extra}, assumptions=(*item.assumptions, *person))
        for item in (bound, gaussian)
    )


def _claimed_curve(claim: TrainingClaim | None, audited: Claim | None) -> TradeoffCurve | None:
    """The whole trade-off curve that DP-SGD promises, for the neighbours that are audited; a statement has one point."""
    if not isinstance(claim, DPSGD) or audited is None:
        return None
    from auditor.theory.profile import claimed_curve

    return claimed_curve(claim, adjacency=audited.adjacency).curve


def _from_counts(losses: Losses, counts: ThresholdCounts, asked: Setting) -> tuple[Estimate, ...]:
    gap = estimators.advantage(counts, confidence=asked.confidence, members=asked.members)
    return (
        empirical.empirical(losses, delta=asked.delta, counts=counts),
        gap,
        estimators.bayes_security(gap),
        estimators.auc(counts, confidence=asked.confidence),
    )


def _in_order(losses: Losses) -> Losses:
    """The same losses, sorted: the transforms are increasing, so their results need no sorting."""
    return Losses(
        member=losses.sorted_member,
        nonmember=losses.sorted_nonmember,
        scale=losses.scale,
        history=losses.history,
        notes=losses.notes,
    )


def _sorted_already(losses: Losses) -> Losses:
    """Fill the caches of a sorted value with what they would compute."""
    losses.__dict__.update(sorted_member=losses.member, sorted_nonmember=losses.nonmember)
    return losses


def _parametric(
    losses: Losses,
    transformed: Losses,
    counts: ThresholdCounts,
    pairs: tuple[FittedPair, FittedPair | None],
    asked: Setting,
    rng: np.random.Generator,
) -> tuple[Estimate, ...]:
    """Epsilon* of the normals, and of the mixtures where they were asked for."""
    pair, mixed = pairs
    options: dict[str, Any] = {"delta": asked.delta, "confidence": asked.confidence, "members": asked.members}
    floor: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    if asked.delta > 0:
        extra = dict(alternatives(losses, delta=asked.delta))
        found = noise_floor(transformed, delta=asked.delta, clip=asked.delta, rng=rng)
        floor["noise_floor"] = {
            "mean": float(found.mean()),
            "q95": float(np.quantile(found, 0.95)),
            "permutations": int(found.size),
        }
    star = epsilon_star.gaussian(pair, **options, extra={**views.fit_gap(counts, pair), **extra, **floor})
    if mixed is None:
        return (star,)
    # Without the floor: that of two normals is far below what mixtures find between groups that do not differ.
    return (star, epsilon_star.mixture(mixed, **options, extra=views.fit_gap(counts, mixed)))


def _checks(
    given: Losses,
    found: PersonsFound,
    estimates: tuple[Estimate, ...],
    pairs: tuple[FittedPair, FittedPair | None],
    asked: Setting,
    *,
    audited: Claim | None,
    features: Features | None,
    reference: Losses | None,
    rng: np.random.Generator,
) -> tuple[Check, ...]:
    by_name = {estimate.name: estimate for estimate in estimates}
    shuffle_rng, shift_rng = rng.spawn(2)
    delta, rule = asked.delta, asked.threshold
    possible = (
        checks.direction(by_name["auc"]),
        checks.ties(given),
        checks.saturation(given),
        checks.collection(given),
        checks.duplicates(given),
        checks.persons(found),
        checks.shift(features, person=given.person, rng=shift_rng),
        # By the rank grid whatever the rule: a threshold chosen for this model means nothing on another model's scale.
        checks.placebo(reference, audited=given, delta=delta),
        checks.label_shuffle(
            found.losses, delta=delta, confidence=asked.confidence, rule=rule, rng=shuffle_rng
        ),
        checks.power(by_name["epsilon_bound.clopper_pearson"], by_name["epsilon_bound.one_run"], audited),
        checks.sensitivity(by_name["epsilon_star.gaussian"]),
        checks.goodness_of_fit(*pairs),
    )
    return tuple(check for check in possible if check is not None)


def _data(found: PersonsFound) -> dict[str, Any]:
    """What counts as one unit, and of how many independent ones the records are worth."""
    return {
        "unit": f"person ({found.choice.by} loss)" if isinstance(found.choice, OnePerPerson) else "record",
        "records": list(found.records),
        "persons": list(found.persons) if found.named else None,
        "effective": list(found.persons if found.combined else found.effective) if found.named else None,
    }
