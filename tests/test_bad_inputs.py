"""One table of what cannot be used: each bad argument, its error, and the words that help: name, value, place."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import canaries, scores
from auditor.collectors.served import Template
from auditor.core import (
    DPSGD,
    Census,
    Claim,
    Comparison,
    Estimate,
    FixedThreshold,
    InputError,
    Losses,
    Melded,
    OnePerPerson,
    RandomSplit,
    RankGrid,
    Split,
    StatedClaim,
    Subject,
    Subset,
    Verdict,
)
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    clopper_pearson,
)
from auditor.many import GaussianAttack, RandomisedResponse, records_needed
from auditor.records import Features, fingerprints, per_person
from auditor.report import render
from auditor.scores import Population, References
from auditor.sensitivity import Columns, SensitivityTracker
from auditor.verdicts import check_gates, judge, parse

TWO = Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0])
TEN = Losses(member=np.arange(10.0), nonmember=np.arange(10.0))
NAMED = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0], id=(["a", "b"], ["c", "d"]))
REFERENCE = References(member=[0.5, 0.6], nonmember=[0.7, 0.8])
POPULATION = Population(loss=[0.5, 0.9], reference=[0.5, 0.9])
CLASSES = Population(loss=[1.0, 2.0], group=[0, 0])
CLAIM = StatedClaim(1.0, 1e-5)
ABOUT = {"delta": 1e-5, "details": {"ceiling": 5.0}, "adjacency": "replace-one"}
BOUND = Estimate("epsilon_bound.one_run", 2.0, 2.0, None, 0.95, "by hand", Subject.MECHANISM, **ABOUT)
PROMISE = Claim("epsilon", 1.0, 1e-5, "replace-one", "stated", proven=True)
X, Y = np.eye(4), [0, 1, 0, 1]
RAGGED = [[1.0], [1.0, 2.0]]


def rng():
    """Random numbers that no case depends on."""
    return np.random.default_rng(0)


def ids(member, nonmember):
    """Reference losses of records with these ids."""
    return References(member=[1.0] * len(member), nonmember=[1.0] * len(nonmember), id=(member, nonmember))


def learned(features, held, losses=TWO, size=60, **given):
    """Scores by a regression on these tables."""
    population = Population(loss=np.arange(size) + 0.0)
    fitted = scores.fit_quantile_regression(
        features, calibration=population, calibration_features=held, rng=rng(), **{"rate": 0.1, **given}
    )
    return fitted.transform(losses)


def needed(**given):
    """A plan with one bad argument."""
    return records_needed(**{"epsilon": 1.0, "delta": 1e-5, **given})


def runs(**given):
    """An audit of runs with one bad argument."""
    return auditor.audit_runs(TEN, **{"delta": 1e-5, **given})


def models(*instances, **given):
    """An audit of models with one bad argument."""
    return auditor.audit_instances(list(instances) or [TWO, TEN], **{"delta": 1e-5, **given})


def opacus_run(*history):
    """A claim read from an engine of Opacus that saw these steps."""
    return DPSGD.from_opacus(SimpleNamespace(history=list(history)))


def tensorflow_run(**given):
    """A claim read from the arguments of TensorFlow Privacy with one bad argument."""
    run = {"number_of_examples": 60_000, "batch_size": 250, "noise_multiplier": 1.3, "epochs": 15}
    return DPSGD.from_tensorflow_privacy(**{**run, **given})


def collected(**given):
    """The collection of runs with one bad argument, which runs nothing."""
    return auditor.collect_runs(print, **{"runs": 8, **given})


def columns(**given):
    """Losses from columns of which one is bad."""
    return auditor.collectors.from_columns(**{"loss": [0.1, 0.9, 0.2, 0.7], "member": [1, 0, 1, 0], **given})


def table(**given):
    """A table of records with one bad name."""
    return auditor.RecordTable(**{"data": {"y": [1]}, **given})


def served(**given):
    """An endpoint with one bad option."""
    return auditor.Endpoint("https://models.example/v2/models/income", **given)


def completed(**given):
    """An endpoint of completions with one bad option."""
    return auditor.collectors.CompletionsEndpoint(
        **{"url": "http://localhost:1/v1", "model": "tiny", **given}
    )


CASES = {
    # Losses and their labels.
    r"member losses must be finite, got 2 NaN \(first at row 1, counting": lambda: Losses([0.1, math.nan, math.nan], [1, 2]),
    r"nonmember losses must be finite, got 1 infinite values \(first at row 2": lambda: Losses([1, 2], [1.0, 2.0, math.inf]),
    "member losses need at least 2 records, got 0": lambda: Losses([], [1, 2]),
    "nonmember losses need at least 2 records, got 1": lambda: Losses([1, 2], [1]),
    r"member losses must be one-dimensional, got shape \(1, 2\)": lambda: Losses([[1, 2]], [1, 2]),
    "member losses must be numbers, got an array of type object": lambda: Losses(["a", "b"], [1, 2]),
    "member losses must be numbers, got an array of type complex": lambda: Losses([1j, 2], [1, 2]),
    "member losses must be numbers, got truth values.*; give the losses": lambda: Losses([True, False], [1, 2]),
    r"got 9007199254740993 \(first at row 1.*; give them as floats": lambda: Losses([1, 2**53 + 1], [1, 2]),
    r"nonmember group must be one-dimensional, got shape \(2, 1\); flatten it": lambda: Losses(
        [1, 2], [1, 2], group=([1, 2], [[1], [2]])
    ),
    r"member id must hold numbers below 2\^53 .*, got 9007199254740992 \(first at row 1,.*as text": lambda: Losses(
        [1, 2], [1, 2], id=([1.0, 2.0**53], [1, 2])
    ),
    "member person must hold one value for each record, got .*; give one of its fields": lambda: Losses(
        [1, 2], [1, 2], person=(np.zeros(2, dtype="i4,i4"), [1, 2])
    ),
    "member losses has 2, member id has 3": lambda: Losses([1, 2], [1, 2], id=([1, 2, 3], [4, 5])),
    "persons must be .*EachRecord.* give the losses a person column": lambda: per_person(TWO, choice=OnePerPerson()),
    "member losses must belong to at least 2 people, got 1": lambda: per_person(
        Losses([1.0, 2.0], [3.0, 4.0], person=(["a", "a"], ["b", "c"])), choice=OnePerPerson()
    ),
    # Choices.
    "noise_multiplier must be above 0, got 0": lambda: DPSGD(0.0, 0.1, 10),
    r"sampling_rate must lie in \(0, 1\], got 0": lambda: DPSGD(1.0, 0.0, 10),
    "steps must be a whole number of 1 or more, got 0": lambda: DPSGD(1.0, 0.1, 0),
    "a claimed epsilon needs its delta, got epsilon 1 alone": lambda: StatedClaim(1.0),
    "claimed epsilon must be 0 or more, got -1": lambda: StatedClaim(-1.0, 1e-5),
    r"claimed delta must lie in \[0, 1\), got 1": lambda: StatedClaim(1.0, 1.0),
    "adjacency must be .* did you mean 'add-remove'": lambda: StatedClaim(1.0, 0.1, "addremove"),
    "tails must be one of 'both', 'lower', 'upper', got 'left'": lambda: RankGrid("left"),
    "threshold must be finite, got nan": lambda: FixedThreshold(math.nan),
    r"fraction must lie in \(0, 1\), got 1": lambda: Split(1.0),
    "seed must be a whole number of 0 or more, got -1": lambda: Split(seed=-1),
    r"interval must be auditor\.estimators\.Calibrated or auditor\.estimators\.ClopperPearson or auditor\.Melded": lambda: RankGrid(interval=Census()),
    "engine must be the PrivacyEngine of the training or its accountant, got object": lambda: DPSGD.from_opacus(object()),
    "at least 1 step, got none": opacus_run,
    r"sampling_rate must lie in \(0, 1\], got 1.5": lambda: opacus_run((1.0, 1.5, 3)),
    "noise_multiplier must be above 0, got -1": lambda: tensorflow_run(noise_multiplier=-1.0),
    r"batch_size must be at most number_of_examples \(60,000\), got 60,001": lambda: tensorflow_run(batch_size=60_001),
    "batch_size must be a whole number of 1 or more": lambda: tensorflow_run(batch_size=0),
    "epochs must be above 0": lambda: tensorflow_run(epochs=0),
    "unit must be one of": lambda: tensorflow_run(unit="user"),
    # The audit.
    r"file 'x.csv' does not exist": lambda: auditor.audit("x.csv"),
    r"delta must lie in \[0, 1\), got 1": lambda: auditor.audit(TEN, delta=1.0),
    r"one_run_test must be auditor\.FDP or": lambda: auditor.audit(TEN, one_run_test=1),
    "delta must be finite, got nan": lambda: auditor.audit(TEN, delta=math.nan),
    "delta must be finite, got an integer": lambda: auditor.audit(TEN, delta=10**400),
    "confidence must lie in": lambda: auditor.audit(TEN, confidence=0.0),
    "confidence must be at most 1 - 1e-12": lambda: auditor.audit(TEN, confidence=0.9999999999999999),
    "training_size must be at least the number of member losses, got 5 for 10": lambda: auditor.audit(TEN, training_size=5),
    r"fpr must lie in \(0, 1\), got 2": lambda: auditor.audit(TEN, fpr=(2.0,)),
    "fpr must be a sequence of rates": lambda: auditor.audit(TEN, fpr=None),
    "coverage must be one of 'sample', 'census', 'subset', got 'all'": lambda: auditor.audit(TEN, coverage="all"),
    r"coverage must be an instance, got the class Census; write Census\(...\)": lambda: auditor.audit(TEN, coverage=Census),
    "split must be auditor.UnknownSplit or auditor.RandomSplit or auditor.Ber": lambda: auditor.audit(TEN, split=1),
    "claim must be auditor.DPSGD or auditor.StatedClaim or auditor.StatedCurve or None, got .*; write auditor.StatedClaim": lambda: auditor.audit(TEN, claim=(1.0, 1e-5)),
    "threshold must be auditor.RankGrid": lambda: auditor.audit(TEN, threshold=0.5),
    "must have one row for each loss": lambda: auditor.audit(TEN, features=Features([[1.0]], [[1.0]])),
    "a census scores every training record": lambda: auditor.audit(TEN, coverage=Census(), training_size=5000),
    # Estimators.
    "records on each side of a split must be 2 or more, got 1": lambda: clopper_pearson(TWO, delta=0.0, rule=Split()),
    "as many records as were scored, got of = 9 for 10 member losses": lambda: clopper_pearson(
        TEN, delta=0.0, coverage=Subset(of=9), rule=RankGrid(interval=Melded())
    ),
    # Curves.
    "columns must have the same length: fpr has 2, tpr has 3": lambda: TradeoffCurve(fpr=[0, 1], tpr=[0, 0.5, 1]),
    "fpr must run from 0 to 1": lambda: TradeoffCurve(fpr=[0.1, 1], tpr=[0, 1]),
    "fpr must never fall, got a fall after point 1": lambda: TradeoffCurve(fpr=[0, 0.5, 0.4, 1], tpr=[0, 0.5, 0.6, 1]),
    "tpr must never fall": lambda: TradeoffCurve(fpr=[0, 0.5, 1], tpr=[0, math.nan, 1]),
    # Features.
    "same columns, got 2 and 3": lambda: Features(np.ones((2, 2)), np.ones((2, 3))),
    "same columns, got 'a', 'b'": lambda: Features(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    "member features must be an array or a list, got str": lambda: Features("text", "text"),
    "one row for each record, got an array of shape ()": lambda: Features(5, 5),
    "member features must .* got rows of different lengths": lambda: Features(RAGGED, [[1]]),
    "one row for each record, .* type complex128": lambda: Features(np.ones(2, dtype=complex), np.ones(2)),
    "member features must have no masked values, got 1": lambda: Features(np.ma.array([1, 2], mask=[0, 1]), [1, 2]),
    "same length: member a has 2, member b has 1": lambda: Features({"a": [1, 2], "b": [1]}, {"a": [1], "b": [1]}),
    "one-dimensional columns": lambda: Features({"a": [[1, 2]]}, {"a": [[1, 2]]}),
    "^nonmember features must have one row .* got 1 rows for 2 losses": lambda: Features([1, 2], [3]).check_rows(TWO),
    "^member features, words: cells must be .* got list; leave": lambda: fingerprints(
        Features(pd.DataFrame({"words": [["a"], ["b"]]}), pd.DataFrame({"words": [["a"], ["b"]]}))
    ),
    # Scores.
    "class of each calibration record": lambda: scores.class_conditional(TWO),
    "class of each audited record": lambda: scores.class_conditional(CLASSES)(TWO),
    "least must be a whole number of 2 or more": lambda: scores.class_conditional(CLASSES, least=1),
    "calibration must be auditor.Losses or auditor.scores.Population, got list": lambda: scores.class_conditional([1.0, 2.0]),
    r"features must be a pair \(members, non-members\) of tables, got ndarray": lambda: learned(np.zeros((3, 2)), np.zeros(60)),
    "nonmember features must have the columns of the member features": lambda: learned((np.zeros(2), np.zeros((2, 3))), np.zeros(60)),
    "features must be finite or missing, got 2 infinite values": lambda: learned((np.zeros(2), np.full(2, np.inf)), np.zeros(60)),
    "member losses has 2, member features has 3": lambda: learned((np.zeros(3), np.zeros(2)), np.zeros(60)),
    "not resolvable with 50 non-members": lambda: learned((np.zeros(2), np.zeros(2)), np.zeros(100), size=100, rate=0.01),
    r"rate 0\.01 is not resolvable with 98 non-members.*at least 99": lambda: scores.conformal_threshold(np.arange(98.0), rate=0.01),
    r"rate must lie in \(0, 1\), got 0": lambda: scores.conformal_threshold(np.arange(98.0), rate=0.0),
    "conformal losses must be finite, got 1 NaN": lambda: scores.conformal_threshold(np.array([1.0, np.nan]), rate=0.5),
    "reference member losses must be finite, got 1 NaN": lambda: References(member=[1.0, math.nan], nonmember=[1.0]),
    r"\(model 1\) losses must be finite.*row 1": lambda: References(member=[[1.0, 2.0], [1.0, np.inf]], nonmember=[[1.0, 2.0]]),
    "must come from the same models, got 2 and 1 columns": lambda: References(member=[[1.0, 2.0]], nonmember=[1.0]),
    r"must have shape \(records,\) or \(records, models\), got \(0, 1\)": lambda: References(member=[], nonmember=[1.0]),
    "reference id must be a pair": lambda: References(member=[1.0], nonmember=[1.0], id=["a", "b", "c"]),
    "reference member losses has 1, reference member id has 2": lambda: References(member=[1.0], nonmember=[1.0], id=(["a", "b"], ["c"])),
    "member losses has 2, reference member losses has 3": lambda: scores.difficulty(References([1.0] * 3, [1.0] * 2))(TWO),
    r"got none for 1 of 2 ids \(first at row 1": lambda: ids(["a", "x"], ["c", "d"]).aligned(NAMED),
    "reference member ids must be unique, got 1 repeated": lambda: ids(["a", "b", "a"], ["c", "d"]).aligned(NAMED),
    r"reference must be auditor\.scores\.References": lambda: scores.difficulty([1.0, 2.0]),
    "population losses need at least 2 records, got 1": lambda: Population(loss=[1.0]),
    "population losses has 2, population group has 1": lambda: Population(loss=[1.0, 2.0], group=["a"]),
    "scale must be one of": lambda: Population(loss=[1.0, 2.0], scale="nats"),
    r"^a must lie in \[0, 1\], got 1.5": lambda: scores.rmia(REFERENCE, population=POPULATION, a=1.5),
    "gamma must be above 0, got 0": lambda: scores.rmia(REFERENCE, population=POPULATION, gamma=0.0),
    "reference models' losses on the population": lambda: scores.rmia(REFERENCE, population=Population(loss=[0.5, 0.9])),
    "same models, got 1 and 3 columns": lambda: scores.rmia(REFERENCE, population=Population([0.5, 0.9], np.ones((2, 3)))),
    "population must be auditor.scores.Population": lambda: scores.rmia(REFERENCE, population=[0.5, 0.9]),
    "hold_out needs at least 2 members and 2 non-members on each side": lambda: scores.hold_out(TWO, rng=rng()),
    "labels that tie fewer records together": lambda: scores.hold_out(
        Losses(np.arange(9.0), np.arange(9.0), person=(np.zeros(9), np.zeros(9))), rng=rng()
    ),
    # Plans.
    "epsilon must be above 0, got 0": lambda: needed(epsilon=0.0),
    r"power must lie in \(0, 1\)": lambda: needed(power=1.0),
    "attack must be auditor.many.PerfectAttack or": lambda: needed(attack=3),
    "mu must be above 0": lambda: GaussianAttack(0.0),
    "epsilon of the randomised response must be above 0": lambda: RandomisedResponse(-1.0),
    "a plan has one target: give": lambda: records_needed(epsilon=1.0),
    "epsilon and delta to certify": lambda: needed(claim=CLAIM),
    "runs refute claims": lambda: needed(runs=auditor.FixedNumber()),
    "one run on a declared split": lambda: records_needed(claim=CLAIM),
    "one of the two": lambda: records_needed(claim=CLAIM, runs=auditor.FixedNumber(), split=RandomSplit()),
    "^runs must be one of 'fixed-number'": lambda: records_needed(claim=CLAIM, runs="fixed"),
    "^claim must be auditor": lambda: records_needed(claim="epsilon 1", split=RandomSplit()),
    # Several models, and many runs.
    "at least 2 models": lambda: models(TWO),
    "instances must be a sequence": lambda: auditor.audit_instances(TWO, delta=1e-5),
    r"instance 1 \(counting from 0\) must be": lambda: models(TWO, "losses.csv"),
    "instances 0 and 2": lambda: models(TWO, TEN, TWO),
    "split must be auditor.UnknownSplit or auditor.RandomSplit or": lambda: models(split=2),
    "records on each side of a split must be 2 or more, got 1 at fraction 0.1": lambda: runs(threshold=Split(0.1)),
    "threshold must be .*RankGrid or .*FixedThreshold or .*Split or None, got 0.5": lambda: runs(threshold=0.5),
    "must be other runs than those that are judged": lambda: runs(threshold_runs=TEN),
    "threshold must be left out beside threshold_runs": lambda: runs(threshold_runs=TWO, threshold=RankGrid()),
    "adjacency must be one of .*did you mean": lambda: runs(adjacency="add-replace"),
    r"losses must be auditor\.Losses, got \[0.1": lambda: auditor.audit_runs([0.1, 0.2], delta=0.0),
    "runs must be an even number, got 5": lambda: collected(runs=5),
    "runs must be a whole number of 4 or more, got 2": lambda: collected(runs=2),
    "batch must be a whole number of 1 or more": lambda: collected(batch=0),
    "workers must be a whole number of 1 or more": lambda: collected(workers=0),
    "^seed must be a whole number of 0": lambda: collected(seed=-1),
    "failed must be finite, got nan": lambda: collected(failed=math.nan),
    r"stop must be a rule such as auditor\.Sequential\(\), got 20": lambda: collected(stop=20),
    r"stop must be a rule such as auditor\.Sequential\(\), got <class": lambda: collected(stop=auditor.Sequential),
    r"engine must be one such as auditor\.collectors\.RayEngine\(workers=2\), got 'ray'": lambda: collected(engine="ray"),
    "engine must be one such as .* got <class": lambda: collected(engine=auditor.collectors.RayEngine),
    "workers must be left out beside an engine, got 2": lambda: collected(engine=auditor.collectors.RayEngine(), workers=2),
    "folder must be a text or a path, got 3": lambda: collected(folder=3),
    "progress must be a function, such as print, got True": lambda: collected(progress=True),
    # Strategies and contexts.
    r"release of the context must be a text that is not empty, got 5\.": lambda: auditor.Context(release=5),
    "owner of the context must be a text that is not empty": lambda: auditor.Context(owner="  "),
    "mitigations of the context must be a text": lambda: auditor.Context(mitigations=["dropout"]),
    r"exposed of the context must have at most 1,000 characters, got 1,001\.": lambda: auditor.Context(exposed="x" * 1001),
    r"next_audit of the context must be a date such as 2027-01-31, got 'soon'\.": lambda: auditor.Context(next_audit="soon"),
    "must be a date.* got '2027-02-30'": lambda: auditor.Context(next_audit="2027-02-30"),
    "must be a date.* got 'True'": lambda: auditor.Context(next_audit=True),
    "at least one result, got 0": lambda: render([]),
    # Values of a sensitive attribute.
    "values must hold at least 2 different values": lambda: Columns(0, [1.0]),
    "of the attribute, got 1; one has": lambda: Columns(0, [1, 1]),
    "one has nothing to infer": lambda: Columns([0, 1], [[1, 2], [1, 2]]),
    "columns must be indices, counting from 0, got True": lambda: Columns(True, [0, 1]),
    "must be finite, got nan at position 1": lambda: Columns(0, [1.0, np.nan]),
    r"values must be numbers, got \['a', 'b'\]": lambda: Columns(0, ["a", "b"]),
    r"2 columns, got shape \(2,\)": lambda: Columns([0, 1], [1.0, 2.0]),
    "columns must be a whole number of 0 or more, got -1": lambda: Columns(-1, [1.0, 2.0]),
    "each once": lambda: Columns([1, 1], [[1, 2], [3, 4]]),
    "at least one column": lambda: Columns([], [[], []]),
    "clipping_norm must be above 0": lambda: SensitivityTracker(clipping_norm=0),
    r"distance must be auditor\.sensitivity\.Full": lambda: SensitivityTracker(clipping_norm=1, distance="full"),
    # Judges of a claim.
    "gives no verdict": lambda: Comparison(PROMISE, "epsilon_star.gaussian", Verdict.REFUTED, "larger", Subject.MODEL),
    "needs the adjacency": lambda: Estimate("epsilon_star.gaussian", 3.0, None, None, None, "fit", Subject.MECHANISM),
    "has no adjacency": lambda: replace(BOUND, subject=Subject.MODEL),
    "condition": lambda: judge(PROMISE, replace(BOUND, details={"ceiling": 5.0, "conditional": True})),
    "no lower bound": lambda: judge(PROMISE, replace(BOUND, lower=None, confidence=None)),
    "claim metric must be one of 'epsilon'": lambda: judge(replace(PROMISE, metric="advantage"), BOUND),
    # Columns of losses, and tables of records.
    "same length: loss has 4, member has 3": lambda: columns(member=[1, 0, 1]),
    r"only 0 .* and 1 .*, got 2 .*row 2, .*; code members as 1": lambda: columns(member=[1, 0, 2, 0]),
    "member column must hold numbers, got 'yes'.*; code members as 1": lambda: columns(member=["yes", "no", "yes", "no"]),
    "member column must be one-dimensional": lambda: columns(member=[[1, 0, 1, 0]]),
    r"4 records and no member \(1\)": lambda: columns(member=[0, 0, 0, 0]),
    "member column must have no masked": lambda: columns(member=np.ma.masked_array(Y, mask=[0, 0, 1, 0])),
    "member losses need at least 2 records, got 1": lambda: columns(member=[1, 0, 0, 0]),
    "loss column must be one-dimensional": lambda: columns(loss=None),
    "loss column must hold rows of equal length, got rows of different len": lambda: columns(loss=[[1], [1, 2]]),
    "loss column must hold numbers": lambda: columns(loss=list("abcd")),
    r"got 2 NaN or blank \(first at row 1,": lambda: columns(loss=[0.1, np.nan, 0.3, np.nan]),
    r"got 2 infinite \(first at row 0,": lambda: columns(loss=[np.inf, -np.inf, 0.1, 0.2]),
    r"got 1 infinite \(first at row 0,": lambda: columns(loss=np.array([np.finfo(np.longdouble).max, 1, 2, 3])),
    r"no masked values, got 2 \(first at row 1,": lambda: columns(loss=np.ma.masked_array(np.zeros(4), mask=Y)),
    "the loss column is empty": lambda: columns(loss=[], member=[]),
    "same length: loss has 4, member has 4, id has 2": lambda: columns(id=[1, 2]),
    "id column must be one-dimensional": lambda: columns(id=5),
    "label must be the name of a column, or a list of different names, got 3": lambda: table(label=3),
    "^label must be the name .* 3": lambda: table(label=["y", 3]),
    "label must be .* a list of different names, got .'y', 'y'": lambda: table(label=["y", "y"]),
    "features must be the name of a column, .* got ' '": lambda: table(features=" "),
    "features must be the name of a column, .* got {'a'}": lambda: table(features={"a"}),
    "^id must be the name of a column, got ": lambda: table(id=["id"]),
    "^member must be the name of a column, got ''": lambda: table(member=""),
    # Served models.
    "^concurrency must be a whole number of 1 or more, got 0": lambda: served(concurrency=0),
    "^retries must be a whole number of 0 or more, got -1": lambda: served(retries=-1),
    "^timeout must be above 0": lambda: served(timeout=0),
    "^max_request_bytes must be a whole number of 1 or more": lambda: served(max_request_bytes=0),
    "^max_request_records must be a whole number of 1 or more": lambda: served(max_request_records=0),
    "^protocol must be one of": lambda: served(protocol="grpc"),
    "^output must be one of .* did you mean 'probabilities'": lambda: served(output="probability"),
    "^request_template must hold one of .* once, got 0 of them": lambda: Template("{}"),
    "^request_template must hold one of .* once, got 2 of them": lambda: Template('{"a": {{rows}}, "b": {{row}}}'),
    "^request_template must be JSON around its placeholder": lambda: Template('{"a": {{rows}}'),
    "it gives no log-probabilities of its input": lambda: completed(url="http://localhost/v1/chat/completions"),
    "/api/generate', where texts are not evaluable": lambda: completed(url="http://localhost/api/generate"),
    "model must be the name of the model on the server": lambda: completed(model=" "),
    "form must be": lambda: completed(form="echo"),
    "max_request_records must be a whole number of 1 or more": lambda: completed(max_request_records=0),
    # Canaries.
    "the features must be an array": lambda: canaries.mislabelled("records", Y, size=2),
    "features must be an array or a pandas DataFrame, got dict": lambda: canaries.mislabelled({"a": [1, 2]}, [0, 1], size=2),
    "rows of different lengths": lambda: canaries.mislabelled([[1], [2, 3]], [0, 1], size=2),
    "no masked values, got": lambda: canaries.mislabelled(np.ma.masked_less(X, 1), Y, size=2),
    "features has 4, labels has 3": lambda: canaries.mislabelled(X, Y[:3], size=2),
    r"1 missing \(first at row 2": lambda: canaries.mislabelled(X, [0, 1, None, 1], size=2),
    "labels must be of two classes or more, got 1": lambda: canaries.mislabelled(X, [1, 1, 1, 1], size=2),
    "labels must be one-dimensional": lambda: canaries.mislabelled(X, X, size=2),
    "size must be a whole number of 1 or more, got 0": lambda: canaries.mislabelled(X, Y, size=0),
    "size must be at most 4, the number of records, got 5": lambda: canaries.mislabelled(X, Y, size=5),
    "seed must be a whole number of 0 or more": lambda: canaries.mislabelled(X, Y, size=2, seed=-1),
    "pattern must be a mapping of features to values, got 7": lambda: canaries.patterned(X, Y, size=2, pattern=7),
    "pattern must be a mapping": lambda: canaries.patterned(X, Y, size=2, pattern={}),
    r"positions in records of shape \(4,\), got 4": lambda: canaries.patterned(X, Y, size=2, pattern={4: 1}),
    "pattern must name features": lambda: canaries.patterned(X, Y, size=2, pattern={"age": 1}),
    "its type, float64, holds, got 'much'": lambda: canaries.patterned(X, Y, size=2, pattern={0: "much"}),
    "holds, got 1.5": lambda: canaries.patterned(X.astype(int), Y, size=2, pattern={0: 1.5}),
    "type, uint8, holds, got 300": lambda: canaries.patterned(X.astype(np.uint8), Y, size=2, pattern={0: 300}),
    "float32, holds, got 1e\\+300": lambda: canaries.patterned(X.astype(np.float32), Y, size=2, pattern={0: 1e300}),
    "label must be one of the 2 classes of labels, got 7": lambda: canaries.patterned(X, Y, size=2, pattern={0: 1}, label=7),
    "id must be another for every canary, got 'a' 2 times": lambda: canaries.Canaries(None, None, ["a", "a"], [0, 1]),
    "member must hold only 0": lambda: canaries.Canaries(None, None, ["a", "b"], [0, 2]),
    "features has 4": lambda: canaries.Canaries(X, None, ["a", "b"], [0, 1]),
    "features must have no column 'member'": lambda: canaries.Canaries.of(X, Y).table(label="member"),
    "column 'member' is not in": lambda: canaries.read_coins({"id": ["a", "b"]}),
    "must hold only 0": lambda: canaries.read_coins({"id": ["a"], "member": [3]}),
    "template must be a text with a #": lambda: canaries.marked_texts("no secret", size=2),
    "size must be at most 10, the number of secrets, got 11": lambda: canaries.marked_texts("#", size=11),
    "template must be auditor.canaries.Template, got 3": lambda: canaries.marked_texts(3, size=1),
    r"at most 2\^62 secrets, got 1e\+19": lambda: canaries.Template("#" * 19),
    "alphabet must be two different signs": lambda: canaries.Template("#", alphabet="aa"),
    "candidates must be a mapping of names to the scores of runs": lambda: canaries.choose_canary({}, delta=0),
    "candidate 'a' must be auditor.Losses": lambda: canaries.choose_canary({"a": [1, 2]}, delta=0),
    r"equally many runs \(with, without\), got {'a': \(2, 2\), 'b': \(3, 2\)}": lambda: canaries.choose_canary({"a": TWO, "b": auditor.Losses([1, 2, 3], [4, 5])}, delta=0),
    "delta must lie in": lambda: canaries.choose_canary({"a": TWO}, delta=2),
    # Gates.
    "gate must be NAME OPERATOR NUMBER.* got 'auc'": lambda: parse("auc"),
    "gate must be NAME OPERATOR NUMBER.* got 'auc = 1'": lambda: parse("auc = 1"),
    "gate must be NAME OPERATOR NUMBER.* got 'auc > 1.nauc": lambda: parse("auc > 1\nauc > 2"),
    "gate must be NAME OPERATOR NUMBER.* got 'aaa": lambda: parse("a" * 300 + " > 1"),
    "gate must be NAME OPERATOR NUMBER.* got None": lambda: parse(None),
    "must be finite, got inf": lambda: parse("auc > 1e999"),
    "takes == or !=, got '>'": lambda: parse("verdict > refuted"),
    "did you mean 'refuted'": lambda: parse("verdict == refused"),
    "did you mean 'fail'": lambda: parse("checks.shift == failed"),
    r"did you mean 'checks.shift'\?": lambda: parse("check.shift == fail"),
    r"did you mean 'verdict'\?": lambda: parse("verdct == refuted"),
    "gates must be a list of texts": lambda: check_gates(None, {"auc": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("words", CASES)
def test_what_cannot_be_used_is_one_sentence(words):
    """The error is one line of one argument with its value and place, and nobody has to read a traceback for it."""
    with pytest.raises(InputError, match=words) as caught:
        CASES[words]()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_huge_losses_are_accepted():
    """A sum that overflows is not mistaken for an infinite loss."""
    assert Losses(member=[1.7e308, 1.7e308], nonmember=[0, 1]).n_member == 2
