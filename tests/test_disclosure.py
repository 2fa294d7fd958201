"""Results that can be shared: one partition behind all views, limits that still hold, counts that are none of few, and no names."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pytest
from command_line import run
from hypothesis import given, settings, strategies as st
from scipy import stats

import auditor
from auditor.core import Losses
from auditor.curves import Partition
from auditor.report import site

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
    for counts, (fewest, most) in zip((found.member, found.nonmember), found.limits, strict=True):
        assert (fewest <= counts.cumsum()[:-1]).all()
        assert (counts.cumsum()[:-1] <= most).all()


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


@pytest.mark.parametrize("n", [10, 20, 99])
def test_small_audits_show_no_distribution(n):
    """Below 100 records a result has numbers and intervals, and neither histogram nor measured curve nor bands of losses."""
    result = auditor.audit(losses_of(n, "normal", (n, 5000)), delta=1e-5)
    assert (result.histograms, result.curves, result.slices) == ((), (), ())
    assert result.estimate("auc").lower is not None
    assert n < 20 or "only numbers and intervals are shown" in result.to_html()


@pytest.mark.parametrize("sizes", [(100, 100), (500, 300), (3000, 5000)])
def test_every_number_of_a_cell_follows_from_rounded_counts(sizes):
    """Shares of cells, bands of losses, the empirical Epsilon* and the band of the curve stand at counts that were rounded to 5."""
    result = auditor.audit(losses_of(1, "normal", sizes), delta=1e-5)
    shown = result.histograms[1]
    for side in ("member", "nonmember"):
        counts = np.array([count for count in getattr(shown, side) if count])
        middle = (counts.cumsum() - counts / 2) / counts.sum()
        assert result.histograms[0].quantiles[f"{side}_probability"] == pytest.approx(middle, rel=5e-3)
        assert not (counts.cumsum()[:-1] % 5).any()
    upto = np.cumsum([(item.n_member, item.n_nonmember) for item in result.slices], axis=0)
    assert not (upto[:-1] % 5).any()
    assert upto[-1].tolist() == list(sizes)
    for item in result.slices:
        share, total = item.estimate("member_share"), item.n_member + item.n_nonmember
        assert share.value == pytest.approx(item.n_member / total, rel=5e-3)
        for k, others in product(
            (max(0, item.n_member - 4), item.n_member + 4),
            (max(0, item.n_nonmember - 4), item.n_nonmember + 4),
        ):
            exact = stats.binomtest(k, k + others).proportion_ci(
                1 - 0.05 / len(result.slices), method="exact"
            )
            assert share.lower <= exact.low + 1e-9
            assert share.upper >= exact.high - 1e-9
    fpr, tpr = (
        np.cumsum(getattr(shown, side))[:-1] / n
        for side, n in zip(("nonmember", "member"), sizes[::-1], strict=True)
    )
    inside = (fpr > 0.001) & (fpr < 0.999) & (tpr > 0.001) & (tpr < 0.999)
    fpr, tpr = fpr[inside], tpr[inside]
    ratios = [
        (tpr - 1e-5) / fpr,
        (1 - fpr - 1e-5) / (1 - tpr),
        (fpr - 1e-5) / tpr,
        (1 - tpr - 1e-5) / (1 - fpr),
    ]
    assert result["epsilon_star.empirical"].value == pytest.approx(np.log(np.max(ratios)), rel=5e-3)


def test_no_guess_set_is_of_few_records():
    """The bound by guesses looks at no fewer than 10 records at either end, whose membership the counts would tell."""
    rng = np.random.default_rng(0)
    for n in (20, 60, 300):
        losses = Losses(rng.normal(-1, 1, n), rng.normal(size=n))
        row = auditor.audit(losses, delta=0.0, split=auditor.BernoulliSplit(0.5))["epsilon_bound.one_run"]
        assert min(item["guesses"] for item in row.details["tried"]) >= 10
        assert all(
            item["correct"] % 5 == 0 or item["correct"] == item["guesses"] for item in row.details["tried"]
        )


def test_no_guess_set_of_estimated_odds_or_of_several_models_is_of_few_records():
    """The same of the bound by estimated odds of membership, and of that of several models together."""
    rng = np.random.default_rng(1)
    features = auditor.Features(*(rng.normal(at, 1, (300, 1)) for at in (0.2, 0.0)))
    losses = Losses(rng.normal(-1, 1, 300), rng.normal(size=300))
    for kind, least in (("public", 10), ("insiders", 1)):
        found = auditor.audit(
            losses, split=auditor.Propensity(), features=features, delta=0.0, disclosure=kind
        )
        sets = [item["guesses"] for item in found["epsilon_bound.propensity"].details["tried"]]
        assert (min(sets) >= 10) == (least == 10)
    low = (np.append(-9.0 - rng.random(3), rng.normal(size=47)) for _ in range(3))
    models = [Losses(member, rng.normal(size=50)) for member in low]
    asked = {
        "delta": 1e-5,
        "split": auditor.RandomSplit(),
        "together": auditor.IndependentRuns(),
        "confidence": 0.7,
    }
    shown, inside = (
        auditor.audit_instances(models, disclosure=kind, **asked)["epsilon_bound.instances"].details
        for kind in ("public", "insiders")
    )
    assert shown["guesses"] >= 10 > inside["guesses"]


@pytest.mark.parametrize("side", [0, 1])
def test_rows_of_few_people_in_one_model_make_no_shared_result(side):
    """Several models are refused where the rows of one group of one of them are those of fewer than 10 people."""
    few = [np.arange(60), np.arange(60) + 60]
    few[side] = few[side] % 9 + 1000
    losses = losses_of(0, "normal", (60, 60))
    some = [losses_of(1, "normal", (60, 60)), replace(losses, person=tuple(few))]
    with pytest.raises(auditor.InputError, match=r"losses of instance 1 \(counting from 0\) .* got 9"):
        auditor.audit_instances(some, delta=1e-5)
    assert auditor.audit_instances(some, delta=1e-5, disclosure="insiders")


@pytest.mark.parametrize("sizes", [(9, 5000), (5000, 9)])
def test_a_group_of_few_is_not_audited_for_strangers(sizes):
    """Fewer than 10 records, or rows of fewer than 10 people, make no result that may be shared; insiders get one."""
    losses = losses_of(0, "normal", sizes)
    with pytest.raises(auditor.InputError, match=r"at least 10 records or people .* got 9; .*disclosure"):
        auditor.audit(losses)
    assert auditor.audit(losses, disclosure="insiders")["auc"].value is not None
    person = tuple(np.arange(40) % people for people in (9 if size == 9 else 40 for size in sizes))
    rows = Losses(
        losses_of(0, "normal", (40, 40)).member, losses_of(1, "normal", (40, 40)).nonmember, person=person
    )
    with pytest.raises(auditor.InputError, match="got 9"):
        auditor.audit(rows, persons=auditor.EachRecord())


@pytest.mark.parametrize("extreme", [-100.0, -1000.0, -12345.678, 5000.0])
@pytest.mark.parametrize("n", [100, 500, 2000])
def test_no_fit_is_shown_that_one_record_decides(n, extreme):
    """One extreme loss is not to be found from a fit: neither its curve, its counts nor its Epsilon* is in the result."""
    rng = np.random.default_rng(3)
    member = rng.normal(size=n)
    member[0] = extreme
    result = auditor.audit(Losses(member, rng.normal(size=n)), delta=1e-5)
    assert result["epsilon_star.gaussian"].value is None
    assert "one record decides the fit" in result["epsilon_star.gaussian"].reason
    assert not {"gaussian", "mixture"} & {item.name for item in result.curves}
    assert (result.histograms[0].member_fit, result.histograms[0].quantiles) == (None, {})
    assert "sensitivity" not in {check.name for check in result.checks}
    assert "one record decides the fit" in result.to_html().replace("One record", "one record")
    assert auditor.audit(Losses(member, rng.normal(size=n)), disclosure="insiders")[
        "epsilon_star.gaussian"
    ].value


def test_a_result_to_be_shared_has_few_rates():
    """Many rates would show where single records lie."""
    losses = losses_of(0, "normal", (300, 300))
    with pytest.raises(auditor.InputError, match="fpr must have at most 5 rates"):
        auditor.audit(losses, fpr=np.linspace(0.01, 0.9, 96))
    assert auditor.audit(losses, fpr=np.linspace(0.01, 0.9, 96), disclosure="insiders")


@pytest.mark.parametrize("seed", range(12))
def test_published_limits_still_hold(seed):
    """Each published lower limit is at most the exact one and each upper limit at least, to three digits of it."""
    rng = np.random.default_rng(seed)
    losses = Losses(rng.normal(-rng.uniform(0, 2), 1, 700), rng.normal(0, 1, 650))
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
    assert (
        judged.comparisons[0].p_value > 0.04
    )  # the error of this test: bets on learnt guesses have the rest
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
        "notebook": result._repr_html_(),
        **({"card": result.to_model_card()} if hasattr(result, "to_model_card") else {}),
    }


def test_nobody_is_named():
    """No form of a result holds an id or the name of a small group, unless ids were requested; that says for whom they are."""
    for text in forms(auditor.audit(named(), delta=1e-5)).values():
        assert "secret-" not in text
        assert "Smallville" not in text
    asked = auditor.audit(named(), delta=1e-5, top_records=3)
    assert len(asked.top_records) == 3
    assert "For the data owner only" in asked.to_html()


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
        assert ("or insiders only" in auditor.comparison.compare_audits(both).to_html()) == (
            len(set(kinds)) == 1
        )
    for one in both:
        (tmp_path / str(one.data["model"])).mkdir()
        one.to_json(tmp_path / str(one.data["model"]) / "result.json")
        site(tmp_path / str(one.data["model"]), tmp_path / "site")
        index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
        assert ("or insiders only" in index) is (one is both[0])
    with pytest.raises(auditor.InputError, match="disclosure"):
        auditor.audit(named(), disclosure="everybody")


def test_a_result_must_say_who_may_see_it(tmp_path):
    """A stored result without an audience is refused, since nobody can know which rules it follows."""
    made = auditor.audit(named(), delta=1e-5, top_records=5, disclosure="insiders")
    data = {name: value for name, value in made.data.items() if name != "disclosure"}
    replace(made, data=data).to_json(tmp_path / "old.json")
    with pytest.raises(auditor.InputError, match=r"data\.disclosure must be one of public, insiders"):
        auditor.read_result(tmp_path / "old.json")


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


# --- Several models, and labels ---


def models(*sizes, shift=1.0, seed=0):
    """Losses of models with so many members and non-members."""
    return [losses_of(seed + at, "normal", pair, shift) for at, pair in enumerate(sizes)]


@pytest.mark.parametrize("count", [2, 3, 12])
@pytest.mark.parametrize("sizes", [(100, 100), (100, 250), (250, 100)])
def test_a_curve_of_several_models_has_no_steps_of_few(sizes, count):
    """Between two of its points each group has none or at least 10 records of all models, up to the rounding to three digits."""
    found = auditor.audit_instances(models(*[sizes] * count), delta=1e-5)
    (curve,) = (item for item in found.curves if item.name == "empirical")
    assert len(curve.fpr) > 4
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    for rates, size in ((curve.tpr, sizes[0]), (curve.fpr, sizes[1])):
        steps = np.diff(rates) * size * count
        assert ((steps == 0) | (steps >= 10 - 0.001 * size * count)).all()


@pytest.mark.parametrize("few", [(12, 200), (200, 12), (99, 100)])
def test_no_curve_where_one_model_has_few_records(few):
    """A model with fewer than 100 in a group leaves a shared result without the measured curve, and its page says why."""
    found, inside = (
        auditor.audit_instances(models(few, (500, 500)), delta=1e-5, disclosure=kind)
        for kind in ("public", "insiders")
    )
    assert [item.name for item in found.curves] == []
    assert [item.name for item in inside.curves] == ["empirical"]
    assert "no measured curve" in found.to_html()
    assert "no measured curve" not in inside.to_html()


def test_a_shared_result_of_several_models_tells_of_no_single_rank():
    """The rates at the best rank and the numbers of single models are left out; a result for insiders has them."""
    made = {
        kind: auditor.audit_instances(
            models(*[(200, 200)] * 12, shift=3.0),
            delta=1e-5,
            split=auditor.RandomSplit(),
            disclosure=kind,
        )
        for kind in ("public", "insiders")
    }
    fine = {"attack", "error_rate", "mean_hit_rate", "smallest", "median", "largest"}
    keys = {kind: set().union(*(row.details for row in found.estimates)) for kind, found in made.items()}
    assert fine <= keys["insiders"]
    assert keys["public"] == keys["insiders"] - fine
    assert made["public"]["epsilon_bound.instances"].lower > 0


@pytest.mark.parametrize(("sizes", "group"), [((9, 200), "member"), ((200, 9), "non-member")])
def test_few_records_of_a_model_make_no_shared_result(sizes, group, tmp_path, capsys):
    """The sentence names the group, the instance and the number; as losses, as results and on the command line; insiders get one."""
    some = models((30, 30), sizes)
    results = [auditor.audit(item, disclosure="insiders") for item in some]
    words = rf"^{group} losses of instance 1 \(counting from 0\) must be of at least 10 records .*, got 9; .*disclosure.*\.$"
    for given_ in (some, results):
        with pytest.raises(auditor.InputError, match=words):
            auditor.audit_instances(given_, delta=1e-5)
        assert auditor.audit_instances(given_, delta=1e-5, disclosure="insiders").estimates
    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    for result, path in zip(results, paths, strict=True):
        result.to_json(path)
    assert run("instances", *paths, "--delta", "1e-5", "--json", str(tmp_path / "all.json")) == 2
    assert "got 9;" in capsys.readouterr().err
    assert not (tmp_path / "all.json").exists()
    assert run("instances", *paths, "--delta", "1e-5", "--disclosure", "insiders", "--quiet") == 0


def labels_of(counts, names, law=None, **given):
    """An audit of so many records with each label, by a model that remembers them, and D the same for all."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(len(counts)), counts)
    answers = 0.5 * rng.dirichlet(np.ones(len(counts)), codes.size)
    answers[np.arange(codes.size), codes] += 0.5
    law = np.full(len(counts), 1 / len(counts)) if law is None else law
    laws = np.tile(law, (codes.size, 1))
    return auditor.audit_labels(
        np.asarray, (answers, np.array(names)[codes]), probabilities=laws, classes=names, **given
    )


