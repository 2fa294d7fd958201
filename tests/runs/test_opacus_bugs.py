"""Two real bugs of private training with Opacus contradict what Opacus claims, and their repairs do not."""

import pytest
from experiments.opacus_bugs import BUGS, REPAIRED

import auditor
from auditor import theory

pytest.importorskip("torch")
pytest.importorskip("opacus")


def audited(case, runs):
    """Train so many times in all, and judge what Opacus claims at the delta that was fixed beforehand."""
    losses = auditor.collect_runs(case.train, runs=runs, workers=1)
    return auditor.audit_runs(losses, delta=case.setup.delta, claim=case.setup.claim())


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("shuffled", 200),
        ("normalised", 100),
        *(pytest.param(name, 2_000, marks=pytest.mark.long) for name in BUGS),
    ],
)
def test_a_bug_is_refuted_and_its_repair_is_not(name, runs):
    """Batches that were shuffled or divided by a private number are refuted in a few hundred runs; repaired, they are not."""
    assert audited(BUGS[name], runs).verdict is auditor.Verdict.REFUTED
    assert audited(REPAIRED[name], runs).verdict is auditor.Verdict.NOT_REFUTED


def test_the_claims_are_what_opacus_recorded():
    """A bug and its repair have one noise, rate and number of steps; only the shuffled loader is named in its claim."""
    for name, bug in BUGS.items():
        claim, other = bug.setup.claim(), REPAIRED[name].setup.claim()
        assert claim.phases == other.phases
        assert claim.shuffled is (name == "shuffled")
        assert not other.shuffled


def test_poisson_sampling_leaves_the_canary_out():
    """At delta .66 the claim of ten steps at a tenth promises epsilon 0: the canary is drawn with probability .651 at most."""
    setup = REPAIRED["shuffled"].setup
    claim = setup.claim()
    assert claim.steps * claim.sampling_rate == pytest.approx(1)
    assert setup.delta > 1 - 0.9**10
    assert theory.epsilon(claim, delta=setup.delta).value == 0
