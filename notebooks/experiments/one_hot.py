"""Tables for Appendix I of Mahloujifar et al. 2022: what attacks reached in the games, beside what nobody can exceed.

Intervals and tests are made for all lines of a table together (Bonferroni), so that in 95% of tables every one holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from auditor import DPSGD
from experiments import games, gaussian
from experiments.membership import ALPHA, REPLACED, bound, training_of

__all__ = [
    "OF_A_GAME",
    "added_up",
    "cases_of_games",
    "final_model_gaps",
    "one_hot_table",
    "paired_table",
    "same_law",
    "side_by_side",
    "told_apart",
]

Case = Mapping[str, Any]
OF_A_GAME = ["game", "dimension", "sampling_rate", "epochs", "noise_multiplier"]


def cases_of_games(
    plan: Sequence[tuple[str, int, float, int, int]],
    *,
    noises: Sequence[float],
    whole: bool,
    block: int | None,
) -> list[Case]:
    """Return the cases of Appendix I, for each noise.

    Args:
        plan: Game, dimension, sampling rate, epochs, and how many games.
        noises: Noise multipliers.
        whole: Whether whole models are trained, or the watched coordinate only.
        block: Games of one case; None for all of them.
    """
    cases: list[Case] = []
    for game, dimension, rate, epochs, count in plan:
        case = {"game": game, "dimension": dimension, "sampling_rate": rate, "epochs": epochs, "whole": whole}
        size = block or count
        for noise in noises:
            numbers = range(count // size)
            cases += [
                case | {"noise_multiplier": noise, "games": size, "block": number} for number in numbers
            ]
    return cases


def added_up(cases: Sequence[Case], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a line for each setting of Appendix I: games, games won and paired counts, blocks of games added up."""
    blocks = pd.DataFrame([{**case, **result} for case, result in zip(cases, results, strict=True)])
    counts = [name for name in blocks if name == "games" or name.startswith(("won_", "ahead_", "behind_"))]
    return blocks.groupby(OF_A_GAME, as_index=False)[counts].sum()


def one_hot_table(settings: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each attack in each of the settings that `added_up` gives, beside both bounds."""
    rows, level = [], 1 - ALPHA / (len(settings) * len(games.ATTACKS))
    for line in settings.to_dict("records"):
        run = training_of(line)
        limits = {"added": bound(run), "replaced": bound(run, REPLACED)}
        for attack in games.ATTACKS:
            found = gaussian.advantage(line[f"won_{attack}"], games=line["games"], confidence=level)
            reached = {"attack": found.value, "lower": found.lower, "upper": found.upper}
            rows.append({name: line[name] for name in OF_A_GAME} | {"by": attack} | reached | limits)
    return pd.DataFrame(rows)


def paired_table(settings: pd.DataFrame) -> pd.DataFrame:
    """Return how much more advantage each attack has than the final-model attack in the same games.

    ``shown`` is McNemar's exact test, at 95% for all lines together: 1 better, -1 worse, 0 not told apart. ``z`` is its
    normal approximation.
    """
    from scipy.stats import binomtest

    others = [attack for attack in games.ATTACKS if attack != "final"]
    rows, level = [], ALPHA / (len(settings) * len(others))
    for line in settings.to_dict("records"):
        for attack in others:
            ahead, behind = int(line[f"ahead_{attack}"]), int(line[f"behind_{attack}"])
            net, apart = ahead - behind, max(ahead + behind, 1)
            shown = np.sign(net) if ahead + behind and binomtest(ahead, apart).pvalue < level else 0
            found = {"more": 2 * net / line["games"], "z": net / apart**0.5, "shown": int(shown)}
            rows.append({name: line[name] for name in OF_A_GAME} | {"by": attack} | found)
    return pd.DataFrame(rows)


def same_law(alone: pd.DataFrame, whole: pd.DataFrame) -> str:
    """Say whether whole models and the watched coordinate alone gave attacks the same share of wins (Fisher's test)."""
    from scipy.stats import fisher_exact

    both = whole.merge(alone, on=OF_A_GAME, suffixes=("_whole", "_alone"))
    values = []
    for line in both.to_dict("records"):
        for attack in games.ATTACKS:
            won = [line[f"won_{attack}_{kind}"] for kind in ("whole", "alone")]
            lost = [line[f"games_{kind}"] - w for kind, w in zip(("whole", "alone"), won, strict=True)]
            values.append(fisher_exact([won, lost]).pvalue)
    apart = sum(value < ALPHA / len(values) for value in values)
    return f"{whole.games.sum():,} whole models: {apart} of {len(values)} shares of wins are shown to differ from the coordinate's"


def side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Return what `one_hot_table` gives with a column for each game and attack, as texts with intervals."""
    short = {
        "final": "FM final",
        "iterates": "IG models",
        "gradients": "IG steps",
        "likelihood": "IG likelihood",
    }
    texts = table.assign(
        column=table.game.map({"yeom": "Y", "ours": "O"}) + table.by.map(short),
        text=[f"{line.attack:.3f} [{line.lower:.3f}, {line.upper:.3f}]" for line in table.itertuples()],
        bound=table.added.round(4),
    )
    wide = texts.pivot_table(
        index=[*OF_A_GAME[1:], "bound"], columns="column", values="text", aggfunc="first"
    )
    return wide[[game + attack for attack in short.values() for game in "YO"]]


def told_apart(paired: pd.DataFrame) -> pd.DataFrame:
    """Return, for each attack and sampling rate, in how many settings `paired_table` shows a difference, and where."""
    rows = []
    for (attack, q), part in paired.groupby(["by", "sampling_rate"], sort=False):
        line = {"attack": games.ATTACKS[attack], "q": q, "settings": len(part)}
        for word, sign in (("better", 1), ("worse", -1)):
            shown = part[part.shown == sign].noise_multiplier
            line |= {f"shown {word}": len(shown), f"{word} at noise": sorted(set(shown))}
        rows.append(line)
    return pd.DataFrame(rows)


def final_model_gaps(*, dimensions: Sequence[int], noises: Sequence[float]) -> pd.DataFrame:
    """Return the bound less the final-model attack in YFM, both in closed form, for q = 0.1 and 5 epochs."""
    gaps = [
        [
            bound(DPSGD(s, 0.1, 50)) - games.final_model_advantage(games.OneHot(d, s, 0.1, 5), game="yeom")
            for s in noises
        ]
        for d in dimensions
    ]
    return pd.DataFrame(gaps, index=dimensions, columns=noises)
