"""The JSON Schema of results: what validates, what does not, and what it says."""

import copy
import dataclasses
import json

import jsonschema
import numpy as np
import pytest
from report.conftest import (  # noqa: F401 - fixtures
    hostile,
    not_evaluable,
    nothing,
    overfitted,
    refuted,
)

import auditor
from auditor import AuditResult
from auditor.core import Claim, Estimate, Losses
from auditor.curves import Histogram
from auditor.results import Slice, TopRecord, reading


def validator(made=None):
    """A strict validator that knows date-times."""
    made = reading.schema() if made is None else made
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def faults(result):
    """Where a result does not validate; none where it does."""
    raw = json.loads(result.to_json()) if isinstance(result, AuditResult) else result
    return sorted({error.json_path for error in validator().iter_errors(raw)})


def groups(n, seed=0, gap=1.5):
    """Losses with a leak, ids, groups and people."""
    rng = np.random.default_rng(seed)
    ids, people = np.arange(n).astype(str), np.repeat(np.arange(n // 2), 2).astype(str)
    labels = np.repeat(["north", "south"], n // 2)
    return Losses(
        member=rng.normal(-gap, 1, n), nonmember=rng.normal(0, 1, n), id=(ids, np.char.add("x", ids)), group=(labels, labels),
        person=(np.char.add("m", people), np.char.add("n", people)),
    )  # fmt: skip


SMALL = Losses(member=[0.0, 0.0], nonmember=[1.0, 1.0])
AUDITS = {
    "defaults": lambda: auditor.audit(groups(400)),
    "infinite numbers": lambda: auditor.audit(SMALL, delta=1e-5, disclosure="insiders"),
    "equal losses": lambda: auditor.audit(Losses(member=[1.0] * 12, nonmember=[1.0] * 12)),
    "delta 0": lambda: auditor.audit(groups(200), delta=0.0, split=auditor.RandomSplit()),
    "refuted": lambda: auditor.audit(
        dataclasses.replace(groups(2000, gap=6), person=None), split=auditor.RandomSplit(), claim=auditor.StatedClaim(0.1, 1e-5)
    ),
    "all options": lambda: auditor.audit(
        groups(400), delta=1e-3, confidence=0.9, coverage=auditor.Census(), split=auditor.BernoulliSplit(0.5),
        claim=auditor.DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=10), mixture=auditor.Mixture(2),
        threshold=auditor.RankGrid(interval=auditor.Melded()), persons=auditor.EachRecord(),
        one_run_test=auditor.AnyGuesses(), model="m", strategy="s", utility=auditor.Utility(0.8, "accuracy"),
        reference=groups(400, seed=1), top_records=5, source="s", command="c", fpr=(0.2,),
    ),
    "whole curve": lambda: auditor.audit(
        groups(400), split=auditor.RandomSplit(stratified=True), persons=auditor.EachRecord(),
        one_run_test=auditor.FDP(), claim=auditor.DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=10), delta=1e-3,
    ),
    "one per person": lambda: auditor.audit(groups(400), persons=auditor.OnePerPerson("min")),
    "subset": lambda: auditor.audit(
        groups(400), coverage=auditor.Subset(of=1000), persons=auditor.EachRecord()
    ),
    "fixed threshold": lambda: auditor.audit(groups(400), threshold=auditor.FixedThreshold(-1.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", AUDITS)
def test_every_audit_validates(kind):
    """The result of an audit with any options is what the schema says."""
    assert faults(AUDITS[kind]()) == []


@pytest.mark.parametrize("name", ["overfitted", "refuted", "not_evaluable", "nothing"])
def test_results_made_by_hand_validate(name, request):
    """Results that the report's tests are made of are results."""
    assert faults(request.getfixturevalue(name)) == []


def test_what_lies_about_its_data_does_not_validate(hostile):  # noqa: F811
    """Texts in place of numbers are no result, even where a page can show them."""
    assert {"$.data.n_member", "$.data.members", "$.provenance.seed"} <= set(faults(hostile))


def test_the_demo_validates():
    """Both results of the demo are what the schema says."""
    from auditor.cli import run_demo

    for result in run_demo(seed=0):
        assert faults(result) == []


@pytest.fixture(scope="module")
def raw():
    """A result with every part, as JSON."""
    found = AUDITS["refuted"]()
    top = (TopRecord(rank=1, id="7", group="a", person=None, odds=float("inf")),)
    made = json.loads(dataclasses.replace(found, top_records=top).to_json())
    assert made["verdict"] == "refuted"
    assert faults(made) == []
    return made


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema_version",), "1"),
        (("verdict",), "REFUTED"),
        (("extra",), 1),
        (("data", "delta"), 1),
        (("data", "members"), "some"),
        (("data", "saturated"), [0]),
        (("estimates", 0, "value"), "Infinity"),
        (("estimates", 0, "subject"), "people"),
        (("estimates", 0, "confidence"), None),
        (("estimates", 0, "adjacency"), "add-remove"),
        (("estimates", 0, "extra"), 1),
        (("estimates", 1, "adjacency"), None),
        (("comparisons", 0, "subject"), "model"),
        (("comparisons",), []),
        (("slices", 0, "kind"), "continent"),
        (("top_records", 0, "odds"), "-inf"),
        (("curves", 0, "tpr", 0), "inf"),
        (("histograms", 0, "member", 0), 0.5),
        (("provenance", "seed"), "0"),
        (("provenance", "config"), {"file": "x"}),
    ],
)
def test_a_damaged_result_does_not_validate(raw, place, value):
    """One wrong value anywhere, and the result is refused."""
    made = at = copy.deepcopy(raw)
    assert made["estimates"][1]["subject"] == "mechanism"
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    assert faults(made) != []


def test_a_row_without_a_value_says_why(raw):
    """A null value needs its reason, and is fine with one."""
    made = copy.deepcopy(raw)
    row = made["estimates"][0]
    row.update(value=None, lower=None, upper=None, confidence=None)
    row["details"].pop("reason", None)
    assert faults(made) == ["$.estimates[0].details"]
    row["details"]["reason"] = "too few records"
    assert faults(made) == []


@pytest.mark.parametrize(
    "part", ["estimates", "claims", "comparisons", "checks", "slices", "curves", "histograms", "top_records"]
)
def test_every_key_is_required(raw, part):
    """An object that stands for a type without any one of its keys is refused."""
    for key in raw[part][0]:
        made = copy.deepcopy(raw)
        del made[part][0][key]
        assert faults(made) != [], key
    made = copy.deepcopy(raw)
    del made[part]
    assert "$" in faults(made)


def test_keys_are_the_fields_of_the_types():
    """The schema of each type has exactly its fields, and the result's too, each with a description."""
    made = reading.schema()
    for cls in (Estimate, Claim, Slice, Histogram, TopRecord):
        assert set(made["$defs"][cls.__name__]["properties"]) == {
            item.name for item in dataclasses.fields(cls)
        }
    assert set(made["properties"]) == {item.name for item in dataclasses.fields(AuditResult)}
    for part in (made, *(made["$defs"][name] for name in ("Estimate", "TopRecord", "Claim"))):
        assert all(item.get("description") for item in part["properties"].values())


def test_instances_validate():
    """The audit of several models is what its schema says, with and without a claim; the result of one model is not."""
    check = validator(reading.schema("instances"))
    models = [Losses(member=np.arange(100.0) + i / 7, nonmember=np.arange(100.0) + 200 + i) for i in range(6)]
    plain = auditor.audit_instances(models, delta=1e-5)
    judged = auditor.audit_instances(
        models, delta=1e-5, split=auditor.RandomSplit(), claim=auditor.StatedClaim(0.1, 1e-5)
    )
    for found in (plain, judged):
        raw = json.loads(found.to_json())
        assert list(check.iter_errors(raw)) == []
        for damage in ({"kind": "result"}, {"estimates": None}, {"verdict": "maybe"}, {"checks": None}):
            assert list(check.iter_errors(raw | damage)) != []
    assert list(check.iter_errors(json.loads(AUDITS["infinite numbers"]().to_json()))) != []


def test_another_kind_is_refused():
    """A kind that no result has is one sentence, with the nearest."""
    with pytest.raises(auditor.InputError, match=r"kind must be .*'result'.*did you mean 'labels'"):
        auditor.schema("label")
