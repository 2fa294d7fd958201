"""audit_labels(): leakage about training labels, without any record from outside the training set.

For each training record a fair coin decides whether a guesser is shown its real label or one drawn from a law D of the label
given the features, and the model's probabilities reveal which. It is about label privacy alone: two data sets are neighbours
where one label differs, and the features are known to all.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from auditor.checks.answers import answer, said
from auditor.checks.losses import collection
from auditor.collectors.base.outputs import Output
from auditor.collectors.base.records import Records
from auditor.collectors.base.scorer import ModelScorer, batch_results
from auditor.collectors.base.tasks import BatchLosses, Classification, concatenated, records_of
from auditor.collectors.streaming.scorers import ScoringOptions, opened_scorer
from auditor.collectors.streaming.trial import columns_noticed
from auditor.collectors.tables.opening import RecordTable, open_source
from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.numbers import LEAST_SHOWN, about, number, percent
from auditor.core.values import Array, Booleans, Check, Estimate, Floats, Integers, Status, Subject
from auditor.estimators.guess_tests import pure_bound
from auditor.estimators.guesses import Guesses
from auditor.estimators.limits import kinds_of, poisson_binomial_tail
from auditor.estimators.propensity import estimated_odds, if_odds_are_off
from auditor.estimators.twins import twins
from auditor.records.features import Features, encoded, fingerprints
from auditor.results.disclosure import shared
from auditor.results.document import LabelsResult, made_now

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
# The second is at most 1/D(z) whatever leaks, for D may draw the real label too; the first has no limit.
#
# So given the model, the labels shown and all other coins, a guess is right at most so often, whatever it is: guesses, orders
# and sets may depend on the model, the features, D and the labels shown, on no coin and no label that was not shown, nor on
# where a record stands in its file, which may follow its label. Revealing
# the coins one after another shows the number of right guesses to be stochastically below a Poisson-binomial number, as in
# `auditor.estimators.guess_tests`; delta is 0.
#
# Where p is not D, D(z)/p(z) * (p(z) + (1 - p(z)) e^eps) = D(z) (1 + e^eps (1 - p(z))/p(z)). If the odds of z under the two
# laws differ by a factor of at most e^kappa, that is at most D(z) + (1 - D(z)) e^(eps + kappa), and the same below: a bound
# eps_L under D is one of eps_L - kappa under p, at the same level.


def label_odds(prior: Floats, inside: bool, epsilon: float) -> Floats:  # noqa: FBT001 - as of every `Odds`
    """Return the largest log-odds of guesses to be right, "real" (``inside``) or "drawn", under pure label privacy.

    Args:
        prior: Log-odds of another label than the one that is shown, by D: log((1 - D)/D).
        inside: Whether the guesses say "real".
        epsilon: In nats.

    >>> [float(np.exp(label_odds(np.zeros(1), real, np.log(3.0))[0]).round(6)) for real in (True, False)]
    [1.5, 2.0]
    """
    sign = -1 if inside else 1
    # log(D + (1 - D) e^(sign eps)), D = expit(-prior)
    first, second = special.log_expit(-prior), special.log_expit(prior)
    return np.asarray(sign * np.logaddexp(first, second + sign * epsilon))


_NO_OTHER = -36.0  # log-odds of another label where D is sure of the one shown; smaller ones round to that


def draw_labels(law: Floats, codes: Integers, rng: np.random.Generator) -> tuple[Booleans, Integers]:
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


def label_guesses(
    log_probability: Floats,
    log_law: Floats,
    real: Booleans,
    rng: np.random.Generator,
    least: int = 1,
) -> Guesses:
    """Guess of each label shown whether it is real: where the model gives it more than D does.

    Args:
        log_probability: Shape (n,), of the label shown by the model; minus infinity where it excludes it.
        log_law: Shape (n,), the same by D; finite.
        real: Shape (n,), the coins, which decide nothing but which guesses are right.
        rng: Breaks ties: where a record stands in its file may follow its label.
        least: Guesses in a set.
    """
    words = log_probability - log_law
    says_real = words > 0
    mixed = rng.permutation(words.size)
    keys = (-np.abs(words), -words, words)
    surest, back, order = (mixed[np.argsort(key[mixed], kind="stable")] for key in keys)
    with np.errstate(divide="ignore"):
        prior = np.log(-np.expm1(log_law)) - log_law
    return Guesses(
        right=says_real == real,
        orders={"surest": surest, "real": back[: says_real.sum()], "drawn": order[: (~says_real).sum()]},
        prior=np.maximum(prior, _NO_OTHER),
        adjacency=options.Adjacency.REPLACE_ONE,
        evidence="labels shown, real or drawn",
        assumptions=(),
        details={},
        inside=says_real,
        odds=label_odds,
        least=least,
    )


# --- The law D: given, or learnt from other records ---


_FOLDS = 5
_SURELY = 0.01
_ROUNDING = 1e-6  # of a sum of probabilities


def _given(probabilities: Any, n: int, width: int | None) -> Floats:
    """Return D as it was given, if each row is a law."""
    result = validate.array("probabilities", probabilities)
    shape = (n, result.shape[-1] if width is None and result.ndim else width)
    if result.dtype.kind not in "fiu" or result.shape != shape:
        columns = "classes" if width is None else width
        raise InputError(
            f"probabilities must be an array of shape ({n}, {columns}), a row for each record and a column for each class, got"
            f" shape {result.shape} of type {result.dtype}."
        )
    law = result.astype(np.float64)
    sums = law.sum(axis=1)
    bad = ~((law >= 0).all(axis=1) & (np.abs(sums - 1) <= _ROUNDING))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            "probabilities must be 0 or more and sum to 1 in each row, got a sum of"
            f" {sums[row]:.9g} (first at {validate.FROM_ZERO.at(row)}); normalise them."
        )
    return np.asarray(law / sums[:, None])


def _learnt(reference: Records, records: Records, names: Sequence[Any], rng: np.random.Generator) -> Floats:
    """Return D as other records teach it, shape (n, K); a class that they do not have gets 0.

    The odds of each class against the rest, as `estimated_odds` learns them, calibrated on records that no classifier had
    seen; of more than two classes the probabilities are divided by their sum.

    Raises:
        InputError: Records of the audit among them, other features, or too few of a class.
    """
    features = Features(member=reference.features, nonmember=records.features)
    shared = twins(fingerprints(features))
    if shared.shared and shared.p_more < _SURELY:
        raise InputError(
            f"reference must hold other records than those that are audited, got {shared.shared:,} contents that both have,"
            f" where chance gives about {shared.expected:,.1f}; leave those records out of it."
        )
    codes = reference.codes(names)
    counts = np.bincount(codes, minlength=len(names))
    there = np.flatnonzero(counts)
    if there.size < 2 or counts[there].min() < _FOLDS:  # noqa: PLR2004
        rarest = names[there[np.argmin(counts[there])]]
        raise InputError(
            f"reference must hold 2 labels or more, and {_FOLDS} records of each, got {counts[there].min():,} of"
            f" {there.size:,} label(s) (label {rarest!r}); give more of them."
        )
    values, _ = encoded(*features.tables, rng=rng)
    learnt = np.arange(len(values)) < codes.size
    label = np.append(codes, np.full(len(records), -1))
    of_two = there.size == 2  # noqa: PLR2004 - one is the other's opposite
    classes = there[1:] if of_two else there
    odds = np.stack([estimated_odds(values, label == place, learnt)[~learnt] for place in classes], axis=1)
    law = np.zeros((len(records), len(names)))
    law[:, there] = special.softmax(special.log_expit(np.hstack([-odds, odds]) if of_two else odds), axis=1)
    return law


# --- How well D and the model predict the real labels, and whether D can be their law ---


_CONTRADICTION = 1e-3
_OFF = 0.1  # of log-odds, below which a difference is reported without a warning


def _quality(log_probability: Floats, right: Booleans) -> dict[str, float]:
    return {"log_loss": -float(log_probability.mean()), "accuracy": float(right.mean())}


def _fit_of_law(law: Floats, codes: Integers, names: Sequence[Any], fewest: int) -> Check:
    """Warn where the numbers of the labels are not those that D gives, by its odds: Poisson-binomial tails, shared by labels.

    Args:
        law: Shape (n, K), D.
        codes: Shape (n,), the columns of the real labels.
        names: The label of each column.
        fewest: Records that must have a label, and records that must not, for the label to be compared.
    """
    counts, n = np.bincount(codes, minlength=law.shape[1]), codes.size
    with np.errstate(divide="ignore"):
        apart = special.logit(counts / n) - special.logit(law.mean(axis=0))

    def p_value(place: int) -> float:
        odds = special.logit(np.clip(law[:, place], 1e-15, 1 - 1e-15))
        tails = (
            poisson_binomial_tail(*kinds_of(sign * odds), int(count))
            for sign, count in ((1, counts[place]), (-1, n - counts[place]))
        )
        return 2 * min(tails)

    compared = np.flatnonzero((counts >= fewest) & (counts <= n - fewest)).tolist()
    if not compared:
        return answer("label_law", "unknown", fewest=fewest)
    least, worst = min((p_value(place), place) for place in compared)
    off = abs(float(apart[worst]))
    clear = least * law.shape[1] < _CONTRADICTION
    shares = {"expected": percent(float(law[:, worst].mean())), "observed": percent(counts[worst] / n)}
    message = said("label_law", "seen", label=names[worst], factor=number(np.exp(off)), **shares)
    details = {"label": str(names[worst]), "odds_off": off, "p_value": min(1.0, least * law.shape[1])}
    return Check("label_law", Status.WARN if clear and off > _OFF else Status.OK, message, details)


def _copies(records: Records) -> tuple[Check, ...]:
    """Warn of audited records with the features of others: their labels may be one label counted twice."""
    hashes = fingerprints(Features(member=records.features, nonmember=records.features)).member
    repeats = hashes.size - np.unique(hashes).size
    if not repeats:
        return ()
    details = {"repeated_content_members": int(repeats), "advice": "Keep one of each kind and audit again."}
    return (answer("duplicates", "warn/labels", details, records=about(repeats).capitalize()),)


# --- The audit ---


BOUND = "epsilon_bound.labels"
_CONDITION = (
    "conditional on a D that is the law of every audited record's label given its features, which no audit can check: it is wrong"
    " where the features lack something, and, where it was learnt, also where the classifier missed something that they contain; without any"
    " leak the odds of at least one label are off by a factor of e^epsilon or more"
)
_DECLARED = (
    "the audited records are training records with the labels that they were trained with (declared, not checked)",
    "given all features the labels are independent of each other, and D was made without these labels",
)
_METHOD = "fair coins between real labels and labels drawn from D; every order and number of guesses, calibrated together [own]"
_NOT_PRIVATE = "D is sure of every label that is shown, so no label is private and there is nothing to guess"


def audit_labels(
    model: Any,
    records: Any,
    *,
    reference: Any = None,
    probabilities: Any = None,
    classes: Sequence[Any] | None = None,
    output: Output | None = None,
    repeats: int = 1,
    batch_size: int | None = None,
    confidence: float = 0.95,
    looks: int = 1,
    seed: int = 0,
    model_name: str | None = None,
    disclosure: options.Disclosure | str = options.Disclosure.PUBLIC,
) -> LabelsResult:
    """Audit the leakage of a model about its training labels: no record from outside the training set is needed.

    For each record a fair coin shows its real label or one drawn from D, a law of the label given the features; the model's
    probabilities say which. So many right guesses bound the epsilon of the training algorithm where one label is replaced
    (label privacy), at delta 0. It says nothing of who was in the training data, and nothing of features.

    The bound holds if D is the law of every audited label, which no audit can check: D is wrong where the features lack something,
    and, where it was learnt, also where the classifier missed something that they contain. Without any leak, the odds of at least one label are
    off by a factor of e^epsilon or more. So it judges no claim. If the odds of D are off
    by a factor of at most e^0.25, the row ``epsilon_bound.labels.off_0.25`` holds; rows for 0.1, 0.5 and 1 are read in the same way.

    Args:
        model: Any classifier that `collect` takes and that gives probabilities; for probabilities at hand ``np.asarray``, with
            these as the X of the records and D given.
        records: Training records with the labels they were trained with: the pair (X, y), or a `RecordTable`.
        reference: Other records of the same population, in the same form, from which D is learnt; none of the audited ones among them.
        probabilities: Or D itself, made without these labels: shape (n, K), a column for each class, rows that sum to 1.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: Kind of output that the model returns; detected by default.
        repeats: Calls for each batch, whose outputs are averaged.
        batch_size: Most records for each call of the model.
        confidence: Confidence level of the bounds, in (0, 1).
        looks: Declared number of such audits, which share the error; see `audit`.
        seed: Seed of the coins and the labels drawn. Fix it before you look.
        model_name: A name for the model, shown in the report.
        disclosure: Audience of the result: see `audit`.

    Raises:
        InputError: A model or records that cannot be used, neither or both of ``reference`` and ``probabilities``, labels that
            are all the same, a reference that holds audited records, or a law that gives a label no chance which a record has.

    Source: the odds of right guesses are [own], derived in `auditor.many.label_audit`; after Steinke, Nasr and Jagielski
    2023.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 1000)
    >>> remembered = np.where(labels[:, None] == [0, 1], 0.99, 0.01)
    >>> result = audit_labels(np.asarray, (remembered, labels), probabilities=np.full((1000, 2), 0.5))
    >>> result["epsilon_bound.labels"].value > 3
    True
    """
    confidence = validate.of_one_look(confidence, looks)
    seed = validate.at_least("seed", seed, least=0)
    least = LEAST_SHOWN if options.Disclosure.named(disclosure) is options.Disclosure.PUBLIC else 1
    size = None if batch_size is None else validate.at_least("batch_size", batch_size, least=1)
    _refuse_sources(model, reference, probabilities)
    outcome = _records("records", records)
    validate.enough_to_share("labels in records", len(outcome), disclosure)
    other = None if reference is None else _records("reference", reference)
    scoring = ScoringOptions(classes=classes, output=output, batch_size=size, repeats=repeats)
    scorer, tried = opened_scorer(model, (outcome,), scoring)
    rng = np.random.default_rng([seed, 2])
    law, names, codes = _law(scorer, outcome, other, probabilities, rng)
    real, displayed = draw_labels(law, codes, rng)
    of_real, of_displayed = _losses(scorer, outcome, np.array(names, dtype=object)[displayed], size=size)
    noticed = (tried or columns_noticed(scorer, (outcome,))).warnings
    rows = np.arange(codes.size)
    log_law, log_real = np.log(law[rows, displayed]), np.log(law[rows, codes])
    guesses = label_guesses(special.log_expit(-of_displayed.loss), log_law, real, rng, least)
    best = label_guesses(np.where(displayed == codes, 0.0, -np.inf), log_law, real, rng, least)
    learnt = None if other is None else len(other)
    result = LabelsResult(
        data={
            "disclosure": str(disclosure),
            "model": model_name,
            "n_records": codes.size,
            "n_classes": len(names),
            "n_reference": learnt,
            "n_drawn": int((~real).sum()),
            "n_changed": int((displayed != codes).sum()),
            "delta": 0.0,
            "confidence": confidence,
            "law": "given" if learnt is None else "learnt",
            "of_law": _quality(log_real, law.argmax(axis=1) == codes),
            "of_model": _quality(special.log_expit(-of_real.loss), of_real.more["correct"]),
            "history": [f"{scorer.words}: probability of each label shown"],
            **validate.several_looks(looks),
        },
        estimates=_estimates(guesses, best, confidence),
        claims=(),
        comparisons=(),
        verdict=None,
        checks=(
            _fit_of_law(law, codes, names, least),
            *_copies(outcome),
            *filter(None, [collection(noticed)]),
        ),
        curves=(),
        provenance=made_now()
        | {"input_sha256": _hash(law, codes), "seed": seed, "source": None, "command": None},
    )
    return shared(result) if least == LEAST_SHOWN else result


def _refuse_sources(model: Any, reference: Any, probabilities: Any) -> None:
    """Refuse a law that has no source, two of them, or the model's own outputs."""
    if reference is not None and model is np.asarray:
        raise InputError(
            "probabilities must be given where the model is numpy.asarray, got reference: D would be learnt from the model's outputs in"
            " place of features."
        )
    if (reference is None) == (probabilities is None):
        raise InputError(
            "either reference, records outside the audited ones, or probabilities, of each label of each audited record, must"
            f" be given, got {'neither' if reference is None else 'both'}."
        )


