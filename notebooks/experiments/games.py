"""The membership games of Mahloujifar et al. 2022 on one-hot logistic regression (Appendices H and I).

A model is trained by DP-SGD on records that are 1 in one coordinate and 0 elsewhere, and an attacker looks at one
coordinate of the model. `play` is a task for ``experiments.grid.run_all``.

A record moves its own coordinate only, and its gradient is clipped by itself, so the watched coordinate has the same law
whether the others are trained or not. ``whole=True`` trains them all, as the paper did; ``whole=False`` is the shortcut.
A game with the final model (YFM, OFM) and the one with all gradients (YIG, OIG) are played together: the attacks differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from experiments.gaussian import log_ratio

__all__ = ["ATTACKS", "GAMES", "OneHot", "final_model_advantage", "play", "simulate"]

Case = Mapping[str, Any]

# Who chooses the records, and which two worlds are told apart.
GAMES = {
    "yeom": "Yeom et al.: the training set is drawn; a member or a fresh record is looked at",
    "ours": "the paper's: the attacker picks the others and two records on coordinates of their own, and looks at one",
    "opposite": "the paper's, played harder: the two records share a coordinate and have opposite labels",
}
ATTACKS = {
    "final": "final model (FMA)",
    "iterates": "majority over all models (IMA, read as cumulative)",
    "gradients": "majority over all noisy gradients (IMA, read as steps)",
    "likelihood": "likelihood of all noisy gradients",
}


@dataclass(frozen=True)
class OneHot:
    """The problem of Appendix I.

    Attributes:
        dimension: Number of coordinates d; a record is 1 in one of them, and its label is a fixed function of which.
        noise_multiplier: Standard deviation of the noise over the clipping norm.
        sampling_rate: Each record is in each batch with this probability.
        epochs: Steps times sampling rate.
        records: Size of the training set.
        clipping_norm: Largest norm of one record's gradient.
        learning_rate: Step size for the sum of the clipped gradients.
    """

    dimension: int
    noise_multiplier: float
    sampling_rate: float
    epochs: int
    records: int = 1_000
    clipping_norm: float = 0.1
    learning_rate: float = 0.001

    @property
    def steps(self) -> int:
        """Number of steps."""
        return round(self.epochs / self.sampling_rate)


def play(case: Case, seed: int) -> dict[str, Any]:
    """Play one game many times and count how often each attack wins.

    Args:
        case: ``game`` (a key of ``GAMES``), ``games`` (how often), ``whole`` (train every coordinate, one model for each
            game), and the fields of `OneHot`.
        seed: Of the coins, the training sets and the noise.

    Returns:
        ``games``; ``won_<attack>`` for each of ``ATTACKS``; and for each but the final-model attack ``ahead_<attack>``, the
        games that it won and the final-model attack lost, and ``behind_<attack>``, the other way round.
    """
    fields = {name: value for name, value in case.items() if name not in {"game", "games", "whole", "block"}}
    problem, rng = OneHot(**fields), np.random.default_rng(seed)
    member, guesses = simulate(problem, game=case["game"], games=case["games"], whole=case["whole"], rng=rng)
    right = {name: guess == member for name, guess in guesses.items()}
    counts = {f"won_{name}": int(won.sum()) for name, won in right.items()}
    final = right.pop("final")
    for name, won in right.items():
        counts[f"ahead_{name}"] = int((won & ~final).sum())
        counts[f"behind_{name}"] = int((final & ~won).sum())
    return {"games": case["games"], **counts}


def final_model_advantage(problem: OneHot, *, game: str) -> float:
    """Return the advantage of the paper's final-model attack in closed form, for the games "yeom" and "ours".

    The watched coordinate is a binomial number of moves, of a binomial number of records, plus normal noise.

    Args:
        problem: Data and training.
        game: "yeom" or "ours".
    """
    from scipy.special import ndtr
    from scipy.stats import binom

    steps, spread = problem.steps, problem.noise_multiplier * np.sqrt(problem.steps)
    cut = steps * _middle(problem, game)
    without, with_it = _records_on_coordinate(problem, game)
    accused = []
    for records in range(len(without)):
        drawn = np.arange(records * steps + 1)
        share = binom.pmf(drawn, records * steps, problem.sampling_rate)
        accused.append(float(share @ ndtr((drawn - cut) / spread)))
    return float((with_it - without) @ accused)


def simulate(
    problem: OneHot, *, game: str, games: int, whole: bool, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Play a game many times.

    Args:
        problem: Data and training.
        game: A key of ``GAMES``.
        games: How often.
        whole: Whether every coordinate is trained, or the watched one only, which has the same law.
        rng: Source of all randomness.

    Returns:
        Shape (games,) each: the challenger's bit b, and the guess of each attack.
    """
    member = rng.integers(0, 2, games) == 1
    watcher = _watcher(problem, game, games)
    if whole:
        for index in range(games):
            _train(problem, game, member=member[index], watcher=watcher.only(index), rng=rng)
    else:
        _watched(problem, game, member, watcher=watcher, rng=rng)
    return member, watcher.guesses()


