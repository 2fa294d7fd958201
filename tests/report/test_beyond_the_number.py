"""Words say no more than the number: which group stands out, what tiles say, which way runs go, and which advice fits."""

import re

import numpy as np
import pytest
from safety.formats import Markup
from simulation import evidence_of

import auditor
from auditor import (
    DPSGD,
    BernoulliSplit,
    Features,
    Losses,
    Propensity,
    RandomSplit,
    RankGrid,
    Sequential,
    StatedClaim,
)
from auditor.core import Status
from auditor.report import render

DELTA = 1e-5


def outputs(result):
    """The page from its first screen on, the terminal's text and the Markdown, each on one line and as a reader sees it."""
    page = re.sub(r"<svg.*?</svg>", "", result.to_html(), flags=re.DOTALL)
    page = Markup(page[page.index('<section class="verdict') :]).text
    texts = (
        page,
        auditor.report.audit_text(result),
        result.to_markdown().replace("\\", "").replace("&#8203;", ""),
    )
    return tuple(" ".join(text.split()) for text in texts)


def in_groups(seed, *, n=1500, leaks=(0.5, 0.5, 0.5), base=(0.0, 0.0, 0.0)):
    """An audit of groups A, B, C ... that leak so much, whose records are as hard as their base."""
    rng = np.random.default_rng(seed)
    group = rng.integers(len(leaks), size=2 * n)
    member = np.repeat([1, 0], n)
    loss = rng.normal(np.array(base)[group] - np.array(leaks)[group] * member)
    names = np.array(list("ABCDEFGHIJ"))[group]
    return auditor.audit(auditor.collectors.from_columns(loss, member=member, group=names), delta=DELTA)


# --- Which group stands out ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [(0.0, 0.0, 0.0), (0.0, 3.0, 6.0)])
def test_groups_that_leak_alike_do_not_stand_out(base):
    """Three groups leak alike, their records equally hard or not: none is named, in any output."""
    for text in outputs(in_groups(100, base=base)):
        assert "No group stands out." in text
        assert "Most exposed" not in text
        assert "Begin with" not in text


def test_a_group_that_leaks_more_is_named_with_what_to_do():
    """The one group that leaks is named in every output, beside the finding and under what to do now."""
    for text in outputs(in_groups(1, leaks=(0.0, 1.5, 0.0))):
        # Of two normals 1.5 apart the AUC is Phi(1.5 / sqrt(2)) = 0.856, and its lower limit above 0.8.
        assert re.search(
            r"Most exposed: B, at least 8[0-5] times in 100 \(coin: 50\); no other group shows leakage", text
        )
        assert "Fix B first." in text
        assert "No group stands out" not in text


def test_a_group_is_named_beside_a_claim_too():
    """Where a claim has two of the three lines on what to do, the last one names the group."""
    rng = np.random.default_rng(2)
    group = np.repeat(["north", "south"], 1000)
    member = rng.normal(0, 1, 2000) - 2.0 * (group == "south")
    losses = Losses(member, rng.normal(0, 1, 2000), group=(group, group))
    found = auditor.audit(losses, delta=DELTA, split=RandomSplit(), claim=StatedClaim(0.1, DELTA))
    assert found.verdict == "refuted"
    assert all("Fix south first." in text for text in outputs(found))


# --- Tiles say what the finding says ---------------------------------------------------------------------------------


def quiet():
    """An audit that finds nothing, of which the certified bound alone is above 0: sought among small leaks."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = auditor.audit(Losses(rng.normal(-0.1, 1, 400), rng.normal(0, 1, 400)), delta=DELTA)
        if (
            "No evidence of leakage" in str(found)
            and found.estimate("epsilon_bound.clopper_pearson").value > 0
        ):
            return found
    raise AssertionError("none of these audits is of that kind")


def test_no_evidence_stands_beside_no_certified_number():
    """A bound that is above 0 only when taken alone is "not shown": in the tile, a comparison's table and Markdown."""
    found = quiet()
    page = found.to_html()
    tiles = Markup(page.partition('<dl class="tiles">')[2].partition("</dl>")[0]).text
    assert re.search(r"not shown\s+at least 0\.\d+ when taken alone", tiles)
    assert not re.search(r"0\.\d+ certified", tiles)
    assert re.search(r"Certified epsilon bound \| not shown \|", found.to_markdown())
    table = render([found, found])
    assert "not shown" in table[table.index("The audits side by side") : table.index("</table>")]


