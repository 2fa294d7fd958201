"""audit_instances(): several models of one training mechanism, and the claim on the mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast, get_args

import numpy as np

from auditor.checks.copies import duplicates
from auditor.checks.losses import direction, ties
from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.numbers import LEAST_SHOWN
from auditor.core.values import WORST_FIRST, Check, Claim, Estimate, Losses, Status, Subject
from auditor.core.verb import with_options
from auditor.curves.tradeoff import TradeoffCurve, count
from auditor.curves.views import NamedCurve, against_claim
from auditor.estimators import fixed_ranks, guess_tests
from auditor.estimators.gap import advantage
from auditor.estimators.guesses import GuessSet, NoGuesses, draw_guesses
from auditor.estimators.pooling import POOLED, mean_of_models
from auditor.estimators.rates import auc
from auditor.estimators.setting import promises
from auditor.records.labels import PersonsFound, group_reason, mechanism_reason, per_person
from auditor.results import document
from auditor.results.disclosure import shared, shared_rows
from auditor.theory.accountant import claimed_curve
from auditor.verdicts.judging import judge, overall

# --- Reliability of several instances together: one unusable instance makes the whole unusable ---


_Instance = Losses | document.AuditResult
_Found = PersonsFound | document.AuditResult  # losses with one score for each id, or a result as it is

_BY_PERSON = (
    "records of one person were counted as independent, and no person is in both groups: membership was decided by"
    " person; audit one score per person"
)


def _checks_of(instance: _Instance, found: _Found) -> tuple[Check, ...]:
    """Return the checks of an audit; of bare losses those that need nothing else."""
    if isinstance(found, document.AuditResult):
        return found.checks
    checked = direction(auc(count(found.losses))), ties(found.losses)
    return (*checked, duplicates(cast("Losses", instance), units=found))


def _at_worst(made: Sequence[Sequence[Check]]) -> tuple[Check, ...]:
    """Return each check of the models where it came out worst, with which model that was where it is not fine."""
    words = [
        check if check.status is Status.OK else replace(check, message=f"Model {number}: {check.message}")
        for number, one in enumerate(made, start=1)
        for check in one
    ]
    by_name = {check.name: [one for one in words if one.name == check.name] for check in words}
    return tuple(min(alike, key=lambda one: WORST_FIRST.index(one.status)) for alike in by_name.values())


def _persons_refusal(instances: Sequence[_Found]) -> str | None:
    """Return why the units of an instance support no statement about the mechanism, if they support none."""
    reasons = (
        mechanism_reason(item) if isinstance(item, PersonsFound) else _of_result(item) for item in instances
    )
    return next((reason for reason in reasons if reason is not None), None)


def _trained(instance: _Found) -> tuple[int, int]:
    """Return the fewest and the most training records behind a score, if rows of one id were combined."""
    if isinstance(instance, PersonsFound):
        return instance.trained
    result = (details.get("trained") for details in _details(instance, "duplicates"))
    few, many = next(filter(None, result), (1, 1))
    return int(few), int(many)


def _of_result(result: document.AuditResult) -> str | None:
    """Return the answer of `mechanism_reason`, as far as a result holds it."""
    for details in _details(result, "duplicates"):
        within = details.get("within_members") or details.get("within_nonmembers")
        if within and "trained" not in details:
            return "ids repeat, and their rows were counted as independent; audit the losses again"
    for details in _details(result, "persons"):
        if details.get("combined") and details.get("in_both"):
            return "people have records in both groups, so their combined scores depend on which of the records were members"
        if not details.get("combined") and (details.get("largest") or 1) > 1 and not details.get("in_both"):
            return _BY_PERSON
    return None


def _not_for_claim(instances: Sequence[_Found], claim: options.TrainingClaim | None) -> str | None:
    """Return why a bound on these units cannot judge a claim for single records, if it cannot."""
    results = (item for item in instances if isinstance(item, document.AuditResult))
    people = [result for item in results for result in _details(item, "persons") if result.get("combined")]
    held = [_trained(item) for item in instances]
    if options.for_persons(claim):
        held += [(1, int(result.get("largest") or 1)) for result in people]
    few, many = zip(*held, strict=True)
    about = group_reason((min(few), max(many)), claim)
    if about is None and people and not options.for_persons(claim):
        return (
            "scores combine the records of one person, so the bound is about replacing a person, and a claim about single"
            " records allows a person with several records a larger epsilon"
        )
    return about


def _details(result: document.AuditResult, name: str) -> Iterator[Mapping[str, Any]]:
    return (check.details for check in result.checks if check.name == name)


# --- Pooled pairs: the guesses of all models as one audit, where their runs were independent ---
#
# Coins that are independent over records and runs, each of which touches one run only, are the coins of one mechanism that
# trains all of the models, and neighbours of it differ in one run: so the claim on one run is tested with all coins, the
# first guesses of each model in the same order and share making one set. Half of the error is for this, the other half
# for the models one by one: never below what one model gives at its share.


_INDEPENDENT = (
    "the splits and the trainings of all models were independent: no shared seed, no warm start, no cross-validation",
    "all instances come from the same training algorithm",
)

_POOLED = "guesses of all models together, f-DP recursion, Mahloujifar, Melis and Chaudhuri 2024"
_POOLED_SHARE = 0.5
_FAIR = 0.5
_OTHER_COINS = (
    "it is a result whose guesses are not about fair coins of the declared probability; audit its losses again by FDP()"
    " with that split, or give the losses"
)
_NO_ORDERS = (
    "it is a result without guesses in several orders, which need a declared split and this version: audit its losses"
    " again with that split, or give the losses"
)


def _pooled(
    instances: Sequence[_Found],
    split: options.MembershipSplit,
    rng: np.random.Generator,
    *,
    delta: float,
    confidence: float,
    curve: TradeoffCurve | None,
    claim: Claim | None,
    least: int,
) -> Estimate:
    """Return the bound by the guesses of all models together, and by those of each alone."""
    about: dict[str, Any] = {"method": _POOLED, "subject": Subject.MECHANISM, "delta": delta}
    result = []
    for index, item in enumerate(instances):
        guesses = _guesses_of(item, split, rng)
        if isinstance(guesses, NoGuesses):
            return Estimate.missing(
                fixed_ranks.BOUND, f"instance {index} (counting from 0): {guesses.reason}", **about
            )
        result.append(guesses)
    alpha = 1 - confidence
    share = alpha * (1 - _POOLED_SHARE) / len(result)
    tests = [_together(result, alpha * _POOLED_SHARE), *(replace(item, alpha=share) for item in result)]
    tests = [item.of_at_least(least) for item in tests]
    bounds = [(*test.bound(delta), test) for test in tests]
    bound, best, test = max(bounds, key=lambda item: item[0])
    details: dict[str, Any] = {
        "instances": len(result),
        "pooled": tests[0].bits,
        "ceiling": max(item.perfect.bound(delta)[0] for item in tests),
        "by": "all models together" if test is tests[0] else f"model {tests.index(test)} of {len(result)}",
        **best.details,
    }
    if curve is not None:
        smallest_fpr = guess_tests.of_curve(curve)
        p_value, perfect = (
            min(item.p_value(smallest_fpr) * alpha / item.alpha for item in kind)
            for kind in (tests, [item.perfect for item in tests])
        )
        # Above the claimed epsilon the bound refutes the claim by the same recursion.
        if claim is not None and claim.value is not None and bound > claim.value:
            p_value = min(p_value, alpha)
        details["claimed_curve"] = {
            "rejected": p_value <= alpha,
            "could_have_been": perfect <= alpha,
            "p_value": min(1.0, p_value),
        }
    declared = dict.fromkeys(text for item in result for text in item.assumptions)
    return Estimate.at_least(
        fixed_ranks.BOUND,
        bound,
        confidence=confidence,
        adjacency=result[0].adjacency,
        assumptions=(*_INDEPENDENT, *declared),
        details=details,
        **about,
    )


@dataclass(frozen=True)
class _Sets:
    """Sets of guesses about so many coins, and the error that they share."""

    bits: int
    sets: tuple[GuessSet, ...]
    adjacency: options.Adjacency
    assumptions: tuple[str, ...]
    alpha: float = 1.0

    @property
    def perfect(self) -> "_Sets":
        return replace(self, sets=tuple(replace(item, correct=item.guesses) for item in self.sets))

    def of_at_least(self, least: int) -> "_Sets":
        """Return the sets with so many guesses, and that of all coins."""
        large = (item for item in self.sets if item.guesses >= least or item.order == "all")
        return replace(self, sets=tuple(large))

    def bound(self, delta: float) -> tuple[float, GuessSet]:
        """Return the largest epsilon that a set refutes, and the set."""
        return guess_tests.fdp_bound(self.sets, bits=self.bits, delta=delta, alpha=self.alpha)

    def p_value(self, smallest_fpr: guess_tests.SmallestFpr) -> float:
        """Return the p-value of a curve by these sets alone."""
        return guess_tests.curve_p_value(smallest_fpr, bits=self.bits, sets=self.sets)


def _guesses_of(
    instance: _Found, split: options.MembershipSplit, rng: np.random.Generator
) -> _Sets | NoGuesses:
    if isinstance(instance, PersonsFound):
        guesses = draw_guesses(instance.losses, split=split, rng=rng, thin=True)
        if isinstance(guesses, NoGuesses):
            return guesses
        return _Sets(guesses.bits, guesses.sets, guesses.adjacency, guesses.assumptions)
    row = document.find(instance, "epsilon_bound.one_run")
    tried = document.detail(row, "tried")
    same = instance.data.get("split") == options.name_of(split, options.SPLITS)
    if row is None or row.adjacency is None or not tried or "order" not in tried[0] or not same:
        return NoGuesses(_NO_ORDERS)
    if isinstance(split, options.BernoulliSplit):
        inclusion, declared = document.detail(row, "inclusion"), split.inclusion
        unfair = inclusion != _FAIR and document.detail(row, "thinned_to") is None
        if unfair or declared not in (None, inclusion):
            return NoGuesses(_OTHER_COINS)
    sets = tuple(GuessSet(**item) for item in tried)
    return _Sets(sets[0].guesses, sets, row.adjacency, row.assumptions)


def _together(instances: Sequence[_Sets], alpha: float) -> _Sets:
    """Return the sets that all models have, their counts added up."""
    counts = [{(item.order, item.share): item for item in one.sets} for one in instances]
    sets = tuple(
        replace(
            item,
            guesses=sum(one[key].guesses for one in counts),
            correct=sum(one[key].correct for one in counts),
            inside=sum(one[key].inside for one in counts),
        )
        for key, item in counts[0].items()
        if all(key in one for one in counts)
    )
    return replace(instances[0], bits=sum(one.bits for one in instances), sets=sets, alpha=alpha)


@dataclass(frozen=True, eq=False)
class InstancesOptions:
    """Measurements, and declarations about the models.

    These are the arguments of `audit_instances` and the options of the command.

    Attributes:
        delta: In [0, 1); by default that of a stated claim. With a claim, the bound that is judged is stated at the claim's
            own delta, or at the one that follows from it for replaced records.
        confidence: Confidence level of every interval, in (0, 1).
        looks: Number of looks at this claim, in this audit and others like it, 1 or more: they share the error.
        split: How membership was decided in each model: ``unknown``, ``random`` or ``bernoulli:0.3``. Without ``together``
            only `RandomSplit` supports a statement about the training algorithm; then it is about replaced records.
        claim: Claim about the training algorithm: `DPSGD` or `StatedClaim`.
        together: ``independent-runs`` (`IndependentRuns`) declares that the splits and the trainings of all models were
            independent: no shared seed, no warm start, no cross-validation. Their pairs, or their inclusion coins, are then
            one audit, which certifies far more, and judges a claim's whole curve.
        seed: Seed of the pairs; the same seed gives the same result.
        disclosure: Audience of the result, ``public`` or ``insiders``: see `auditor.audit`. Results among the instances
            must be for insiders.

    Raises:
        InputError: An option that cannot be used; the message says which and why.
    """

    _: KW_ONLY
    delta: float | None = None
    confidence: float = 0.95
    looks: int = 1
    split: options.MembershipSplit | str = field(default=options.UnknownSplit())
    claim: options.TrainingClaim | None = None
    together: options.IndependentRuns | str | None = None
    seed: int = 0
    disclosure: options.Disclosure | str = options.Disclosure.PUBLIC

    def __post_init__(self) -> None:
        validate.instance("claim", self.claim, (*get_args(options.TrainingClaim), type(None)))
        split = options.chosen("split", self.split, options.SPLITS)
        together = options.chosen("together", self.together, options.TOGETHER, optional=True)
        disclosure = options.Disclosure.named(self.disclosure)
        seed = validate.at_least("seed", self.seed, least=0)
        delta = options.delta_or_that_of(self.claim, self.delta)
        vars(self).update(split=split, together=together, disclosure=disclosure, seed=seed, delta=delta)


class _Setting(InstancesOptions):
    """The checked options."""

    delta: float
    split: options.MembershipSplit
    together: options.IndependentRuns | None
    disclosure: options.Disclosure


@with_options(InstancesOptions)
def audit_instances(instances: Sequence[_Instance], _chosen: InstancesOptions) -> document.InstancesResult:
    """Audit a training mechanism from several models that it trained.

    Args:
        instances: One per model: its losses, or the result of its audit. Every model needs its own training run and
            its own fresh split, drawn independently of the others.

    Raises:
        InputError: An argument that cannot be used, an instance given twice, or a result without rank curves.

    Source: Negoescu et al. 2024, Theorem 2 and Eq. 18 to 21, at attacks of known error rate (see
    `auditor.estimators.fixed_ranks`).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> models = [Losses(member=rng.random(100), nonmember=rng.random(100) + 2) for _ in range(3)]
    >>> audit_instances(models, delta=1e-5).estimate("epsilon_bar").reason[:46]
    'it was not declared how membership was decided'
    """
    outcome = _checked(instances)
    setting = cast("_Setting", _chosen)
    delta, split, claim, seed = setting.delta, setting.split, setting.claim, setting.seed
    confidence = validate.of_one_look(setting.confidence, setting.looks)
    is_shared = setting.disclosure is options.Disclosure.PUBLIC
    hashes = _hashes(outcome)
    units: list[_Found] = [
        per_person(item, choice=options.EachRecord()) if isinstance(item, Losses) else item
        for item in outcome
    ]
    sizes = _sizes(units, setting.disclosure)
    evidence = fixed_ranks.on_common_grid([_curves(index, item) for index, item in enumerate(units)])
    pooled = setting.together is not None and not isinstance(split, options.UnknownSplit)
    group = max(_trained(item)[1] for item in units)
    judged_split = split if pooled else options.RandomSplit()
    claims, audited = promises(claim, delta=delta, split=judged_split, group=group)
    stated_at = delta if audited is None or audited.delta is None else audited.delta
    value = fixed_ranks.point_row(evidence, stated_at)
    persons = _persons_refusal(units)
    refusal = _refusal(split) or persons
    curve = None
    if claim is not None and audited is not None:
        curve = claimed_curve(options.of_group(claim, group), adjacency=audited.adjacency).curve
    if pooled:
        rng = np.random.default_rng([seed, 1])
        how: Any = {"confidence": confidence, "least": LEAST_SHOWN if is_shared else 1}
        bound = _pooled(units, split, rng, delta=stated_at, curve=curve, claim=audited, **how)
    else:
        bound = fixed_ranks.bound_row(evidence, stated_at, confidence)
    if (reason := persons if pooled else refusal) is not None:
        bound = bound.emptied(reason, adjacency=None, details={"reason": reason})
    if (about := _not_for_claim(units, claim)) is not None:
        bound = replace(bound, details={**bound.details, "not_for_claim": about})
    if refusal is not None:
        value = value.emptied(refusal, adjacency=None, details={"reason": refusal})
    estimates = (
        bound,
        value,
        fixed_ranks.log_mean_exp_row(evidence, stated_at),
        *_means(units, confidence, is_shared=is_shared),
    )
    if is_shared:  # so that the verdict goes by what is published
        bound, *_ = estimates = shared_rows(estimates)
    made = list(map(_checks_of, outcome, units))
    judged = () if audited is None else (judge(audited, bound, checks=sum(made, ())),)
    whole = None if isinstance(claim, options.StatedClaim) else curve
    result = document.InstancesResult(
        data=_data(setting, sizes, evidence, stated_at, confidence),
        estimates=estimates,
        claims=claims,
        comparisons=judged,
        verdict=overall(judged),
        checks=_at_worst(made),
        curves=(
            *fixed_ranks.averaged(evidence, sizes if is_shared else None),
            *against_claim(bound, audited, whole),
        ),
        provenance={**document.made_now(), "inputs_sha256": hashes, "seed": seed},
    )
    return shared(result) if is_shared else result


def _means(instances: Sequence[_Found], confidence: float, *, is_shared: bool) -> Iterator[Estimate]:
    """Yield the mean AUC and the mean advantage over the instances, for reading: they judge nothing.

    To be shared, they are made of the rounded numbers of each, so that they give no digit of one away.
    """
    rows = [_separation(item, confidence) for item in instances]
    for name in POOLED:
        each = [one[name] for one in rows]
        if is_shared:
            each = [row and shared_rows((row,))[0] for row in each]
        yield mean_of_models(each, name=name, confidence=confidence)


def _separation(instance: _Found, confidence: float) -> Mapping[str, Estimate | None]:
    if isinstance(instance, PersonsFound):
        counts = count(instance.losses)
        return {
            "auc": auc(counts, confidence=confidence),
            "advantage": advantage(counts, confidence=confidence),
        }
    return {name: document.find(instance, name) for name in POOLED}


def _checked(instances: Any) -> tuple[_Instance, ...]:
    if isinstance(instances, Losses | document.AuditResult) or not isinstance(instances, Sequence):
        raise InputError(
            f"instances must be a sequence of losses or results, one for each model, got {type(instances).__name__};"
            " a single model is audited with audit()."
        )
    for index, item in enumerate(instances):
        validate.instance(f"instance {index} (counting from 0)", item, get_args(_Instance))
        if isinstance(item, Losses):
            item.refuse_stopped()
    if len(instances) < 2:  # noqa: PLR2004
        raise InputError(
            f"instances must be at least 2 models of the same training algorithm, got {len(instances)};"
            " a single model is audited with audit()."
        )
    return tuple(instances)


def _sizes(instances: Sequence[_Found], disclosure: str) -> dict[str, list[int]]:
    """Return the numbers of members and of non-members of all instances, if they suffice for who may read the result."""
    result = {}
    for name, group in (("n_member", "member"), ("n_nonmember", "non-member")):
        result[name] = [
            getattr(one.losses, name) if isinstance(one, PersonsFound) else one.data[name]
            for one in instances
        ]
        for index, (n, one) in enumerate(zip(result[name], instances, strict=True)):
            people = one.persons[name != "n_member"] if isinstance(one, PersonsFound) and one.named else n
            place = f"{group} losses of instance {index} (counting from 0)"
            validate.enough_to_share(place, min(n, people), disclosure)
    return result


def _hashes(instances: Sequence[_Instance]) -> list[str]:
    """Return the hash of every instance's losses; the same losses twice are one model counted twice."""
    seen: dict[str, int] = {}
    for index, one in enumerate(instances):
        own = document.input_hash(one) if isinstance(one, Losses) else str(one.provenance.get("input_sha256"))
        if own in seen:
            raise InputError(
                f"instances {seen[own]} and {index} (counting from 0) hold the same losses; each must be a model of"
                " its own, with its own split and training run: remove one."
            )
        seen[own] = index
    return list(seen)


