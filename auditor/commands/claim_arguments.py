"""What the command line was given about a claim becomes values: what is claimed, described, wanted or asked for."""

from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.choices import DPSGD, Adjacency, StatedClaim, TrainingClaim
from auditor.commands.arguments import names
from auditor.commands.options import MethodOption
from auditor.errors import InputError
from auditor.training import FixedSizeSampling, PoissonSampling
from auditor.values import Claim

__all__ = ["claim", "false_positive_rates", "more_claims", "needed_delta", "parameter", "training", "wanted"]


def claim(
    claim_epsilon: float | None,
    claim_delta: float | None,
    claim_adjacency: Adjacency | None,
    noise_multiplier: float | None,
    sampling_rate: float | None,
    steps: int | None,
    schedule: Path | None = None,
    *,
    fixed_size: bool = False,
) -> TrainingClaim | None:
    """Return one claim or none: stated in epsilon and delta, or as a DP-SGD description."""
    stated: dict[str, Any] = {
        "--claim-epsilon": claim_epsilon,
        "--claim-delta": claim_delta,
        "--claim-adjacency": claim_adjacency,
    }
    trained: dict[str, Any] = {
        "--noise-multiplier": noise_multiplier,
        "--sampling-rate": sampling_rate,
        "--steps": steps,
        "--schedule": schedule,
        "--fixed-size": fixed_size or None,
    }
    by_words = {name for name, value in stated.items() if value is not None}
    by_training = {name for name, value in trained.items() if value is not None}
    if by_words and by_training:
        raise InputError(
            f"one claim at a time: {', '.join(sorted(by_words))} states an epsilon and"
            f" {', '.join(sorted(by_training))} describes DP-SGD; give one of the two."
        )
    if by_training:
        return training(noise_multiplier, sampling_rate, steps, schedule, fixed_size=fixed_size)
    if by_words:
        missing = [name for name in ("--claim-epsilon", "--claim-delta") if stated[name] is None]
        if missing:
            raise InputError(
                f"a stated claim needs --claim-epsilon and --claim-delta (0 for pure differential privacy);"
                f" missing: {', '.join(missing)}."
            )
        epsilon, delta, adjacency = stated.values()
        return StatedClaim(epsilon, delta, adjacency or Adjacency.ADD_REMOVE)
    return None


def training(
    noise_multiplier: float | None,
    sampling_rate: float | None,
    steps: int | None,
    schedule: Path | None,
    *,
    fixed_size: bool,
) -> DPSGD:
    """Return a DP-SGD description: three numbers for all steps, or a table of steps."""
    sampling = FixedSizeSampling() if fixed_size else PoissonSampling()
    numbers = {"--noise-multiplier": noise_multiplier, "--sampling-rate": sampling_rate, "--steps": steps}
    missing = [name for name, value in numbers.items() if value is None]
    if schedule is not None:
        if len(missing) < len(numbers):
            there = ", ".join(name for name in numbers if name not in missing)
            raise InputError(
                f"--schedule describes every step, so it cannot stand beside {there}; give one of the two."
            )
        from auditor.collectors import read_schedule

        return read_schedule(schedule, sampling=sampling)
    if missing:
        raise InputError(
            f"a DP-SGD description needs {', '.join(numbers)}, or --schedule; missing: {', '.join(missing)}."
        )
    return DPSGD(noise_multiplier, sampling_rate, steps, sampling=sampling)


def false_positive_rates(text: str) -> tuple[float, ...]:
    """Return the rates between the commas, each once."""
    rates = [_validate.fraction("--fpr", rate, one=True) for rate in names("--fpr", text)]
    # Six digits, as the names of the quantities show them.
    return tuple(dict.fromkeys(float(f"{rate:g}") for rate in rates))


def more_claims(
    described: DPSGD,
    *,
    delta: float,
    compositions: bool,
    runs: int | None,
    seed: int,
    progress: Any,
) -> tuple[Claim, ...]:
    """Return what was asked for beyond the overview: every composition theorem, and the advantage by simulation."""
    import numpy as np

    from auditor import theory

    found: list[Claim] = []
    rng = np.random.default_rng(_validate.at_least("--seed", seed, least=0))
    for adjacency in Adjacency:
        if compositions:
            found += theory.compare_compositions(described, delta=delta, adjacency=adjacency)
        if runs is not None:
            samples = _validate.at_least("--monte-carlo", runs, least=2)
            found.append(
                theory.total_variation_monte_carlo(
                    described, adjacency=adjacency, samples=samples, rng=rng, progress=progress
                )
            )
    return tuple(found)


def needed_delta(delta: float | None, claim: TrainingClaim | None) -> float:
    """Return delta, where no number of training records could give one."""
    if delta is not None:
        return delta
    if isinstance(claim, StatedClaim):
        return claim.delta
    raise InputError("--delta is needed: give the delta to state epsilon at, or a claim with its own.")


def wanted(
    adjacency: Adjacency | None,
    *,
    advantage: float | None,
    bayes_security: float | None,
    epsilon: float | None,
    delta: float | None,
    tpr: float | None,
    at_fpr: float | None,
) -> Any:
    """Return the one promise that is wanted."""
    from auditor import theory

    wishes = {
        "--advantage": advantage,
        "--bayes-security": bayes_security,
        "--epsilon": epsilon,
        "--tpr": tpr,
    }
    made = [name for name, value in wishes.items() if value is not None]
    if len(made) != 1:
        raise InputError(
            f"one wish at a time: give one of {', '.join(wishes)}, got {', '.join(made) or 'none'}."
        )
    for wish, beside, value in (("--epsilon", "--delta", delta), ("--tpr", "--at-fpr", at_fpr)):
        if (wish in made) != (value is not None):
            raise InputError(f"{wish} and {beside} go together: give both or neither.")
    chosen: dict[str, Any] = {} if adjacency is None else {"adjacency": adjacency}
    if advantage is not None:
        return theory.WantedAdvantage(advantage, **chosen)
    if bayes_security is not None:
        return theory.WantedBayesSecurity(bayes_security, **chosen)
    if epsilon is not None and delta is not None:
        return theory.WantedEpsilon(epsilon, delta, **chosen)
    rates: dict[str, Any] = {"most": tpr, "at_fpr": at_fpr}
    return theory.WantedTPR(**rates, **chosen)


def parameter(
    target: Any,
    noise_multiplier: float | None,
    sampling_rate: float | None,
    steps: int | None,
    *,
    fixed_size: bool,
    method: MethodOption,
) -> Any:
    """Return the parameter that was left out, found for the promise."""
    from auditor import theory

    methods = {
        MethodOption.EXACT: theory.Exact(),
        MethodOption.CLOSED_FORM: theory.Corollary7(),
        MethodOption.MOMENT_MATCHED: theory.MomentMatched(),
    }
    given = {"noise_multiplier": noise_multiplier, "sampling_rate": sampling_rate, "steps": steps}
    there: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if len(there) != 2:  # noqa: PLR2004
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"give two of {options}, and the third is found; got {len(there)}.")
    finders: dict[str, Any] = {
        "noise_multiplier": theory.noise_multiplier_for,
        "sampling_rate": theory.sampling_rate_for,
        "steps": theory.steps_for,
    }
    finder = next(finders[name] for name in given if name not in there)
    sampling = FixedSizeSampling() if fixed_size else PoissonSampling()
    return finder(target, **there, sampling=sampling, method=methods[method])