def test_a_finding_says_what_few_records_show():
    """Five records and five show no AUC above a half; a number above guessing by itself stands beside how many there are."""
    few = auditor.audit(Losses(np.arange(5.0), np.arange(5.0) + 0.5), delta=DELTA, disclosure="insiders")
    assert "Audits of this size may miss any leak." in auditor.report.audit_text(few)
    assert "∞" not in auditor.report.audit_text(few).split("What now")[0]
    beside = r"above guessing at 95% confidence when taken alone\. The losses as a whole show no leak;"
    assert re.search(beside, " ".join(auditor.report.audit_text(quiet()).split()))


@pytest.mark.parametrize(("n", "word"), [(30, "Too few to tell"), (200, "No evidence of leakage")])
def test_thirty_records_are_too_few(n, word):
    """Thirty records of each group would miss a leak of AUC 0.75 more than once in five times, and say so."""
    rng = np.random.default_rng(4)
    found = auditor.audit(Losses(rng.normal(0, 1, n), rng.normal(0, 1, n)), delta=DELTA)
    assert (found.check("power").status is Status.WARN) == (n == 30)
    assert all(word in text and "in 4 of 5 cases" in text for text in outputs(found))


# --- Runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", [None, StatedClaim(0.5, DELTA)])
def test_runs_the_wrong_way_round_say_so(claim):
    """Scores that are higher with the canary are no lack of evidence: the headline says which way they go."""
    rng = np.random.default_rng(0)
    losses = Losses(rng.normal(3, 1, 100), rng.normal(-3, 1, 100))
    for text in outputs(auditor.audit_runs(losses, delta=DELTA, claim=claim)):
        assert "The wrong way round" in text
        assert "– No evidence" not in text  # noqa: RUF001
        assert "No evidence of leakage." not in text
        assert "Check that the two worlds are not swapped." in text


def test_a_refuted_curve_leads_with_its_evidence():
    """A curve is refuted while the bound at one delta is below its epsilon: one sentence says why, and the p-value leads."""
    rng = np.random.default_rng(0)
    losses = Losses(rng.normal(-1, 1, 1000), rng.normal(0, 1, 1000))
    claim = DPSGD(noise_multiplier=1.3, sampling_rate=1.0, steps=1)
    found = auditor.audit_runs(losses, delta=DELTA, claim=claim)
    assert found.verdict == "refuted"
    assert found.estimates[0].value < found.comparisons[0].claim.value
    assert all("The evidence is against the whole claimed curve" in text for text in outputs(found))
    page = found.to_html()
    tiles = Markup(page.partition('<dl class="tiles">')[2].partition("</dl>")[0]).text
    assert tiles.strip().startswith("p-value of the claim")
    large = auditor.audit_runs(losses, delta=DELTA, claim=StatedClaim(0.5, DELTA))
    assert not any("as a whole" in text for text in outputs(large))


@pytest.mark.parametrize("choice", [{"threshold": RankGrid()}, {"test": Sequential()}])
def test_rows_of_dashes_go(choice):
    """Numbers that this kind of audit does not have are left out of the table, with the reason in a sentence."""
    rng = np.random.default_rng(0)
    losses = Losses(rng.normal(-3, 1, 200), rng.normal(0, 1, 200))
    found = auditor.audit_runs(losses, delta=DELTA, claim=StatedClaim(1.0, DELTA), **choice)
    assert any(row.value is None for row in found.estimates)
    for text in outputs(found):
        assert "Bound if the curve is Gaussian —" not in text
        assert "| Bound if" not in text
        assert re.search(r"Bound if the curve is Gaussian[:.] It (needs one|holds only)", text)


