"""The league: its truths against quadrature and dp_accounting, its draws, its counts and its files."""

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, stats

LEAGUE = Path(__file__).parents[1] / "reports/league"
sys.path.insert(0, str(LEAGUE))

import counting  # noqa: E402 - of that folder
import laws  # noqa: E402
import run  # noqa: E402
import worker  # noqa: E402

LAWS = {law.name: law for law in laws.LAWS}
ADAPTERS = [run.Adapter.read(path) for path in sorted(LEAGUE.glob("adapters/*.py"))]
DELTA = 1e-3


@pytest.mark.parametrize(
    ("name", "losses"),
    [
        ("Gaussian", lambda: pld.from_gaussian_mechanism(1.0)),
        ("Laplace", lambda: pld.from_laplace_mechanism(1.0)),
        ("randomised response", lambda: pld.from_randomized_response(2 / (1 + math.e), 2)),
    ],
)
def test_truths_are_those_of_dp_accounting(name, losses):
    """The epsilon of three mechanisms is what dp_accounting computes, which rounds up on its grid."""
    expected = losses().get_epsilon_for_delta(DELTA)
    assert LAWS[name].epsilon(DELTA) == pytest.approx(expected, abs=2e-4)


def test_the_truth_of_heavy_tails_by_quadrature():
    """At the stated epsilon, the positive part of p - e^epsilon q integrates to delta, by quadrature."""
    epsilon = LAWS["heavy tails"].epsilon(DELTA)
    p, q = stats.cauchy(1).pdf, stats.cauchy(0).pdf
    area, _ = integrate.quad(
        lambda x: max(0.0, p(x) - math.exp(epsilon) * q(x)), 0, 50, limit=500, points=[1, 2, 5]
    )
    assert area == pytest.approx(DELTA, rel=1e-5)
    assert LAWS["heavy tails"].epsilon(0) == pytest.approx(
        2 * math.asinh(0.5)
    )  # of log(1 + x^2) - log(1 + (x-1)^2)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("high tail only", ((0.1 - DELTA) / (0.1 / math.e))),
        ("non-monotone", ((0.27 - DELTA) / 0.1)),
        ("step mechanism", ((0.25 * math.e - DELTA) / 0.25)),
        ("ties", None),
    ],
)
def test_truths_of_steps_by_every_event(name, event):
    """The epsilon of a law of few steps is that of its best event, found among all of them or by hand."""
    if event is None:
        weights = np.array([1, 2, 4, 2, 1])
        p = weights * np.exp(np.arange(5) / 2)
        p, q = p / p.sum(), weights / 10
        events = [[bool(code >> bit & 1) for bit in range(5)] for code in range(1, 32)]
        event = max(
            (a[inside].sum() - DELTA) / b[inside].sum() for inside in events for a, b in ((p, q), (q, p))
        )
    assert LAWS[name].epsilon(DELTA) == pytest.approx(math.log(event))


def test_half_of_the_scores_at_an_atom_halve_delta():
    """A mixture with a common atom of a half is as far apart as its other half at twice the delta."""
    assert LAWS["atoms"].epsilon(DELTA) == LAWS["Gaussian"].epsilon(2 * DELTA)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.name)
def test_no_event_of_a_draw_contradicts_the_truth(law, rng):
    """Of 200,000 draws, no threshold shows more than the true epsilon, beyond the noise of its counts."""
    member, nonmember = law.draw(rng, 200_000)
    at = np.quantile(np.concatenate([member, nonmember]), np.linspace(0.02, 0.98, 49))
    tpr, fpr = ((side[:, None] > at).mean(axis=0) for side in (member, nonmember))
    seen = [((a - DELTA)[b > 0] / b[b > 0]).max() for a, b in ((tpr, fpr), (1 - fpr, 1 - tpr))]
    assert math.log(max(seen)) < law.epsilon(DELTA) + 0.12


def test_rows_of_a_person_are_ten_equal_scores(rng):
    """Clustered records come in blocks of ten equal scores."""
    member, _ = LAWS["clustered records"].draw(rng, 100)
    assert np.unique(member.reshape(10, 10), axis=1).shape[1] == 1
    assert np.unique(member).size == 10


def test_a_row_counts_the_numbers_above_the_truth():
    """Of four numbers one is above the truth of 1, one is refused, and the mean and the interval are of three."""
    adapter = next(adapter for adapter in ADAPTERS if adapter.name == "auditor")
    truth = LAWS["randomised response"].epsilon(run.DELTA)
    found = [(truth + 0.5, 0.1), (0.0, 0.2), (math.nan, 0.3), (truth - 0.5, 0.4)]
    row = run.Row.of(adapter, LAWS["randomised response"], 100, found)
    assert (row.draws, row.refused, row.above) == (3, 1, 1)
    assert row.mean == pytest.approx(2 * truth / 3)
    assert row.cpu == pytest.approx(0.25)
    # Clopper-Pearson of 1 in 3 by its beta quantiles
    assert (row.low, row.high) == pytest.approx((stats.beta.ppf(0.025, 1, 3), stats.beta.ppf(0.975, 2, 2)))