def _records(argument: str, data: Any) -> Records:
    """Return the records of a pair (X, y), or of a table."""
    if not isinstance(data, RecordTable):
        return records_of(argument, argument, data, Classification())
    # Others may have been trained on or not.
    table = replace(data, member=None) if argument == "reference" else data
    source = open_source(table, task=Classification(), member=True, name=argument)
    return source.read(0, len(source)).records


def _law(
    scorer: ModelScorer,
    records: Records,
    reference: Records | None,
    probabilities: Any,
    rng: np.random.Generator,
) -> tuple[Floats, list[Any], Integers]:
    """Return D, the label of each of its columns, and the column of each record's real label.

    Raises:
        InputError: D gives a real label no chance, or all records have one label.
    """
    table = None if scorer.classes is None else list(scorer.classes)
    if reference is None:
        law = _given(probabilities, len(records), None if table is None else len(table))
        names = list(range(law.shape[1])) if table is None else table
    else:
        names = table or np.unique(np.concatenate([reference.labels, records.labels])).tolist()
        law = _learnt(reference, records, names, rng)
    codes = records.codes(names)
    own = law[np.arange(codes.size), codes]
    if (own == 0).any():
        row = int(np.argmax(own == 0))
        fix = "give probabilities above 0" if reference is None else "give a reference with records of it"
        raise InputError(
            f"D must give the label of every audited record a chance, got probability 0 of {names[codes[row]]!r}"
            f" (first at {records.row(row)}; {int((own == 0).sum()):,} such records); {fix}, or leave those records out."
        )
    if (codes == codes[0]).all():
        raise InputError(
            f"records must hold at least 2 different labels, got {names[codes[0]]!r} alone: of labels that are all the same"
            " nothing is kept private."
        )
    return law, names, codes