# --- Sentences that deny what stands beside them ---------------------------------------------------------------------


def test_a_page_of_several_audits_has_its_curves():
    """No page says that there is no trade-off curve above one, whichever end it shows."""
    rng = np.random.default_rng(3)
    nonmember = rng.normal(0, 1, 600) + 6 * (rng.random(600) < 0.3)
    found = auditor.audit(Losses(rng.normal(0, 1, 600), nonmember), delta=DELTA)
    page = render([found, found])
    assert "The other end: the share of others ruled out" in page
    assert "holds no trade-off curve" not in page


def test_the_bound_by_estimated_odds_leads():
    """Where the groups differ, the conditional bound is first, as the headline and the large number; no invalid one is a tile."""
    rng = np.random.default_rng(5)
    features = rng.normal(0, 1, (3000, 3))
    coin = rng.random(3000) < 1 / (1 + np.exp(-features[:, 0]))
    loss = rng.normal(0, 1, 3000) - coin
    split = Propensity(Features(features[coin], features[~coin]))
    found = auditor.audit(Losses(loss[coin], loss[~coin]), delta=0.0, split=split)
    assert found.check("shift").status is Status.FAIL
    for text in outputs(found):
        assert text.index("if the estimated odds of membership are right") < text.index(
            "cannot be compared as they are"
        )
        assert "Leakage, if the odds are right" in text
    page = found.to_html()
    tiles = Markup(page.partition('<dl class="tiles">')[2].partition("</dl>")[0]).text
    assert tiles.strip().startswith("Training algorithm, by estimated odds 1.")
    assert "a validity check failed" not in tiles
    assert tiles.count("confidence") == 1


# --- Advice follows the data -----------------------------------------------------------------------------------------


def leaking(rng, n=600, **columns):
    """Losses that leak much."""
    return Losses(rng.normal(-1.5, 1, n), rng.normal(0, 1, n), **columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "If it is already in use, return fewer details, to fewer users."),  # of a language model, say
        ({"scale": "log-odds"}, "labels only or rounded probabilities"),
    ],
)
def test_labels_are_advised_where_there_are_classes(columns, said):
    """Labels alone are no advice on losses that may be a language model's; of a classifier they are."""
    found = auditor.audit(leaking(np.random.default_rng(1), **columns), delta=DELTA)
    for text in outputs(found):
        assert said in text
        assert ("labels only" in text) == bool(columns)


@pytest.mark.parametrize("helps", [False, True])
def test_answering_less_is_advised_where_it_was_seen_to_help(helps):
    """Rounding that leaves the leak as it is is not advised; labels that take it away are, by name."""
    rng = np.random.default_rng(1)
    losses = leaking(rng)
    under = [rng.normal(0, 1, 600) for _ in range(2)] if helps else [losses.member, losses.nonmember]
    policies = {("label" if helps else "digits=2"): tuple(under)}
    found = auditor.audit(leaking(np.random.default_rng(1), scale="log-odds", policies=policies), delta=DELTA)
    for text in outputs(found):
        assert "rounded probabilities, to fewer" not in text
        assert ("answer with the label alone only" in text) == helps
        assert ("answering less is not shown to help." in text) != helps


@pytest.mark.parametrize("claim", [None, StatedClaim(2.0, DELTA), StatedClaim(8.0, DELTA)])
@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_an_audit_of_coins_is_advised_no_canaries(claim, shift):
    """An audit by membership coins, as of canaries, is not sent to plant canaries, and no shift of its groups is unknown."""
    rng = np.random.default_rng(6)
    coin = rng.random(1000) < 0.5
    loss = rng.normal(0, 1, 1000) - shift * coin
    found = auditor.audit(
        Losses(loss[coin], loss[~coin]), delta=DELTA, split=BernoulliSplit(0.5), claim=claim
    )
    assert found.check("shift").status is Status.OK
    assert "by design" in found.check("shift").message
    for text in outputs(found):
        assert "anaries" not in text.split("Glossary")[0].split("Methods and assumptions")[0]


