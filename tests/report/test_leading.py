"""The number that leads each kind of page is that of the table for reviewers."""

import html
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from report.conftest import no_figures  # noqa: F401 - a fixture

import auditor

TABLE = (Path(__file__).parents[2] / "docs" / "how-to" / "reviewers.md").read_text(encoding="utf-8")
LEADS = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", TABLE, re.MULTILINE))
CLAIM = auditor.StatedClaim(1.0, 1e-5)


def losses(shift=2.0, size=300):
    """Losses of two groups so far apart."""
    rng = np.random.default_rng(3)
    return auditor.Losses(rng.normal(-shift, 1, size), rng.normal(0, 1, size))


def odds():
    """An audit by estimated odds, of groups that differ."""
    rng = np.random.default_rng(4)
    features = auditor.Features(rng.normal(0.3, 1, (600, 2)), rng.normal(0, 1, (600, 2)))
    return auditor.audit(losses(1.5, 600), delta=1e-5, split="propensity", features=features)


def labels():
    """An audit of labels that a function knows."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 200)
    known = np.where(np.eye(2)[y] > 0, 0.99, 0.01)
    return auditor.audit_labels(
        lambda rows: known[rows[:, 0]],
        (np.arange(200)[:, None], y),
        probabilities=np.full((200, 2), 0.5),
        seed=0,
    )


def promise(folder):
    """The promise of a training."""
    numbers = "--noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5 --quiet"
    assert run("claim", *numbers.split(), "--json", folder / "claim.json") == 0
    return auditor.read_result(folder / "claim.json")


KINDS = {
    "audit of a model": lambda _: auditor.audit(losses(), delta=1e-5),
    "audit with estimated odds": lambda _: odds(),
    "many runs": lambda _: auditor.audit_runs(losses(), delta=1e-5, claim=CLAIM),
    "many runs, stopped at any time": lambda _: auditor.audit_runs(
        losses(), delta=1e-5, claim=CLAIM, test="sequential"
    ),
    "several models": lambda _: auditor.audit_instances([losses(1), losses(1.1)], delta=1e-5, split="random"),
    "training labels": lambda _: labels(),
    "promise of a training": promise,
}


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_leads_with_its_number(kind, tmp_path):
    """The first screen of an audit has the pair, that of a promise epsilon, any other the number as its first tile."""
    page = html.unescape(KINDS[kind](tmp_path).to_html())
    first = page[page.index('class="verdict') :]
    if kind == "audit of a model":
        assert re.search(
            r"picks the right one at least \d+ times in 100 \(coin: 50\)", first.partition("</dl>")[0]
        )
        assert re.search(
            r"Of 100 pairs, an attacker picks at least \d+ members; a coin picks 50 \(about 95% confidence\)\.",
            first,
        )
    elif kind == "promise of a training":
        assert re.search(r"Promised, not measured</span>\. Epsilon at most [\d.]+ at delta 1e-5", first)
        assert "out of 100 potential outcomes" in first
    else:
        tile = re.search(r'<div class="lead"><dt>(.*?)</dt>', first)[1]
        assert re.sub("<.*?>", "", tile) == LEADS[kind]
    assert set(KINDS) <= set(LEADS)


def leaking_at_two_values(seed):
    """An audit of fair coins, where two fifths of the members have losses near one of two values."""
    rng = np.random.default_rng(seed)
    member = rng.random(1200) < 0.5
    one = rng.normal(size=1200)
    near = member & (rng.random(1200) < 0.4)
    one[near] = np.where(rng.random(near.sum()) < 0.5, -0.67, 0.67) + 0.15 * rng.normal(size=near.sum())
    return auditor.audit(auditor.Losses(one[member], one[~member]), split=auditor.BernoulliSplit(0.5))


LEARNT = re.compile('class="lead"><dt><a [^>]*>Training algorithm, by learnt guesses</a>')


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("seed", [1, 30])
def test_a_bound_on_the_training_leads_where_the_finding_rests_on_it(seed):
    """A leak that learnt guesses alone show leads with their bound, and the factor of its sentence is above 1."""
    page = html.unescape(leaking_at_two_values(seed).to_html())
    assert LEARNT.search(page)
    least, factor = map(
        float, re.search(r"epsilon is at least ([\d.]+) .* factor of ([\d.]+) or more", page).groups()
    )
    assert 1 < factor <= math.exp(least + 0.001)


@pytest.mark.usefixtures("no_figures")
def test_an_altered_result_has_no_finding_whose_bound_leads(tmp_path):
    """Its page says that it was altered, and the certified bound leads."""
    leaking_at_two_values(30).save(tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    changed = json.loads(text)
    changed["data"]["delta"] *= 2
    (tmp_path / "result.json").write_text(json.dumps(changed), encoding="utf-8")
    page = html.unescape(auditor.read_result(tmp_path / "result.json").to_html())
    assert "Altered since it was written" in page
    assert 'class="lead"' in page
    assert LEARNT.search(page) is None