def _losses(
    scorer: ModelScorer, records: Records, displayed: Array, *, size: int | None
) -> tuple[BatchLosses, BatchLosses]:
    """Return the losses of the real labels and those of the labels shown, by the same answers of the model."""

    def both(part: Records) -> tuple[BatchLosses, BatchLosses]:
        outputs = scorer.outputs(part)
        other = replace(part, labels=displayed[part.numbers])
        return scorer.losses(outputs, part), scorer.losses(outputs, other)

    [parts] = batch_results(scorer, [records], both, size=size)
    of_real, of_displayed = (concatenated(side) for side in zip(*parts, strict=True))
    return of_real, of_displayed


def _estimates(guesses: Guesses, best: Guesses, confidence: float) -> tuple[Estimate, ...]:
    """Return the bound, and its remainder if the odds of D are off."""
    about: dict[str, Any] = {"method": _METHOD, "subject": Subject.MECHANISM, "delta": 0.0}
    if not (guesses.prior > _NO_OTHER).any():
        return if_odds_are_off(Estimate.missing(BOUND, _NOT_PRIVATE, **about), _WITHIN)
    bound, item = pure_bound(guesses, guesses.sets, alpha=1 - confidence)
    top, _ = pure_bound(best, best.sets, alpha=1 - confidence)
    result = Estimate.at_least(
        BOUND,
        bound,
        confidence=round(confidence, 12),
        adjacency=guesses.adjacency,
        assumptions=(_CONDITION, *_DECLARED),
        details={
            "ceiling": max(top, bound),
            "records": guesses.bits,
            **item.details,
            "tried": [one.details for one in guesses.sets],
            "conditional": True,
        },
        **about,
    )
    return if_odds_are_off(result, _WITHIN)


_WITHIN = "the odds of every label by D are within a factor of {} of those of its law given the record's features (declared, not checked)"


def _hash(law: Floats, codes: Integers) -> str:
    """Return the SHA-256 of D as little-endian float64 with the columns of the real labels."""
    return hashlib.sha256(law.astype("<f8").tobytes() + codes.astype("<i8").tobytes()).hexdigest()