def test_few_records_make_no_shared_audit_of_labels():
    """Nine records are refused in one sentence, and audited for insiders; ten are audited."""
    words = r"^labels in records must be of at least 10 records or people in a result that may be shared, got 9; .*\.$"
    with pytest.raises(auditor.InputError, match=words):
        labels_of([5, 4], ["a", "b"])
    assert labels_of([5, 4], ["a", "b"], disclosure="insiders").data["n_records"] == 9
    assert labels_of([5, 5], ["a", "b"]).data["n_records"] == 10


@pytest.mark.parametrize(
    ("counts", "law"),
    [
        ([200, 99, 1], [0.6, 0.2, 0.2]),
        ([200, 96, 4], [0.66, 0.33, 0.01]),
        ([200, 91, 9], [0.6, 0.2, 0.2]),
        ([291, 9], [0.5, 0.5]),  # the share of the one label tells that of the other
    ],
)
def test_a_label_of_few_records_is_not_named(counts, law):
    """However far D is off for it, no form of a shared result names it or has its share; one for insiders does."""
    names = ["Mainville", "Midville", "Smallville"][-len(counts) :]
    found = labels_of(counts, names, law)
    for name, text in forms(found).items():
        assert "Smallville" not in text, name
    check = found.check("label_law")
    if len(counts) == 2:
        assert check.status == "unknown"
        assert "No label could be compared" in check.message
    else:
        assert check.details["label"] in names[:2]
        assert check.details["odds_off"] == float(f"{check.details['odds_off']:.3g}")
    inside = labels_of(counts, names, law, disclosure="insiders").check("label_law")
    assert inside.details["label"] == "Smallville" or len(counts) == 2


