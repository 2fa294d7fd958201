"""Audits made by hand, so that a report can be read without running one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditor import AuditResult, Losses, RandomSplit, StatedClaim, audit, read_result
from auditor.core import Adjacency, Check, Claim, Comparison, Estimate, Status, Subject, Verdict
from auditor.core.facts import all_attacks
from auditor.curves import Histogram, NamedCurve
from auditor.results import Slice, SliceKind, TopRecord

DELTA = 1e-5
INDEPENDENT = "records within each group are independent draws"


ABOUT_MODEL = "it is about this model, so it can refute nothing"


def _estimate(name, value, lower=None, upper=None, *, confidence=0.95, subject=Subject.MODEL, **rest):
    if lower is None and upper is None:
        confidence = None
    fields = {"method": "made by hand", "assumptions": (INDEPENDENT,), "delta": None} | rest
    return Estimate(name, value, lower, upper, confidence, subject=subject, **fields)


def _star(value, *, lower, rejected, saturated=False, floor=0.12):
    p_value = 0.0021 if rejected else 0.283
    side = {"mean": -1.2, "sd": 0.21, "skew": 0.3, "kurtosis": 3.4}
    fit = {
        "rejected": rejected,
        "member": side | {"ks_statistic": 0.041, "ks_p_value": p_value, "ks_n": 1000},
        "nonmember": side | {"ks_statistic": 0.022, "ks_p_value": 0.61, "ks_n": 1000},
    }
    details = {
        "curve_gap": 0.41,
        "curve_gap_fpr": 0.0123,
        "transform": "published",
        "clip": DELTA,
        "branch": "m1",
        "at": {"threshold": -1.9, "fpr": 1e-5, "fnr": 0.99978, "on_clip": True, "reached_by_data": False},
        "unclipped": value + 0.4,
        "supported": {"clip": 0.005, "value": value - 1.1},
        "saturated": saturated,
        "standard_error": 0.31,
        "best_region": value + 0.2,
        "scale_free": value - 0.15,
        "noise_floor": {"mean": 0.06, "q95": floor, "permutations": 40},
        "fit": fit,
    }
    return _estimate(
        "epsilon_star.gaussian",
        value,
        lower,
        delta=DELTA,
        method="exact supremum over two fitted normals; Negoescu et al. 2024, Section 3.1 and Appendix B",
        assumptions=(
            "transformed losses of each group are normal",
            INDEPENDENT,
            "extrapolates beyond the data",
        ),
        details=details,
    )


def _one_run(value, *, ceiling=5.31, reason=None):
    details = {"pairs": 2000, "guesses": 500, "correct": 401, "ceiling": ceiling} if value is not None else {}
    if reason:
        details = {"reason": reason}
    return _estimate(
        "epsilon_bound.one_run",
        value,
        value,
        subject=Subject.MECHANISM,
        delta=DELTA,
        adjacency=Adjacency.REPLACE_ONE if value is not None else None,
        method="one-run audit on random pairs; Steinke, Nasr and Jagielski 2023, Theorem 5.2",
        assumptions=(
            "members and non-members were split uniformly at random before training (declared, not checked)",
        ),
        details=details,
    )


def estimates(*, bound=1.294, ceiling=5.571, star=None, one_run=None, advantage=0.29, auc=0.701, hits=0.166):
    """The usual rows, in their order."""
    none = "it was not declared how membership was decided; a statement about the training mechanism needs random membership"
    return (
        _estimate(
            "epsilon_bound.clopper_pearson",
            bound,
            bound,
            delta=DELTA,
            method="Clopper-Pearson limits, thresholds at ranks fixed in advance",
            assumptions=(INDEPENDENT, "membership labels are right"),
            details={"ceiling": ceiling, "rule": "RankGrid", "true_positives": 150, "tpr_lower": 0.06},
        ),
        one_run or _one_run(None, reason=none),
        star or _star(2.914, lower=2.41, rejected=False),
        _estimate("epsilon_star.empirical", 2.301, delta=DELTA, details={"clip": 0.001, "saturated": False}),
        _estimate("advantage", advantage, max(0.0, advantage - 0.06), min(1, advantage + 0.06)),
        _estimate("bayes_security", 1 - advantage, None, min(1.0, 1 - advantage + 0.06)),
        _estimate("auc", auc, max(0.0, auc - 0.016), min(1.0, auc + 0.016)),
        _estimate("tpr_at_fpr.0.1", 2.4 * hits, 2.2 * hits, details={"rate": 0.1, "rank": 180}),
        _estimate(
            "tpr_at_fpr.0.01", hits, 0.741 * hits, details={"rate": 0.01, "fpr": 0.006, "fpr_upper": 0.0098}
        ),
        _estimate(
            "tpr_at_fpr.0.001",
            None,
            details={
                "rate": 0.001,
                "reason": "not resolvable with 2000 non-member records: at least 3688 are needed",
            },
        ),
    )


def changed(result, name, **fields):
    """The result with other fields in one estimate."""
    rows = (replace(item, **fields) if item.name == name else item for item in result.estimates)
    return replace(result, estimates=tuple(rows))


def pictured(member, nonmember, **about):
    """The curves and histograms that an audit of these losses keeps."""
    made = audit(Losses(member, nonmember), delta=DELTA, **about)
    return {"curves": made.curves, "histograms": made.histograms}


def checks(**changed):
    """The eight checks, all passed unless named here with a status and a sentence."""
    sentences = {
        "direction": "Members have lower losses than non-members on average, as expected.",
        "ties": "Fewer than 1 in 100 losses are tied.",
        "saturation": "No loss came from a probability of exactly 0 or 1.",
        "duplicates": "No record occurs in both groups.",
        "shift": "Nothing but the losses was given, so a difference between the two populations cannot be ruled out",
        "power": "The ceiling of the certified bound is 5.57.",
        "sensitivity": "Without the most extreme 0.1% of each group Epsilon* moves by 2%.",
        "goodness_of_fit": "The Gaussian fit is not rejected in either group.",
    }
    usual = {name: (Status.OK, sentence) for name, sentence in sentences.items()}
    usual["shift"] = (Status.UNKNOWN, sentences["shift"])
    return tuple(Check(name, *told) for name, told in (usual | changed).items())


def shown_by(errors, hits, *, end="low"):
    """Return the tests behind a headline, all significant, with the point of the band that is furthest from guessing."""
    names = ["epsilon_bound.clopper_pearson", "advantage", "auc", "epsilon_bound.one_run"]
    return {
        "looks": 6,
        "names": names,
        "reversed": 0.0,
        "limits": {"advantage": 0.225, "auc": 0.684},
        "point": {"errors": errors, "hits": hits, "end": end},
    }


@pytest.fixture
def no_figures(monkeypatch):
    """Pages without their figures, which take most of the time."""
    monkeypatch.setattr("auditor.report.html._figures", lambda *_, **__: {})


@pytest.fixture(scope="session")
def overfitted():
    """A model that overfits, with no claim."""
    rng = np.random.default_rng(11)
    member, nonmember = rng.normal(-0.74, 1, 2000), rng.normal(0, 1, 2000)
    return AuditResult(
        data={
            "model": "income-classifier v3",
            "n_member": 2000,
            "n_nonmember": 2000,
            "training_size": 20000,
            "delta": DELTA,
            "confidence": 0.95,
            "members": "sample",
            "split": "unknown",
            "scale": "log-odds",
            "disclosure": "public",
            "history": ["published transform"],
            "attacks": all_attacks({}),
            "saturated": [0, 0],
            "claim": None,
            "shown": shown_by(0.01, 0.123006),
        },
        estimates=estimates(),
        claims=(),
        comparisons=(),
        checks=checks(),
        **pictured(member, nonmember),
        verdict=None,
        provenance={
            "created": "2026-02-03T10:11:12+00:00",
            "versions": {"auditor": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.0"},
            "input_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "source": "losses.parquet",
            "seed": 0,
            "command": "auditor audit losses.parquet --html report.html",
        },
    )


@pytest.fixture(scope="session")
def refuted(overfitted):
    """A claim of epsilon 0.5 (1 for one replaced record) that a random split refutes; the fit is rejected too."""
    how = "the stated epsilon 0.5 for one record added or removed, as it reads for one record replaced"
    claim = Claim("epsilon", 1.0, 2.6e-5, Adjacency.REPLACE_ONE, how, proven=True)
    unsafe = {"proven": False, "note": "An approximation on the unsafe side for many steps."}
    security = Claim("bayes_security", 0.92034, None, Adjacency.REPLACE_ONE, "closed form", **unsafe)
    needs = {"proven": True, "note": "Needs the noise multiplier."}
    missing = Claim("advantage", None, None, Adjacency.REPLACE_ONE, "exact", **needs)
    exceeded = "the training algorithm's epsilon is at least 1.31 at 95% confidence, above the claimed 1"
    rng = np.random.default_rng(12)
    member, nonmember = rng.gamma(2, 1, 2000) - 3, rng.gamma(3, 1, 2000) - 3
    star = replace(_star(4.998, lower=None, rejected=True), confidence=None)
    return replace(
        overfitted,
        data=dict(overfitted.data)
        | {"model": "sentiment-dp", "split": "random", "claim": "epsilon 0.5 at delta 1e-5, add-remove"},
        estimates=estimates(bound=2.143, star=star, one_run=_one_run(1.312), advantage=0.31, auc=0.72),
        claims=(claim, security, missing),
        comparisons=(
            Comparison(claim, "epsilon_bound.one_run", Verdict.REFUTED, exceeded),
            Comparison(claim, "epsilon_star.gaussian", None, ABOUT_MODEL),
            Comparison(security, "bayes_security", None, ABOUT_MODEL),
        ),
        checks=checks(
            goodness_of_fit=(Status.WARN, "The Gaussian fit of the members is rejected (p = 0.0021)."),
            power=(Status.FAIL, "31 records are too few."),
        ),
        **pictured(member, nonmember, split=RandomSplit(), claim=StatedClaim(1.0, 2.6e-5, "replace-one")),
        verdict=Verdict.REFUTED,
    )


@pytest.fixture(scope="session")
def not_evaluable(overfitted):
    """A claim, but membership was not random."""
    claim = Claim("epsilon", 8.0, DELTA, Adjacency.ADD_REMOVE, "privacy accountant", proven=True)
    reason = "membership was not declared random, so nothing can be said about the training algorithm"
    return replace(
        overfitted,
        claims=(claim,),
        comparisons=(
            Comparison(claim, "epsilon_bound.one_run", Verdict.NOT_EVALUABLE, reason),
            Comparison(claim, "epsilon_bound.clopper_pearson", None, ABOUT_MODEL),
        ),
        verdict=Verdict.NOT_EVALUABLE,
    )


@pytest.fixture(scope="session")
def nothing(overfitted):
    """All losses are equal: every bound is 0 and there is nothing to fit."""
    star = _estimate("epsilon_star.gaussian", None, delta=DELTA, details={"reason": "all losses are equal"})
    return replace(
        overfitted,
        data={**{key: x for key, x in overfitted.data.items() if key != "shown"}, "model": None},
        estimates=estimates(bound=0.0, star=star, advantage=0.0, auc=0.5, hits=0.0),
        checks=checks(ties=(Status.FAIL, "All losses are equal.")),
        curves=(NamedCurve("empirical", "measured", (0.0, 1.0), (0.0, 1.0)),),
        histograms=(Histogram("loss", (0.5, 1.5), (2000,), (2000,)),),
        provenance={},
    )


@pytest.fixture(scope="session")
def named(overfitted):
    """An audit by class, group and loss that names the records that stand out."""

    def row(name, value, lower, upper=None):
        return _estimate(
            name, value, lower, upper, delta=DELTA if "bound" in name else None, details={"ceiling": 3.1}
        )

    def part(kind, label, n_member, n_nonmember, rows):
        return Slice(kind, label, n_member, n_nonmember, 0.95, 3, rows)

    usual = (
        row("epsilon_bound.clopper_pearson", 1.1, 1.1),
        row("auc", 0.7, 0.6, 0.8),
        row("advantage", 0.3, 0.2, 0.4),
    )
    share = (row("member_share", 0.75, 0.6, 0.9),)
    return replace(
        overfitted,
        slices=(
            part(SliceKind.CLASS, "ill", 900, 800, usual),
            part(SliceKind.GROUP, "north", 1, 1100, usual),
            part(SliceKind.PERCENTILE, "lowest 1% of losses", 30, 10, share),
        ),
        top_records=(
            TopRecord(1, "patient-7", "north", "anna", 42.0, 12),
            TopRecord(2, "patient-3", None, None, 0.5),
            TopRecord(3, "patient-9", "south", None, math.inf),
        ),
    )


HOSTILE = "<script>alert(1)</script> $\\frac{ & \"quoted\" 'single' \x00 \u202eesrever مرحبا " + "x" * 300


@pytest.fixture(scope="session")
def hostile(refuted, tmp_path_factory):
    """Text that wants to be more than text, in every place that takes text, and numbers that are none."""
    claim = Claim(HOSTILE, math.inf, math.nan, Adjacency.ADD_REMOVE, HOSTILE, proven=False, note=HOSTILE)
    odd = _estimate(HOSTILE, math.inf, -math.inf, math.nan, method=HOSTILE, assumptions=(HOSTILE,))
    empty = Estimate("auc", None, None, None, None, HOSTILE, Subject.MECHANISM, details={"reason": HOSTILE})
    made = replace(
        refuted,
        data=dict.fromkeys(refuted.data, HOSTILE)
        | {
            "disclosure": "public",
            "n_nonmember": 2000,
            "delta": None,
            "confidence": None,
            "saturated": None,
            "shown": None,
        },
        estimates=(odd, empty),
        claims=(claim,),
        comparisons=(Comparison(claim, HOSTILE, Verdict.INCONCLUSIVE, HOSTILE),),
        checks=(Check(HOSTILE, Status.WARN, HOSTILE, {"advice": HOSTILE}),),
        histograms=tuple(replace(item, scale=HOSTILE) for item in refuted.histograms),
        curves=tuple(replace(item, label=HOSTILE) for item in refuted.curves),
        verdict=Verdict.INCONCLUSIVE,
        provenance=dict.fromkeys(refuted.provenance, HOSTILE) | {"versions": {HOSTILE: HOSTILE}},
        top_records=(TopRecord(1, HOSTILE, HOSTILE, HOSTILE, 3.0),),
    )
    # As anybody meets it: read from a file, where a value that is not of its kind counts as missing.
    path = tmp_path_factory.mktemp("hostile") / "r.json"
    made.to_json(path)
    return read_result(path)