@dataclass(frozen=True)
class _Watcher:
    """What the attacks add up, step by step, from the noisy gradients of the watched coordinate.

    Attributes:
        problem: Data and training.
        game: A key of ``GAMES``.
        tally: The rows are: the sum of the moves (the model, in units of clipping norm times learning rate, positive
            towards the record's label), votes of the models, and votes of the moves.
        likelihood: Log-likelihood of all moves if k = 0, 1, ... records are on the coordinate, a row for each k, less that
            of k = 0. Where the records have opposite labels: of the one record less that of the other, in row 1.
    """

    problem: OneHot
    game: str
    tally: np.ndarray
    likelihood: np.ndarray

    def only(self, index: int) -> "_Watcher":
        part = slice(index, index + 1)
        return _Watcher(self.problem, self.game, self.tally[:, part], self.likelihood[:, part])

    def __call__(self, step: int, move: np.ndarray) -> None:
        """Take in the move of step number ``step``, counted from 1."""
        noise, q = self.problem.noise_multiplier, self.problem.sampling_rate
        middle = _middle(self.problem, self.game)
        self.tally[0] += move
        self.tally[1] += np.sign(self.tally[0] - step * middle)
        self.tally[2] += np.sign(move - middle)
        if self.game == "yeom":
            self.likelihood[1:] += _log_ratios(move, noise=noise, rate=q, most=len(self.likelihood) - 1)
            return
        self.likelihood[1] += log_ratio(move, noise=noise, rate=q)
        if self.game == "opposite":
            self.likelihood[1] -= log_ratio(-move, noise=noise, rate=q)

    def guesses(self) -> dict[str, np.ndarray]:
        model, votes, moves = self.tally
        final = model > self.problem.steps * _middle(self.problem, self.game)
        # An even vote is decided by the final model.
        iterates = np.where(votes == 0, final, votes > 0)
        gradients = np.where(moves == 0, final, moves > 0)
        return {"final": final, "iterates": iterates, "gradients": gradients, "likelihood": self.ratio() > 0}

    def ratio(self) -> np.ndarray:
        """Return the log-likelihood ratio of all moves: the number of records is not known, so each world is a mixture."""
        from scipy.special import logsumexp

        if self.game == "opposite":
            return self.likelihood[1]
        without, with_it = _records_on_coordinate(self.problem, self.game)
        worlds = [logsumexp(self.likelihood, axis=0, b=share[:, None]) for share in (with_it, without)]
        return worlds[0] - worlds[1]


def _watcher(problem: OneHot, game: str, games: int) -> _Watcher:
    """Return a watcher of so many games that has seen nothing."""
    rows = 2 if game == "opposite" else len(_records_on_coordinate(problem, game)[0])
    return _Watcher(problem, game, np.zeros((3, games)), np.zeros((rows, games)))


def _middle(problem: OneHot, game: str) -> float:
    """The paper's threshold for one step, q/2 + n q/d, in units of the clipping norm.

    Where the attacker picked the other records, none of them shares the coordinate; and where the two records have
    opposite labels the middle is 0.
    """
    q, shared = problem.sampling_rate, problem.records / problem.dimension
    return {"yeom": q / 2 + shared * q, "ours": q / 2, "opposite": 0.0}[game]