def _curves(index: int, found: _Found) -> Mapping[str, NamedCurve]:
    curves = fixed_ranks.rank_curves(found.losses) if isinstance(found, PersonsFound) else found.curves
    by_name = {curve.name: curve for curve in curves}
    if not fixed_ranks.ATTACKS.keys() <= by_name.keys():
        raise InputError(
            f"instance {index} (counting from 0) is a result without rank curves, which only a result for insiders has; give the"
            " losses, or audit them with disclosure='insiders'."
        )
    return by_name


def _refusal(split: options.MembershipSplit) -> str | None:
    """Return why the declaration supports no statement about the mechanism, if it supports none."""
    if split == options.RandomSplit():
        return None
    if isinstance(split, options.RandomSplit):
        return (
            "in a stratified split a replaced record is not exchangeable with all non-members, only with those of its"
            " stratum; audit each stratum as an instance set of its own"
        )
    if isinstance(split, options.BernoulliSplit):
        return (
            "several instances are audited for replaced records, which needs a random split; given the sizes of the"
            " groups, independent coins of one probability are one: declare RandomSplit() if every record that had a"
            " coin was scored"
        )
    return (
        "it was not declared how membership was decided; only a fresh, uniformly random split for every instance,"
        " declared so, says something of it"
    )


def _data(
    setting: _Setting,
    sizes: Mapping[str, list[int]],
    evidence: fixed_ranks.InstanceRates,
    delta: float,
    confidence: float,
) -> dict[str, Any]:
    claim = setting.claim
    return {
        "disclosure": str(setting.disclosure),
        "n_instances": evidence.hits.shape[0],
        **sizes,
        "n_attacks": int(evidence.rates.size),
        "delta": delta,
        "confidence": confidence,
        "split": options.name_of(setting.split, options.SPLITS),
        "claim": None if claim is None else claim.in_words(),
        "claim_delta": claim.delta if isinstance(claim, options.StatedClaim) else None,
        **validate.several_looks(setting.looks),
    }
