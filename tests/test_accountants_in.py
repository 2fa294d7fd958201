"""Runs read from Opacus, from dp_accounting's events and from TensorFlow Privacy's arguments, with their samplers."""

import math
import warnings
from types import SimpleNamespace

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

import auditor
from auditor import DPSGD, FixedSizeSampling, InputError, PoissonSampling, ShuffledBatches, theory
from auditor.core import Phase

GAUSSIAN, SAMPLED = dp_accounting.GaussianDpEvent, dp_accounting.PoissonSampledDpEvent
MANY, ALL = dp_accounting.SelfComposedDpEvent, dp_accounting.ComposedDpEvent
TREE = dp_accounting.SingleEpochTreeAggregationDpEvent


# --- Opacus -----------------------------------------------------------------------------------------


@pytest.fixture
def opacus():
    """Opacus, where it is installed."""
    pytest.importorskip("torch")
    return pytest.importorskip("opacus")


def trained(opacus, *, accountant="rdp", noises=(1.0,), **more):
    """Train a tiny model for two passes over 5 batches at each noise; return the engine and its loader."""
    import torch

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.zeros(20, 2), torch.zeros(20, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(accountant=accountant)
        for noise in noises:
            model = torch.nn.Linear(2, 1)
            model, optimizer, drawn = engine.make_private(
                module=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
                data_loader=loader,
                noise_multiplier=noise,
                max_grad_norm=1.0,
                **more,
            )
            for inputs, labels in [*drawn, *drawn]:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), labels).backward()
                optimizer.step()
    return engine, drawn, optimizer


@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_an_engine_or_its_accountant(opacus, accountant):
    """Ten steps at a fifth of the records, from the engine and from each of its accountants alike."""
    engine, loader, _ = trained(opacus, accountant=accountant)
    wanted = DPSGD(1.0, 0.2, 10)
    assert DPSGD.from_opacus(engine) == DPSGD.from_opacus(engine.accountant, data_loader=loader) == wanted


def test_noise_that_changed(opacus):
    """Each row of the history is a phase of the run; what the claim promises is near what Opacus reports."""
    engine, _, _ = trained(opacus, noises=(1.0, 2.0))
    claim = DPSGD.from_opacus(engine, clipping_norm=3.0, unit="person")
    assert claim.phases == (Phase(1.0, 0.2, 10), Phase(2.0, 0.2, 10))
    assert (claim.clipping_norm, claim.unit) == (3.0, "person")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of its own range of orders
        reported = engine.get_epsilon(1e-5)  # by Renyi divergences, which are looser
    assert 0.8 * reported < theory.epsilon(claim, delta=1e-5).value < reported


def test_the_loader_shows_the_sampler(opacus):
    """Without Poisson sampling the loader passes over shuffled records; a memory manager changes neither."""
    from opacus.utils.batch_memory_manager import wrap_data_loader

    for poisson, sampling in ((True, PoissonSampling()), (False, ShuffledBatches())):
        engine, loader, optimizer = trained(opacus, poisson_sampling=poisson)
        split = wrap_data_loader(data_loader=loader, max_batch_size=2, optimizer=optimizer)
        for shown in (loader, split):
            assert DPSGD.from_opacus(engine, data_loader=shown).sampling == sampling
    assert DPSGD.from_opacus(engine, sampling=FixedSizeSampling()).fixed_size


def test_what_is_no_loader():
    """A loader without a batch sampler shows nothing, and the sampling is said once."""
    engine, loader = SimpleNamespace(history=[(1.0, 0.1, 3)]), SimpleNamespace(batch_sampler=object())
    with pytest.raises(InputError, match="with a batch_sampler, got list; give sampling instead"):
        DPSGD.from_opacus(engine, data_loader=[])
    with pytest.raises(InputError, match="leave one of them out"):
        DPSGD.from_opacus(engine, data_loader=loader, sampling=PoissonSampling())