def _records_on_coordinate(problem: OneHot, game: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely k = 0, 1, ... records are on the watched coordinate, for a fresh record and for a member.

    In "yeom" the others are there by chance, as many as a binomial law says; it is cut where 1e-6 is left.
    """
    from scipy.stats import binom

    if game != "yeom":
        return np.array([1.0, 0.0]), np.array([0.0, 1.0])
    chance = 1 / problem.dimension
    others = np.arange(int(binom.isf(1e-6, problem.records, chance)) + 1)
    fresh = binom.pmf(np.append(others, others[-1] + 1), problem.records, chance)
    return fresh, np.append(0.0, binom.pmf(others, problem.records - 1, chance))


def _log_ratios(move: np.ndarray, *, noise: float, rate: float, most: int) -> np.ndarray:
    """Return the log-likelihood ratio of one noisy sum for k = 1, ..., ``most`` records against none, a row for each k."""
    # Row j: the density with j records in the batch over that with none, exp((2 j x - j^2)/(2 s^2)), by one factor a row.
    tilt = np.ones((most + 1, move.size))
    factor = np.exp(move / noise**2)
    for drawn in range(1, most + 1):
        tilt[drawn] = tilt[drawn - 1] * factor * np.exp((1 - 2 * drawn) / (2 * noise**2))
    return np.log(_batch_law(most, rate) @ tilt)


@cache
def _batch_law(most: int, rate: float) -> np.ndarray:
    """Return how likely j = 0, ..., ``most`` of k = 1, ..., ``most`` records are in a batch; k counts rows."""
    from scipy.stats import binom

    return binom.pmf(np.arange(most + 1), np.arange(1, most + 1)[:, None], rate)


def _watched(
    problem: OneHot, game: str, member: np.ndarray, *, watcher: _Watcher, rng: np.random.Generator
) -> None:
    """Train the watched coordinate only, of many models at once."""
    others = np.zeros(member.size, dtype=np.int64)
    if game == "yeom":
        others = rng.binomial(problem.records - member, 1 / problem.dimension)
    holds = others + (member | (game == "opposite"))
    label = np.where(member | (game != "opposite"), 1, 0)
    weight = np.zeros(member.size)
    for step in range(1, problem.steps + 1):
        move = rng.binomial(holds, problem.sampling_rate) * _pull(weight, label, problem)
        move += rng.normal(0.0, problem.noise_multiplier, member.size)
        weight += problem.learning_rate * problem.clipping_norm * move
        watcher(step, move)


def _train(problem: OneHot, game: str, *, member: bool, watcher: _Watcher, rng: np.random.Generator) -> None:
    """Train a whole model by DP-SGD (Algorithm 2) and show the attacker the watched coordinate after every step."""
    target, place, labels, sign = _training_set(problem, game, member=member, rng=rng)
    weights = np.zeros(problem.dimension)
    scale = problem.learning_rate * problem.clipping_norm
    for step in range(1, problem.steps + 1):
        drawn = np.flatnonzero(rng.random(place.size) < problem.sampling_rate)
        moves = rng.normal(0.0, problem.noise_multiplier, problem.dimension)
        np.add.at(moves, place[drawn], _pull(weights[place[drawn]], labels[drawn], problem))
        weights += scale * moves
        watcher(step, sign * moves[target : target + 1])


def _training_set(
    problem: OneHot, game: str, *, member: bool, rng: np.random.Generator
) -> tuple[int, np.ndarray, np.ndarray, float]:
    """Return the watched coordinate, the coordinate and label of each record, and the sign of the watched label.

    The label function is random; the attacker knows it and turns the coordinate by that sign.
    """
    d, n = problem.dimension, problem.records
    function = rng.integers(0, 2, d)
    target = int(rng.integers(d))
    if game == "yeom":
        place = rng.integers(0, d, n)
        # A member drawn at random is as good as the first, and its coordinate is uniform.
        place[0] = target if member else place[0]
    else:
        # Nobody else is on the coordinates of the two records that the attacker picked.
        place = (target + 2 + rng.integers(0, d - 2, n)) % d
        place[0] = target if member or game == "opposite" else (target + 1) % d
    labels = function[place]
    if game == "opposite" and not member:
        labels[0] = 1 - labels[0]
    return target, place, labels, 1.0 if function[target] else -1.0


def _pull(weight: np.ndarray, label: np.ndarray, problem: OneHot) -> np.ndarray:
    """Return minus the clipped gradient of the logistic loss, in units of the clipping norm."""
    away = label - 1 / (1 + np.exp(-weight))
    return np.clip(away / problem.clipping_norm, -1.0, 1.0)