def test_twins_that_chance_explains_are_no_warning():
    """Records of few features have natural twins; a random split puts as many in both groups as are seen."""
    rng = np.random.default_rng(8)
    cells = rng.integers(0, 40, (800, 2))
    loss = rng.normal(0, 1, 800)
    features = Features(cells[:400], cells[400:])
    found = auditor.audit(
        Losses(loss[:400], loss[400:]), delta=DELTA, features=features, disclosure="insiders"
    )
    details = found.check("duplicates").details
    assert details["contents_in_both"] > 50
    assert abs(details["contents_in_both"] - details["contents_in_both_expected"]) < 30
    assert found.check("duplicates").status is Status.OK


# --- What is stated holds --------------------------------------------------------------------------------------------


def test_what_shuffled_labels_show_is_one_thing():
    """The check says what it tests, and does not say that nothing is found where nothing is."""
    found = auditor.audit(leaking(np.random.default_rng(1)), delta=DELTA)
    message = found.check("label_shuffle").message
    assert "exchangeable" in message
    assert "what is not there" not in message


def test_an_approximate_interval_says_about():
    """The AUC's interval is one for many records, and its confidence is "about" that in every output; others' is not."""
    found = auditor.audit(leaking(np.random.default_rng(1)), delta=DELTA)
    page, terminal, text = outputs(found)
    assert "at about 95% confidence" in text
    assert re.search(r"guessing gives 0.5\. [\d.]+ [\d.]+ to [\d.]+ about 95%", page)
    assert re.search(r"AUC [\d.]+ [\d.]+ to [\d.]+ about 95%", terminal)
    assert re.search(r"advantage [\d.]+ [\d.]+ to [\d.]+ 95%", terminal)


def test_records_of_one_person_make_limits_too_large():
    """Records that belong together make lower limits too large, and the check does not say that the leak may be larger."""
    rng = np.random.default_rng(9)
    person = tuple(np.char.add(side, np.repeat(np.arange(50), 4).astype(str)) for side in "ab")
    losses = Losses(rng.normal(0, 1, 200), rng.normal(0, 1, 200), person=person)
    message = auditor.audit(losses, delta=DELTA, persons=auditor.EachRecord()).check("persons").message
    assert "lower limits can be above the truth" in message
    assert "may be larger" not in message


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
def test_a_claim_that_stands_says_what_could_have_refuted_it(split):
    """Scores with the stated mu refute the claim in 80% of audits or a little more; with four fifths of it in far fewer."""
    rng = np.random.default_rng(10)
    claim = StatedClaim(0.7, DELTA, "add-remove" if isinstance(split, BernoulliSplit) else "replace-one")

    def scores(mu):
        loss = rng.normal(0, 1, 600) - mu * (np.arange(600) < 300)
        return Losses(loss[:300], loss[300:])

    quiet = auditor.audit(scores(0.0), delta=DELTA, split=split, claim=claim)
    mu = quiet.estimate("epsilon_bound.one_run").details["smallest_mu"]
    sentence = "Audits of this size refute it in 4 of 5 cases if the groups are mu ="
    assert all(sentence in text for text in outputs(quiet))
    assert "perfect attack would" not in quiet.comparisons[0].reason

    def refuted(mu):
        (row,) = evidence_of(scores(mu), "one run", split=split, claim=claim, delta=DELTA).estimates
        return auditor.verdicts.judge(quiet.comparisons[0].claim, row).verdict == "refuted"

    counts = [sum(refuted(x * mu) for _ in range(25)) for x in (0.7, 1.0)]
    # Of 25 audits 80% to 95% refute: fewer than 16 or, of the weaker scores, more than 15 have a probability of 1 in 100.
    assert counts[1] >= 16
    assert counts[0] <= 15
