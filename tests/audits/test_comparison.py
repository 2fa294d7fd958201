"""Several audits as one comparison: the baseline, what changed, and its forms."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import InputError
from auditor.comparison import Change, compare_audits, differences, headline


def test_the_first_of_two_is_the_baseline(six):
    """Two results are compared from the first to the second; of more none is chosen."""
    found = compare_audits([six[0], six[5]])
    assert found.baseline is found.runs[0]
    assert [item.run.number for item in found.changes] == [2]
    assert compare_audits(six).baseline is None
    assert compare_audits(six).changes == ()


def test_a_baseline_is_named(six):
    """The baseline is a result, or its name; `find_run` finds it in every other way."""
    assert compare_audits(six, baseline=six[2]).baseline.number == 3
    with pytest.raises(InputError, match="baseline must name one of the results, got 'x'"):
        compare_audits(six, baseline="x")


def test_changes_are_those_of_the_two_results(six):
    """Each change is what `differences` says of the baseline and that result, in this order."""
    found = compare_audits(six[:3], baseline=2)
    assert [item.run.number for item in found.changes] == [1, 3]
    for item, place in zip(found.changes, (0, 2), strict=True):
        expected = differences(six[1], six[place], together=2)
        assert [(d.name, d.value, d.lower, d.upper, d.verdict) for d in item.differences] == [
            (d.name, d.value, d.lower, d.upper, d.verdict) for d in expected
        ]
        assert item.headline == headline(expected)


def test_got_worse_fails_closed(six, failed, audited):
    """Worse is true; no change shown is false; what cannot be compared, and no baseline, is null and never false."""
    quiet = [audited(0.0, 11), audited(0.0, 12)]
    assert compare_audits([six[0], six[5]]).got_worse is True
    assert compare_audits([six[5], six[0]]).got_worse is False
    assert compare_audits(quiet).got_worse is False
    assert compare_audits([quiet[0], failed(quiet[1])]).got_worse is None
    assert compare_audits([failed(quiet[0]), six[5]]).got_worse is None
    assert compare_audits([*quiet, six[5]]).got_worse is None
    assert compare_audits([*quiet, failed(six[5])], baseline=1).got_worse is None
    assert compare_audits([*quiet, failed(six[4]), six[5]], baseline=1).got_worse is True
    verdicts = {item.headline.verdict for item in compare_audits(quiet).changes}
    assert verdicts == {Change.NO_CHANGE_SHOWN}


def test_there_is_no_landscape_without_one_utility(audited, trained, six):
    """Without a utility, or with two kinds of it, there is a sentence instead of a landscape, and all else is there."""
    none = compare_audits([audited(0.1, 1), audited(0.2, 2)])
    assert none.no_landscape == none.no_frontier == "no utility was given"
    other = trained(0.1, 8, "other", 0.3)
    other.data["utility"]["name"] = "F1"
    mixed = compare_audits([*six, other])
    assert "“test accuracy” and “F1”" in mixed.no_landscape
    other.data["utility"] = {"value": 0.3, "name": "test accuracy", "higher_is_better": False}
    turned = compare_audits([*six, other])
    assert "better in one result and worse in another" in turned.no_landscape
    for found in (none, mixed, turned):
        assert found.frontier == ()
        assert found.landscape_figure() is None
        assert len(found.to_html()) > 10_000
        assert all(item.measure is not None and item.utility is None for item in found.strategies)


def test_a_family_of_differences_holds_at_once(audited):
    """A rise that one pair shows is not reported among fifty audits, where each has a fiftieth of the error."""
    old, new = audited(0.0, 11), audited(0.37, 12)
    alone = compare_audits([old, new]).changes[0].headline
    others = [audited(0.0, 13, twin=place) for place in range(49)]
    many = compare_audits([old, new, *others], baseline=1)
    among = many.changes[0].headline
    assert len(many.changes) == 50
    assert (alone.verdict, among.verdict) == (Change.WORSE, Change.NO_CHANGE_SHOWN)
    assert among.confidence == alone.confidence
    assert many.got_worse is not True


def test_the_advantage_is_compared_and_any_other_measure_on_request(six):
    """Without a named measure the advantage is compared, which has an interval for any law; a named one always is."""
    assert compare_audits(six).measure == "advantage"
    asked = compare_audits(six, measure="epsilon_star.gaussian")
    assert asked.measure == "epsilon_star.gaussian"
    assert "point estimates" in asked.no_order


def test_the_frame_has_a_row_for_each_result(six, failed):
    """One row for each result, with the numbers of the result itself and why it is left out."""
    results = [*six[:5], failed(six[5])]
    frame = compare_audits(results, measure="auc").to_frame()
    assert list(frame.index) == [1, 2, 3, 4, 5, 6]
    for number, result in enumerate(results, start=1):
        row, estimate = frame.loc[number], result.estimate("auc")
        assert (row["value"], row["lower"], row["upper"]) == (estimate.value, estimate.lower, estimate.upper)
        assert row["utility"] == result.data["utility"]["value"]
        assert row["input_sha256"] == result.provenance["input_sha256"]
    assert pd.isna(frame.loc[1, "left_out"])
    assert "duplicates" in frame.loc[6, "left_out"]


def test_the_json_is_strict_and_whole(six, valued, tmp_path):
    """The JSON parses without NaN or infinities, and says what the comparison says."""
    endless = valued(six[0], value=float("inf"))
    found = compare_audits([endless, *six[1:]], baseline=2, measure="epsilon_star.gaussian")
    text = Path(found.to_json(tmp_path / "c.json")).read_text(encoding="utf-8")

    def refuse(name):
        pytest.fail(f"bare {name} in JSON")

    read = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert json.loads(text) == read
    assert read["kind"] == "comparison"
    assert read["results"][0]["value"] == "inf"
    assert read["results"][1]["value"] == six[1].estimate("epsilon_star.gaussian").value
    assert read["baseline"] == 2
    assert read["got_worse"] is found.got_worse
    assert [item["number"] for item in read["changes"]] == [1, 3, 4, 5, 6]
    assert read["frontier"] == [item.number for item in found.frontier]


def long_numbers(text):
    """The numbers of JSON with more than three significant digits, but for those just below 1 and whole ones."""
    found = re.findall(r"(?<=[ \[])-?\d+\.\d+(?:e-?\d+)?(?=[,\n\]])", text)
    return [x for x in found if float(f"{float(x):.3g}") != float(x) and not 0.99 < float(x) < 1]


@pytest.fixture(scope="module")
def releases():
    """Losses of three releases on the same records, each with its audit for everybody and for insiders."""
    rng, found = np.random.default_rng(3), []
    shared = rng.normal(size=(2, 700))
    for shift in (0.0, 0.2, 0.9):
        member, nonmember = shared + 0.5 * rng.normal(size=(2, 700)) - [[shift], [0.0]]
        losses = auditor.Losses(member, nonmember, id=(np.arange(700), np.arange(700, 1400)))
        audits = {
            name: auditor.audit(
                losses,
                delta=1e-5,
                disclosure=name,
                strategy="tried",
                utility=auditor.Utility(0.8 + shift / 7, "accuracy"),
            )
            for name in ("public", "insiders")
        }
        found.append((losses, audits))
    return found


@pytest.mark.parametrize("measure", ["advantage", "auc", "epsilon_star.gaussian"])
@pytest.mark.parametrize("with_losses", [False, True])
@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("public",) * 3, "public"),
        (("insiders", "public", "insiders"), "public"),
        (("insiders",) * 3, "insiders"),
    ],
)
def test_a_comparison_has_three_digits_unless_all_results_are_for_insiders(
    releases, kinds, expected, with_losses, measure
):
    """All its numbers have, and its JSON says for whom it is; the verdicts are those of the published intervals, which hold the others."""
    losses = [item for item, _ in releases] if with_losses else ()
    audits = [audits[kind] for (_, audits), kind in zip(releases, kinds, strict=True)]
    found = compare_audits(audits, baseline=1, measure=measure, losses=losses)
    text = found.to_json()
    read = json.loads(text)
    assert read["disclosure"] == found.disclosure == expected
    utilities = {str(row["utility"]) for row in read["results"]}  # which people declared
    long = set(long_numbers(text)) - utilities
    assert bool(long) == (expected == "insiders")
    assert ("For insiders only" in found.to_html()) == (expected == "insiders")
    exact = compare_audits([audits["insiders"] for _, audits in releases], baseline=1, losses=losses)
    for change, whole in zip(found.changes, exact.changes, strict=True):
        for item, other in zip(change.differences, whole.differences, strict=True):
            if item.value is not None:
                assert item.lower <= other.lower <= other.upper <= item.upper
                assert (item.verdict == Change.WORSE) <= (item.lower > 0)
                assert item.upper - other.upper < 0.02


@pytest.mark.parametrize("disclosure", ["public", "insiders"])
def test_what_an_attacker_gets_right_is_counted_in_fives(releases, disclosure):
    """Of records compared one by one, the numbers decided differently are rounded, and not those of insiders."""
    audits = [audits[disclosure] for _, audits in releases[:2]]
    found = compare_audits(audits, losses=[item for item, _ in releases[:2]])
    sentence = found.changes[0].differences[0].sentence
    counts = re.search(
        r"is right on (.*) in the newer audit alone and on (.*) in the older", sentence
    ).groups()
    if disclosure == "insiders":
        assert all(count.isdigit() for count in counts)
    else:
        assert all(re.fullmatch(r"about \d*[05]|fewer than 10|no", count) for count in counts)