# --- dp_accounting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "phases"),
    [
        (GAUSSIAN(2.0), [Phase(2.0, 1.0, 1)]),
        (MANY(SAMPLED(0.01, GAUSSIAN(1.0)), 300), [Phase(1.0, 0.01, 300)]),
        (MANY(MANY(GAUSSIAN(3.0), 4), 5), [Phase(3.0, 1.0, 20)]),
        (ALL([dp_accounting.NoOpDpEvent(), SAMPLED(0.5, MANY(GAUSSIAN(2.0), 4))]), [Phase(1.0, 0.5, 1)]),
        (SAMPLED(0.5, ALL([GAUSSIAN(3.0), GAUSSIAN(4.0)])), [Phase(2.4, 0.5, 1)]),  # 1/3^2 + 1/4^2 = 1/2.4^2
        (
            ALL([MANY(SAMPLED(0.1, GAUSSIAN(1.0)), 7), GAUSSIAN(5.0), MANY(SAMPLED(0.1, GAUSSIAN(1.0)), 3)]),
            [Phase(1.0, 0.1, 10), Phase(5.0, 1.0, 1)],
        ),
    ],
)
def test_events(event, phases):
    """Gaussians, sampled and composed, become steps; dp_accounting's own epsilon is the same."""
    claim = DPSGD.from_events(event)
    assert [tuple(vars(phase).values()) for phase in claim.phases] == [
        pytest.approx(tuple(vars(phase).values()), rel=1e-15) for phase in phases
    ]
    flat = ALL([MANY(SAMPLED(p.sampling_rate, GAUSSIAN(p.noise_multiplier)), p.steps) for p in phases])
    theirs = PLDAccountant().compose(flat).get_epsilon(1e-5)
    assert theory.epsilon(claim, delta=1e-5).value == pytest.approx(theirs, abs=1e-3)


def test_samplers_of_events():
    """Events draw by coins; where coins were only assumed, the claim can say so."""
    assumed = SAMPLED(0.01, GAUSSIAN(1.0))
    assert DPSGD.from_events(assumed).sampling == PoissonSampling()
    assert (
        DPSGD.from_events(assumed, sampling=ShuffledBatches(), unit="person")
        .in_words()
        .endswith("shuffled batches accounted as Poisson-sampled ones, per person")
    )


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (MANY(TREE(2.0, [3, 16]), 2), ["SingleEpochTreeAggregationDpEvent", "DP-FTRL", f"from_mu({math.sqrt(5) / 2:.6g})"]),
        (dp_accounting.LaplaceDpEvent(1.0), ["LaplaceDpEvent", "from_points"]),
        (dp_accounting.NonPrivateDpEvent(), ["NonPrivateDpEvent"]),
        (dp_accounting.SampledWithReplacementDpEvent(9, 3, GAUSSIAN(1.0)), ["SampledWithReplacementDpEvent"]),
        (SAMPLED(0.5, SAMPLED(0.5, GAUSSIAN(1.0))), ["sample of a sample"]),
        (ALL([]), ["at least 1 step, got none"]),
        (MANY(GAUSSIAN(1.0), 0), ["at least 1 step, got none"]),
        (GAUSSIAN(0.0), ["noise_multiplier of GaussianDpEvent must be above 0"]),
        (
            dp_accounting.SampledWithoutReplacementDpEvent(9, 3, GAUSSIAN(1.0)),
            ["SampledWithoutReplacementDpEvent", "two clipping norms", "FixedSizeSampling()"],
        ),
        ("DP-SGD", ["got str"]),
    ],
)  # fmt: skip
def test_events_that_are_no_dp_sgd(event, words):
    """Each is refused by its name, with what to claim instead."""
    with pytest.raises(InputError) as caught:
        DPSGD.from_events(event)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.skipif(not hasattr(dp_accounting, "ZCDpEvent"), reason="dp-accounting 0.4 has no such event")
def test_an_event_of_zero_concentrated_privacy():
    """It is refused with its rho."""
    with pytest.raises(InputError, match=r"StatedClaim.from_rho\(0.25\)"):
        DPSGD.from_events(dp_accounting.ZCDpEvent(0.25))


# --- TensorFlow Privacy -------------------------------------------------------------------------------

