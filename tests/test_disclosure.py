"""Results that can be shared: one partition behind all views, limits that still hold, counts that are none of few, and no names."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.core import Losses
from auditor.report import site
from auditor.results import Partition

LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_cauchy(n) * 1e6,
    "positive": lambda rng, n: rng.exponential(size=n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "one value and others": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n)),
    "tiny": lambda rng, n: 1e-9 * rng.exponential(size=n),
    "far": lambda rng, n: 1e9 + rng.normal(size=n),
}


def losses_of(seed, law, sizes, shift=1.0):
    """Losses of a law, the members' lower by some spreads."""
    rng = np.random.default_rng(seed)
    member, nonmember = (LAWS[law](rng, n) for n in sizes)
    spread = np.subtract(*np.percentile(nonmember, [75, 25]))
    return Losses(member - shift * spread, nonmember)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    law=st.sampled_from(sorted(LAWS)),
    sizes=st.tuples(st.integers(100, 3000), st.integers(100, 3000)),
    shift=st.sampled_from([0.0, 1.0, 30.0]),
)
def test_no_cell_holds_a_few_records(seed, law, sizes, shift):
    """Each cell holds none or at least 10 of a group, a group fills at most n/25 and 60 cells, and rounded counts sum to n."""
    losses = losses_of(seed, law, sizes, shift)
    found = Partition.of(losses)
    if found is None:
        return
    groups = ((losses.member, found.member), (losses.nonmember, found.nonmember))
    for (values, counts), shown in zip(groups, found.rounded, strict=True):
        edges = np.concatenate([[-np.inf], found.cuts, [np.inf]])
        assert counts.tolist() == [
            int(((values >= low) & (values < high)).sum()) for low, high in pairwise(edges)
        ]
        assert ((counts == 0) | (counts >= 10)).all()
        assert (counts > 0).sum() <= min(min(sizes) // 25, 60)
        assert shown.sum() == values.size
        assert (np.abs(shown - counts) <= 5).all()


@pytest.mark.parametrize("law", LAWS)
def test_cuts_are_short_decimals(law):
    """The last digit of a cut is worth a hundredth or more of the way to the next cut, so that it is no record's loss."""
    cuts = Partition.of(losses_of(3, law, (2000, 2000))).cuts
    gaps = np.diff(cuts)
    for cut, gap in zip(cuts[1:-1], np.minimum(gaps[:-1], gaps[1:]), strict=True):
        assert cut == 0 or 10.0 ** Decimal(repr(float(cut))).normalize().as_tuple().exponent >= gap / 100


@pytest.mark.parametrize("n", [100, 150, 500, 3000])
@pytest.mark.parametrize("law", ["normal", "rounded", "one value and others"])
def test_all_views_are_unions_of_the_same_cells(law, n):
    """Both histograms, the measured curve, the loss bands and the thresholds of one result stand at one set of cuts."""
    losses = losses_of(n, law, (n, n))
    found = json.loads(auditor.audit(losses, delta=1e-5).to_json())
    transformed, raw = found["histograms"]
    assert (transformed["member"], transformed["nonmember"]) == (raw["member"], raw["nonmember"])
    curve = next(item for item in found["curves"] if item["name"] == "empirical")
    for side, rates in (("member", "tpr"), ("nonmember", "fpr")):
        shares = np.append(0, np.cumsum(raw[side])) / n
        assert set(np.round(curve[rates], 5)) <= set(np.round(shares, 5))
    cuts = raw["edges"][1:-1]
    exact = {
        (int((losses.member < cut).sum()), int((losses.nonmember < cut).sum())) for cut in (*cuts, np.inf)
    }
    bands = [item for item in found["slices"] if item["kind"] == "percentile"]
    upto = np.cumsum([(item["n_member"], item["n_nonmember"]) for item in bands], axis=0)
    for bands_before, pair in enumerate(upto.tolist(), start=1):  # whose counts are rounded to 5
        assert any(np.abs(np.subtract(pair, other)).max() <= 2.5 * bands_before for other in exact)
    threshold = found["estimates"][0]["details"]["threshold"]
    assert threshold is None or threshold in cuts


@pytest.mark.parametrize("n", [2, 20, 99])
def test_small_audits_show_no_distribution(n):
    """Below 100 records a result has numbers and intervals, and neither histogram nor measured curve nor bands of losses."""
    result = auditor.audit(losses_of(n, "normal", (n, 5000)), delta=1e-5)
    assert (result.histograms, result.curves, result.slices) == ((), (), ())
    assert result.estimate("auc").lower is not None
    assert n < 20 or "only numbers and intervals are shown" in result.to_html()


@pytest.mark.parametrize("seed", range(12))
def test_published_limits_still_hold(seed):
    """Each published lower limit is at most the exact one and each upper limit at least, to three digits of it."""
    rng = np.random.default_rng(seed)
    losses = Losses(rng.normal(-rng.uniform(0, 2), 1, 300), rng.normal(0, 1, 200))
    exact = auditor.audit(losses, delta=1e-5, split=auditor.RandomSplit(), disclosure="insiders")
    shown = auditor.audit(losses, delta=1e-5, split=auditor.RandomSplit())
    for one, other in zip(exact.estimates, shown.estimates, strict=True):
        for end, way in (("lower", -1), ("upper", 1)):
            full, rounded = getattr(one, end), getattr(other, end)
            assert (full is None) == (rounded is None)
            if full is not None:
                assert way * (rounded - full) >= 0
                assert rounded == pytest.approx(full, rel=0.0101, abs=1e-9)
                assert rounded == float(f"{rounded:.3g}")


def test_verdict_and_gates_go_by_the_published_number():
    """A claim between the published and the exact bound is not refuted, and a gate between them passes."""
    rng = np.random.default_rng(5)
    losses = Losses(rng.normal(-2, 1, 400), rng.normal(0, 1, 400))
    asked = {"delta": 0.0, "split": auditor.BernoulliSplit(0.5)}
    exact = auditor.audit(losses, disclosure="insiders", **asked)["epsilon_bound.one_run"].lower
    published = auditor.audit(losses, **asked)["epsilon_bound.one_run"].lower
    assert published < exact
    between = (published + exact) / 2
    claim = auditor.StatedClaim(between, 0.0)
    judged = auditor.audit(losses, claim=claim, **asked)
    assert str(judged.verdict) == "not_refuted"
    assert judged.comparisons[0].p_value > 0.05
    assert str(auditor.audit(losses, claim=claim, disclosure="insiders", **asked).verdict) == "refuted"
    (gate,) = auditor.check_gates(judged, f"epsilon_bound.one_run > {between}")
    assert gate.code == 0


def named(n=400):
    """Losses with ids, people and groups, one group of which has a single person."""
    rng = np.random.default_rng(1)
    ids = [f"secret-{side}{at}" for side in "mn" for at in range(n)]
    group = rng.choice(["north", "south"], 2 * n).astype(object)
    group[0] = "Smallville"
    losses = rng.normal(size=2 * n) - np.repeat([1.0, 0.0], n)
    return Losses(losses[:n], losses[n:], id=(ids[:n], ids[n:]), group=(group[:n], group[n:]))


def forms(result):
    """Every form in which a result is written."""
    return {
        "json": result.to_json(),
        "html": result.to_html(),
        "markdown": result.to_markdown(),
        "junit": result.to_junit(),
        "sarif": result.to_sarif(),
        "card": result.to_model_card(),
        "notebook": result._repr_html_(),
    }


def test_nobody_is_named():
    """No form of a result holds an id or the name of a small group, unless ids were asked for; that says for whom they are."""
    for text in forms(auditor.audit(named(), delta=1e-5)).values():
        assert "secret-" not in text
        assert "Smallville" not in text
    asked = auditor.audit(named(), delta=1e-5, top_records=3)
    assert len(asked.top_records) == 3
    assert "For the data's owner only" in asked.to_html()


def test_results_for_insiders_say_so(tmp_path):
    """Every form for people says at its top that a result is for insiders, and its JSON does; a shared one does not.

    So does a comparison of results that all are; where one is shared, the others are read as shared ones.
    """
    shown = forms(auditor.audit(named(), delta=1e-5, disclosure="insiders"))
    assert json.loads(shown["json"])["data"]["disclosure"] == "insiders"
    for name in set(shown) - {"json"}:
        assert "or insiders only" in shown[name], name
    assert not any("or insiders only" in text for text in forms(auditor.audit(named(), delta=1e-5)).values())
    for kinds in (("insiders", "insiders"), ("insiders", "public")):
        both = [
            auditor.audit(named(), delta=1e-5, disclosure=kind, model=f"v{at}")
            for at, kind in enumerate(kinds)
        ]
        assert ("or insiders only" in auditor.compare_audits(both).to_html()) == (len(set(kinds)) == 1)
    for one in both:
        (tmp_path / str(one.data["model"])).mkdir()
        one.to_json(tmp_path / str(one.data["model"]) / "result.json")
        site(tmp_path / str(one.data["model"]), tmp_path / "site")
        index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
        assert ("or insiders only" in index) is (one is both[0])
    with pytest.raises(auditor.InputError, match="disclosure"):
        auditor.audit(named(), disclosure="everybody")


def test_a_result_of_before_follows_the_rules_when_it_is_read(tmp_path):
    """A stored result that does not say for whom it is loses its ids, its fine views and its digits, and keeps its verdict."""
    old = auditor.audit(named(), delta=1e-5, top_records=5, disclosure="insiders")
    data = {name: value for name, value in old.data.items() if name != "disclosure"}
    replace(old, data=data).to_json(tmp_path / "old.json")
    found = auditor.read_result(tmp_path / "old.json")
    assert found.data["disclosure"] == "public"
    assert (found.top_records, found.histograms) == ((), ())
    assert not {item.name for item in found.curves} & {"empirical", "band_lower", "ranks.low_members"}
    assert found["auc"].lower <= old["auc"].lower
    assert found["auc"].value == float(f"{old['auc'].value:.3g}")
    for text in forms(found).values():
        assert "secret-" not in text
    found.to_json(tmp_path / "again.json")
    assert auditor.read_result(tmp_path / "again.json").to_json() == found.to_json()


@pytest.mark.parametrize("few", [1, 4, 9])
def test_few_of_anything_are_not_counted(few):
    """Ids on both sides, people on both sides, saturated losses and records without an id: the words and the JSON say no number below 10."""
    rng = np.random.default_rng(few)
    ids = [[f"{side}{at}" for at in range(300)] for side in "mn"]
    ids[1][:few] = ids[0][:few]
    losses = Losses(rng.normal(size=300), rng.normal(size=300), id=tuple(ids), saturated=(few, 0))
    found = auditor.audit(losses, delta=1e-5)
    for name in ("duplicates", "saturation"):
        assert "ewer than 10" in found.check(name).message
    assert found.check("duplicates").details["across"] == 10
    assert found.data["saturated"] == [10, 0]


@pytest.mark.parametrize(
    ("sizes", "warned"),
    [
        ((301, 300), True),
        ((300, 291), True),
        ((309, 295), True),
        ((301, 400), True),
        ((600, 305), True),
        ((300, 300), False),
        ((310, 300), False),
        ((310, 400), False),
    ],
)
def test_two_audits_of_nearly_the_same_records_are_warned_of(sizes, warned):
    """A comparison says so where any one group of an audit has 1 to 9 records more or fewer than that of the other."""
    rng = np.random.default_rng(0)
    results = [
        auditor.audit(rng.normal(-1, 1, n), rng.normal(0, 1, m), delta=1e-5) for n, m in ((300, 300), sizes)
    ]
    assert ("differ by fewer than 10" in auditor.compare_audits(results).to_html()) == warned