@pytest.mark.parametrize(("copies", "words"), [(3, "fewer than 10"), (52, "about 50")])
def test_copies_among_records_with_labels_are_not_counted(copies, words):
    """A shared audit of labels says how many records repeat others as any other audit does."""
    x = np.random.default_rng(0).dirichlet([1.0, 1.0], 300)
    x[:copies] = x[-1]
    found = auditor.audit_labels(np.asarray, (x, np.arange(300) % 2), probabilities=np.full((300, 2), 0.5))
    check = found.check("duplicates")
    assert f"{words.capitalize()} audited records repeat" in check.message
    assert check.details["repeated_content_members"] == (10 if copies == 3 else 55)


@pytest.mark.parametrize("kind", ["instances", "labels"])
def test_pages_of_training_algorithms_say_who_may_read_them(kind):
    """Every form of a result for insiders says so, the page at its top; none of a shared result does."""
    make = {
        "instances": lambda who: auditor.audit_instances(
            models((60, 60), (60, 60)), delta=1e-5, disclosure=who
        ),
        "labels": lambda who: labels_of([60, 60], ["a", "b"], disclosure=who),
    }[kind]
    page, shared = make("insiders").to_html(), make("public")
    assert page.index("For insiders only.") < page.index("<nav")
    for name, text in forms(make("insiders")).items():
        assert name == "json" or "or insiders only" in text, name
    assert not any("or insiders only" in text for text in forms(shared).values())


@pytest.mark.parametrize(
    ("sizes", "warned"),
    [
        ((301, 300), True),
        pytest.param((300, 291), True, marks=pytest.mark.long),
        ((309, 295), True),
        pytest.param((301, 400), True, marks=pytest.mark.long),
        ((600, 305), True),
        ((300, 300), False),
        pytest.param((310, 300), False, marks=pytest.mark.long),
        ((310, 400), False),
    ],
)
def test_two_audits_of_nearly_the_same_records_are_warned_of(sizes, warned):
    """A comparison says so where any one group of an audit has 1 to 9 records more or fewer than that of the other."""
    rng = np.random.default_rng(0)
    results = [
        auditor.audit(rng.normal(-1, 1, n), rng.normal(0, 1, m), delta=1e-5) for n, m in ((300, 300), sizes)
    ]
    assert ("differ by fewer than 10" in auditor.comparison.compare_audits(results).to_html()) == warned