MNIST = {"number_of_examples": 60_000, "batch_size": 250, "noise_multiplier": 1.3, "epochs": 15}


def test_the_published_example():
    """Its tutorial's run has 3,600 steps at .417% and, by looser accounting, epsilon 1.18; batches are shuffled."""
    claim = DPSGD.from_tensorflow_privacy(**MNIST)
    assert (claim.steps, round(claim.sampling_rate, 5), claim.sampling) == (3600, 0.00417, ShuffledBatches())
    assert 0.6 < theory.epsilon(claim, delta=1e-5).value < 1.18


def test_whole_steps_and_microbatches():
    """Steps are rounded up, and microbatches of several records halve the noise multiplier."""
    run = MNIST | {"epochs": 0.3, "batch_size": 256}
    assert DPSGD.from_tensorflow_privacy(**run).steps == 71  # .3 x 60000 / 256 = 70.3
    assert DPSGD.from_tensorflow_privacy(**run, used_microbatching=True).noise_multiplier == 0.65
    coins = DPSGD.from_tensorflow_privacy(**run, sampling=PoissonSampling(), unit="person")
    assert coins == DPSGD(1.3, 256 / 60_000, 71, unit="person")


def test_tensorflow_privacy_itself():
    """The run has the epsilon of compute_dp_sgd_privacy, whose accountant is a little looser."""
    package = pytest.importorskip("tensorflow_privacy")
    run = MNIST | {"epochs": 1.7}
    theirs, _ = package.compute_dp_sgd_privacy(60_000, 250, 1.3, 1.7, 1e-5)
    ours = theory.renyi_epsilon(DPSGD.from_tensorflow_privacy(**run), delta=1e-5).value
    assert theirs * 0.97 <= ours <= theirs + 1e-9


# --- What shuffled batches mean -------------------------------------------------------------------------


def test_nothing_is_proven_for_shuffled_batches():
    """The numbers are those of Poisson sampling, and none of them is proven; the first says why."""
    poisson, shuffled = (
        DPSGD(1.0, 0.1, 20, sampling=kind) for kind in (PoissonSampling(), ShuffledBatches())
    )
    for said in (theory.claims, theory.overview, theory.compare_compositions):
        before, after = said(poisson, delta=1e-5), said(shuffled, delta=1e-5)
        assert [row.value for row in after] == [row.value for row in before]
        assert any(row.proven for row in before)
        assert not any(row.proven for row in after)
        assert "not proven for such batches" in after[0].note
    wanted = theory.noise_multiplier_for(
        theory.WantedEpsilon(1.0, delta=1e-5), sampling_rate=0.1, steps=20, sampling=ShuffledBatches()
    )
    assert not wanted.promise.proven
    assert "shuffled" in theory.claimed_curve(shuffled).note


@pytest.mark.parametrize("claim", [None, auditor.StatedClaim(1.0, 0.0), DPSGD(1.0, 0.1, 20)])
def test_other_claims_have_no_such_check(rng, claim):
    """An audit looks at the sampler of a claim that names shuffled batches, and at no other."""
    losses = auditor.Losses(member=rng.normal(-1, 1, 100), nonmember=rng.normal(0, 1, 100))
    assert "sampler" not in {check.name for check in auditor.audit(losses, claim=claim).checks}


def test_an_audit_warns_of_shuffled_batches(rng, tmp_path):
    """The check is in the result, its advice on the page, and the verdict stands."""
    losses = auditor.Losses(member=rng.normal(-1, 1, 100), nonmember=rng.normal(0, 1, 100))
    claim = DPSGD(1.0, 0.1, 20, sampling=ShuffledBatches())
    result = auditor.audit(losses, delta=1e-5, split=auditor.RandomSplit(), claim=claim)
    assert result.check("sampler").status == "warn"
    assert "not proven for shuffled batches" in result.to_markdown()
    assert "Draw batches by Poisson sampling" in result.to_html()
    assert result.verdict in {"inconclusive", "not_refuted"}
    result.to_json(tmp_path / "result.json")
    assert auditor.read_result(tmp_path / "result.json").check("sampler") == result.check("sampler")