def test_coins_share_the_records_out():
    """By fair coins there are twice as many records as the size, of both groups, and without them the size of each."""
    drawn = np.arange(200), np.arange(200), 100
    by_coins = [worker.sides(drawn, number, coins=True) for number in range(50)]
    assert {member.size + nonmember.size for member, nonmember in by_coins} == {200}
    assert len({member.size for member, _ in by_coins}) > 5
    assert [side.size for side in worker.sides(drawn, 0, coins=False)] == [100, 100]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_an_adapter_is_short_pinned_and_quoted(adapter):
    """Every adapter has at most 30 lines, a version for each requirement, a quote with its source or a reason, and known laws."""
    assert len(adapter.path.read_text(encoding="utf-8").splitlines()) <= 30
    assert all("==" in name for name in adapter.requirements)
    assert adapter.not_run or (adapter.quote and adapter.source)
    assert set(adapter.outside) <= set(LAWS)


def test_the_quotes_of_our_auditors_are_in_our_source():
    """Each quote of our own documentation is in the file that is named as its source."""
    for adapter in ADAPTERS:
        if not adapter.requirements:
            text = (LEAGUE.parents[1] / adapter.source.split(",")[0]).read_text(encoding="utf-8")
            assert adapter.quote in " ".join(text.split())


def test_the_league_runs(tmp_path, capsys):
    """Two auditors of this environment at two draws give a page, a table of every law and size, and two figures."""
    names = "auditor, Melded", "auditor, one run"
    run.main(["--draws", "2", "--sizes", "100", "1000", "--auditors", *names, "--out", str(tmp_path)])
    assert "44 rows" in capsys.readouterr().out  # 12 laws and 10, at two sizes
    rows = list(csv.DictReader((tmp_path / "league.csv").read_text(encoding="utf-8").splitlines()))
    assert list(rows[0])[:3] == ["auditor", "law", "size"]
    assert {(row["draws"], row["refused"]) for row in rows} == {("2", "0")}
    page = (tmp_path / "league.md").read_text(encoding="utf-8")
    assert page.count("| auditor, Melded |") == 4  # auditors, summary, two sizes
    assert all(
        (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG" for name in ("violations", "tightness")
    )


@pytest.mark.parametrize(
    "given", [("--draws", "0"), ("--workers", "-1"), ("--auditors", "nobody"), ("--sizes", "7")]
)
def test_bad_arguments_write_nothing(tmp_path, given, capsys):
    """A number below 1, and an auditor or a size that is not there, end with code 2."""
    with pytest.raises(SystemExit, match="2"):
        run.main([*given, "--out", str(tmp_path / "new")])
    assert given[0] in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_peer_that_cannot_be_installed_is_not_run(tmp_path, monkeypatch):
    """An environment that cannot be made is the reason in the list, and the league goes on."""
    peer = next(adapter for adapter in ADAPTERS if adapter.name == "riskcal")

    def refused(*_command):
        raise OSError("no such package")

    monkeypatch.setattr(run, "run", refused)
    [(adapter, rows, versions)] = run.ran([peer], tmp_path, tmp_path, sizes=[100], most=2, workers=1)
    assert (adapter.not_run, rows, versions) == ("no such package", [], {})


def test_an_auditor_without_a_number_is_not_run(tmp_path, monkeypatch):
    """An auditor that refuses every draw is listed with that reason, and has no row."""
    ours = next(adapter for adapter in ADAPTERS if adapter.name == "auditor")
    refused = run.Row.of(ours, LAWS["noise"], 100, [(math.nan, 0.1)])
    monkeypatch.setattr(run, "audited", lambda *_: ([refused], {}))
    [(adapter, rows, _)] = run.ran([ours], tmp_path, tmp_path, sizes=[100], most=1, workers=1)
    assert (adapter.not_run, rows) == ("It gives no number.", [])


def test_the_law_with_the_largest_rate_comes_first():
    """Counts are summed over sizes by law, in the order of the rates; a law without a number is left out."""
    ours = next(adapter for adapter in ADAPTERS if adapter.name == "auditor")
    rows = [
        *(run.Row.of(ours, LAWS["noise"], size, [(0.0, 0.1), (0.0, 0.1)]) for size in (100, 1_000)),
        *(run.Row.of(ours, LAWS["Laplace"], size, [(2.0, 0.1), (0.0, 0.1)]) for size in (100, 1_000)),
        run.Row.of(ours, LAWS["ties"], 100, [(math.nan, 0.1)]),
    ]
    assert list(counting.by_law(rows).items()) == [("Laplace", (2, 4)), ("noise", (0, 4))]
