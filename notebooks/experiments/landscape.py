"""Train the published grid of strategies (`experiments.strategies`), and audit every model.

From the command line, in the folder of the notebooks, with the environment variables of `experiments.dp_training.DATA`
and results in the folder that RUNS names (where the notebook with FULL=1 finds them)::

    ADULT=/path/to/adult python -m experiments.landscape adult --workers 2
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from shared import runs_folder

import auditor
from experiments.dp_training import records_of, seconds_of_steps, train
from experiments.grid import run_all
from experiments.guarantee import guarantee
from experiments.strategies import (
    GRIDS,
    Strategy,
    adult_grid,
    location30_grid,
    purchase100_grid,
    small_grid,
    strategy_of,
)

__all__ = [
    "Strategy",
    "adult_grid",
    "audit_of",
    "audits",
    "cases",
    "folder_of",
    "location30_grid",
    "purchase100_grid",
    "run",
    "seconds_estimate",
    "small_grid",
    "strategy_of",
    "table",
]

# Processes at once, unless said otherwise: one takes up to 1.5 GB on Adult, about half of it TensorFlow itself.
_WORKERS = 2
# Data whose training set `experiments.records.random_split` draws.
SPLIT_HERE = ("location30", "purchase100")


def cases(strategies: Iterable[Strategy], *, repeats: int = 5) -> list[dict[str, Any]]:
    """Return the settings of all models, one repeat of every strategy before the next repeat of any.

    Args:
        strategies: Ways to train.
        repeats: Models of each.
    """
    listed = list(strategies)
    return [strategy.case(repeat=repeat) for repeat in range(repeats) for strategy in listed]


def folder_of(data: str) -> Path:
    """Return where the results of a grid are kept: in the folder that RUNS names, by default ``runs``."""
    return runs_folder(f"landscape-{data}")


def run(
    strategies: Iterable[Strategy],
    *,
    repeats: int = 5,
    folder: str | Path | None = None,
    workers: int = _WORKERS,
    verbose: int = 0,
) -> list[Mapping[str, Any]]:
    """Train all models, each kept in the folder as soon as it is there and not trained again.

    Args:
        strategies: Ways to train.
        repeats: Models of each.
        folder: Of the results.
        workers: Processes at once, at most.
        verbose: As for `experiments.grid.run_all`.

    Returns:
        A flat mapping for each model: its case's values and its results.
    """
    settings = cases(strategies, repeats=repeats)
    results = run_all(train, settings, folder=folder, workers=workers, verbose=verbose)
    return [{**setting, **result} for setting, result in zip(settings, results, strict=True)]


def seconds_estimate(strategies: Iterable[Strategy], *, repeats: int = 5, workers: int = _WORKERS) -> float:
    """Return about how many seconds all models take here, from some timed steps of each kind and one search for noise.

    Args:
        strategies: Ways to train; on data that are there.
        repeats: Models of each.
        workers: Processes at once, at most one for each core.
    """
    listed = list(strategies)
    kinds = {_step_kind(strategy): strategy for strategy in listed}
    measured = {kind: seconds_of_steps(strategy.case(repeat=0)) for kind, strategy in kinds.items()}
    total = 0.0
    for strategy in listed:
        before, step = measured[_step_kind(strategy)]
        total += before + step * strategy.epochs * (_records(strategy) // strategy.batch)
    processes = min(workers, joblib.cpu_count())
    return repeats * total / processes + _search_seconds(listed)


def _step_kind(strategy: Strategy) -> tuple[Any, ...]:
    return strategy.data, strategy.batch, strategy.microbatches, strategy.hidden


def _records(strategy: Strategy) -> int:
    return len(records_of(strategy.case(repeat=0)).y_train)


def _search_seconds(strategies: Sequence[Strategy]) -> float:
    """Return what the searches for noise take, which every process makes: as many as there are, each like the first."""
    private = {
        (item.epsilon, item.batch, item.epochs): item for item in strategies if item.epsilon is not None
    }
    for item in private.values():
        started = time.perf_counter()
        guarantee(
            epsilon=float(item.epsilon or 0),
            records=_records(item),
            batch=item.batch,
            microbatches=int(item.microbatches or 1),
            epochs=item.epochs,
        )
        return len(private) * (time.perf_counter() - started)
    return 0.0


def audits(results: Iterable[Mapping[str, Any]], **choices: Any) -> list[auditor.AuditResult]:
    """Audit every model that did not diverge, for `auditor.comparison.compare_audits`.

    Args:
        results: Of `run`.
        choices: More arguments of `auditor.audit`.
    """
    return [audit_of(result, **choices) for result in results if not result["diverged"]]


def audit_of(result: Mapping[str, Any], **choices: Any) -> auditor.AuditResult:
    """Audit one model at the paper's delta, beside the epsilon that was trained to.

    The members count as a sample (`auditor.Sample`): a bound above 0 is then evidence that the model treats them
    differently. With ``coverage=auditor.Census()`` the bound is about this very training set, whose extremes differ from
    the population's even under a model that learnt nothing. Where the training set was drawn here at random (Location-30,
    Purchase-100), the audit says so and judges the claim; who drew Adult's is UCI's word.

    Args:
        result: Of `run`.
        choices: More arguments of `auditor.audit`.
    """
    strategy = strategy_of(result)
    claim = None if strategy.epsilon is None else auditor.StatedClaim(strategy.epsilon, result["delta"])
    losses = auditor.Losses(
        member=result["member_loss"], nonmember=result["nonmember_loss"], scale=auditor.LossScale.LOG_ODDS
    )
    settings: dict[str, Any] = {
        "delta": result["delta"],
        "split": auditor.RandomSplit() if strategy.data in SPLIT_HERE else auditor.UnknownSplit(),
        "claim": claim,
        "strategy": strategy.name,
        "model": f"{strategy.name}, model {int(result['repeat']) + 1}",
        "utility": auditor.Utility(float(result["utility"]), str(result["utility_name"])),
        "source": str(result["source"]),
    }
    return auditor.audit(losses, **{**settings, **choices})


def table(results: Sequence[Mapping[str, Any]], audited: Sequence[auditor.AuditResult]) -> Any:
    """Return one line for each model: its strategy, utility, Epsilon*, certified bound and what was promised.

    Args:
        results: Of `run`.
        audited: Of `audits`, of the same results.
    """
    import pandas as pd

    kept = [result for result in results if not result["diverged"]]
    lines = []
    for result, audit in zip(kept, audited, strict=True):
        strategy = strategy_of(result)
        lines.append(
            {
                "strategy": strategy.name,
                "kind": strategy.kind,
                "repeat": result["repeat"],
                "epsilon_star": audit.estimate("epsilon_star.gaussian").value,
                "empirical": audit.estimate("epsilon_star.empirical").value,
                "certified": audit.estimate("epsilon_bound.clopper_pearson").value,
                "auc": audit.estimate("auc").value,
                "utility": result["utility"],
                "train_accuracy": result["train_accuracy"],
                "stated": result["epsilon_stated"],
                "corrected": result["epsilon_corrected"],
                "shuffled": result["epsilon_shuffled"],
                "noise_multiplier": result["noise_multiplier"],
            }
        )
    return pd.DataFrame(lines).replace({np.inf: np.nan})


def main() -> None:
    """Train the published grids that are asked for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("data", nargs="+", choices=sorted(GRIDS))
    parser.add_argument("--repeats", type=int, default=5, help="models of each strategy")
    parser.add_argument("--workers", type=int, default=None, help="processes at once")
    asked = parser.parse_args()
    for data in asked.data:
        run(
            GRIDS[data](),
            repeats=asked.repeats,
            folder=folder_of(data),
            workers=asked.workers,
            verbose=10,
        )


if __name__ == "__main__":
    main()
