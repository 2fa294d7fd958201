"""The figures of the notebook on Bayes security, and the numbers that only they need."""

import math
import time
from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import erfinv
from scipy.stats import norm
from shared import ACCENT, INK, MUTED, NEUTRAL, finish

from auditor import DPSGD, Adjacency, theory
from auditor.results import Claim

__all__ = [
    "analyses",
    "attribute_security",
    "costs",
    "excess",
    "humphries_bounds",
    "one_step",
    "one_step_error",
    "over_epochs",
    "parameters",
    "prices",
    "rates",
    "securities",
    "security_and_accuracy",
]

Floats = npt.NDArray[np.float64]
_FORMS = {
    "Corollary 7": {"color": NEUTRAL, "ls": "--"},
    "moment-matched": {"color": INK, "ls": ":"},
    "exact": {"color": ACCENT},
}
_DARK = 0.2  # of a field, from which on its number is white


def securities(training: DPSGD) -> tuple[float, float, float]:
    """Return the Bayes security against membership inference: as published, moment-matched, exact."""
    closed, matched = (
        theory.bayes_security_closed_form(training),
        theory.bayes_security_moment_matched(training),
    )
    return closed.value, matched.value, 1 - theory.total_variation(training).value


def one_step_error(ratio: float, noise: float) -> float:
    """Return the total variation between one step's mixture and its stand-in, by integration."""
    x, rate = np.linspace(-10 * noise, 1 + 10 * noise, 20_001), ratio * noise
    mixture = (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)
    return float(np.abs(mixture - norm.pdf(x, rate, noise)).sum() * (x[1] - x[0]) / 2)


def one_step(ratios: Floats, *, at_one: float) -> None:
    """Draw Figure 2: the error of the stand-in for one step, at three noises.

    Args:
        ratios: Sampling rates over noise multipliers.
        at_one: The error at noise 1 and ratio 0.001.
    """
    figure, axis = plt.subplots()
    for noise, colour in ((0.25, NEUTRAL), (1.0, ACCENT), (4.0, INK)):
        errors = [one_step_error(ratio, noise) for ratio in ratios]
        axis.loglog(ratios, errors, "o-", color=colour, ms=4, label=f"noise {noise:g}")
    axis.axhline(1e-4, color=MUTED, ls=":")
    axis.axvline(1e-3, color=MUTED, ls=":", label="the paper's ratio and error")
    axis.set(xlabel="sampling rate / noise multiplier", ylabel="total variation of one step and its stand-in")
    finish(figure, f"At ratio 0.001 and noise 1 the error is {at_one:.1e}, not below 1e-4", columns=4)


def parameters(*, steps: int) -> None:
    """Draw Figure 3: the largest sampling rate at each noise, by Equation 4 and by the moment-matched form.

    Args:
        steps: Of the training.
    """
    figure, axis = plt.subplots()
    noises = np.geomspace(0.4, 4, 40)
    for wanted, colour in ((0.9, NEUTRAL), (0.95, MUTED), (0.98, ACCENT), (0.99, INK)):
        for share, line in ((noises**-2.0, "-"), (np.sinh(noises**-2.0), "--")):
            found = erfinv(1 - wanted) * np.sqrt(2 / (steps * share))
            axis.loglog(noises, found, line, color=colour)
        axis.annotate(f"beta* {wanted}", (4.1, found[-1]), color=colour, va="center", annotation_clip=False)
    axis.plot([], [], "-", color=MUTED, label="Equation 4")
    axis.plot([], [], "--", color=MUTED, label="moment-matched")
    axis.set(xlabel="noise multiplier", ylabel=f"largest sampling rate, {steps:,} steps", xlim=(0.38, 5.2))
    axis.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    axis.minorticks_off()
    finish(figure, "Below noise 1 Equation 4 allows sampling rates that do not keep its promise")


def excess(found: Floats, *, rates: Sequence[float], epochs: Sequence[int], noises: Sequence[float]) -> None:
    """Draw Figures 4 and 10: how much more beta* Corollary 7 promises than there is.

    Args:
        found: Shape (rates, epochs, noises).
        rates: Sampling rates.
        epochs: Rates times steps.
        noises: Noise multipliers.
    """
    figure, grid = plt.subplots(2, 3, figsize=(8, 5.4), sharex=True, sharey=True)
    for panel, rate, values in zip(grid.flat, rates, found, strict=False):
        picture = panel.imshow(values, vmin=0, vmax=0.4, aspect="auto")
        panel.grid(visible=False)
        panel.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])
        panel.set_yticks(range(len(epochs)), epochs)
        panel.tick_params(labelbottom=True)
        panel.set_title(f"rate {rate:g}")
        for (row, column), value in np.ndenumerate(values):
            words, colour = (f"{value:.2f}" if value >= 0.01 else ""), "white" if value > _DARK else INK
            panel.text(column, row, words, ha="center", va="center", fontsize=9, color=colour)
    last = grid[-1, -1]
    last.set_axis_off()
    for panel in grid[:, 0]:
        panel.set_ylabel("epochs (rate x steps)")
    for panel in (*grid[-1, :-1], grid[0, -1]):
        panel.set_xlabel("noise multiplier")
    scale = last.inset_axes((0.05, 0.5, 0.9, 0.1))
    figure.colorbar(picture, cax=scale, orientation="horizontal", label="promised less exact beta*")
    finish(
        figure, "In every one of these settings Corollary 7 promises too much, at little noise far too much"
    )


def over_epochs(*, rate: float, noises: tuple[float, float]) -> None:
    """Draw the three forms as training goes on.

    Args:
        rate: Sampling rate.
        noises: Noise multipliers, one for each panel.
    """
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.8))
    epochs = range(1, 101, 3)
    for panel, noise in zip(panels, noises, strict=True):
        curves = np.array([securities(DPSGD(noise, rate, round(count / rate))) for count in epochs])
        for form, (name, look) in enumerate(_FORMS.items()):
            panel.plot(epochs, curves[:, form], label=name, **look)
        panel.set(title=f"noise {noise:g}, rate {rate:g}", xlabel="epochs")
    panels[0].set_ylabel("beta* (membership)")
    finish(figure, "Corollary 7 drifts to the unsafe side; the moment-matched form stays on the safe one")


def by_accountant(run: DPSGD) -> float:
    """Return an upper bound on the advantage by dp_accounting, for added records: its delta at epsilon 0."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_gaussian_mechanism(run.noise_multiplier, sampling_prob=run.sampling_rate)
    return float(step.self_compose(run.steps).get_delta_for_epsilon(0.0))


def costs(epochs: Sequence[int]) -> pd.DataFrame:
    """Return the processor times of the exact value and of an accountant, as multiples of the closed form's.

    The accountant is dp_accounting's privacy loss distribution, for added records, which every version of it knows.

    Args:
        epochs: Of the trainings, at rate 0.001 and noise 2.
    """

    def seconds(function: Callable[[DPSGD], object], count: int, repeats: int) -> float:
        """Least time of some calls, each with a noise of its own, so that nothing is remembered."""
        taken = []
        for repeat in range(repeats):
            run, start = DPSGD(2 + 1e-6 * repeat, 0.001, 1000 * count), time.process_time()
            function(run)
            taken.append(time.process_time() - start)
        return min(taken)

    rows = {}
    for count in epochs:
        cheap = seconds(theory.bayes_security_closed_form, count, 30)
        slow = seconds(by_accountant, count, 2)
        rows[count] = {"exact": seconds(theory.total_variation, count, 5) / cheap, "accountant": slow / cheap}
    return pd.DataFrame(rows).T


def prices(found: pd.DataFrame) -> None:
    """Draw Figure 5.

    Args:
        found: Of `costs`.
    """
    figure, axis = plt.subplots()
    for name, colour in (("accountant", NEUTRAL), ("exact", ACCENT)):
        axis.semilogy(found.index, found[name], "o-", color=colour, label=name)
    axis.set(
        xlabel="epochs",
        ylabel="time, in closed forms",
        ylim=(1, 2 * found.max(axis=None)),
        xticks=found.index,
    )
    axis.set_title("rate 0.001, noise 2 (accountant: dp_accounting, added records)")
    share = float((found["exact"] / found["accountant"]).max())
    finish(
        figure,
        f"The exact value costs more than the formula, and at most {share:.0%} of what an accountant does",
    )


def humphries_bounds(noises: Floats, epsilons: Sequence[float], *, rate: float) -> Floats:
    """Draw Figure 6, and return the bound of Equation 5 on one step's advantage, shape (epsilons, noises).

    Args:
        noises: Noise multipliers.
        epsilons: Each with the exact delta of the step.
        rate: Sampling rate.
    """

    def bound(run: DPSGD, epsilon: float) -> float:
        law = theory.composed(run, adjacency=Adjacency.REPLACE_ONE)
        delta = float(law.hockey_stick(math.exp(epsilon)))
        claim = Claim("epsilon", epsilon, delta, Adjacency.REPLACE_ONE, "exact", proven=True)
        return float(theory.humphries(claim).value)

    steps = [DPSGD(noise, rate, 1) for noise in noises]
    found = np.array([[bound(run, epsilon) for run in steps] for epsilon in epsilons])
    figure, axis = plt.subplots()
    looks = ((ACCENT, "-", 3), (NEUTRAL, "-", 2), (NEUTRAL, "--", 2), (NEUTRAL, ":", 2))
    for epsilon, values, (colour, line, order) in zip(epsilons, found, looks, strict=True):
        label = f"Equation 5, epsilon {epsilon:g}"
        axis.loglog(noises, values, ls=line, color=colour, zorder=order, label=label)
    axis.loglog(noises, [1 - securities(run)[0] for run in steps], color=INK, ls="--", label="Corollary 7")
    axis.set(xlabel="noise multiplier", ylabel="largest advantage", title=f"one step, rate {rate:g}")
    axis.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    axis.set_yticks([3e-5, 1e-4, 3e-4], ["3e-5", "1e-4", "3e-4"])
    axis.minorticks_off()
    finish(figure, "Epsilon 0 gives the best bound at every noise; Corollary 7 is above it for one step")
    return found


def rates(run: DPSGD) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Draw Figure 7, and return the largest TPR at an FPR: by Proposition 9, and by f-DP of the Gaussian limit.

    Args:
        run: A training.
    """
    closed = theory.bayes_security_closed_form(run)

    def by_security(fpr: float) -> float:
        return float(theory.tpr_from_advantage(closed, fpr=fpr).value)

    def by_gauss(fpr: float) -> float:
        mu = 2 * math.sqrt(2) * float(erfinv(1 - (closed.value or 0.0)))
        return float(theory.gaussian_tpr(fpr, mu))

    figure, axis = plt.subplots()
    fprs = np.geomspace(1e-3, 1, 40).tolist()
    axis.loglog(fprs, [by_security(fpr) for fpr in fprs], color=NEUTRAL, label="from beta* (Proposition 9)")
    axis.loglog(fprs, [by_gauss(fpr) for fpr in fprs], "--", color=INK, label="f-DP of the Gaussian limit")
    exact = [theory.tpr_exact(run, fpr=fpr).value for fpr in fprs[::4]]
    axis.loglog(fprs[::4], exact, "o", color=ACCENT, ms=4, label="exact")
    axis.loglog(fprs, fprs, ":", color=MUTED, label="guessing")
    axis.set(xlabel="false positive rate", ylabel="true positive rate, at most")
    axis.set_title("rate 0.0001, 50 epochs, noise 2")
    finish(figure, "At few false alarms beta* allows many times what the exact curve does", columns=4)
    return by_security, by_gauss


def analyses(ratio: pd.Series, *, source: str) -> None:
    """Draw Figure 8: times of an epoch with each analysis.

    Args:
        ratio: To an epoch without privacy.
        source: Of the records.
    """
    figure, axis = plt.subplots(figsize=(7, 3.4))
    ordered = ratio[::-1]
    colours = [ACCENT if name == "full" else NEUTRAL for name in ordered.index]
    axis.barh(ordered.index, ordered, color=colours)
    for place, value in enumerate(ordered):
        axis.annotate(f"{value:.1f}", (value, place), xytext=(4, 0), textcoords="offset points", va="center")
    axis.grid(axis="y", visible=False)
    axis.set(
        xscale="log", xlabel="epoch / epoch without privacy", title=source, xlim=(0.8, ratio.max() * 1.6)
    )
    axis.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    axis.minorticks_off()
    times = ratio["all pairs"] / ratio["approximate"]
    finish(figure, f"Here all pairs cost {times:.1f} times what the approximate analysis does, not ten times")


_SCALINGS = {"standard": "age standardised", "public": "age / 100"}


def attribute_security(shown: pd.DataFrame, membership: pd.Series, *, source: str) -> None:
    """Draw Figure 9: beta* against attribute inference through the training, means over trainings.

    Args:
        shown: Of `experiments.kept.attribute_table`.
        membership: Exact, indexed by epochs.
        source: Of the records.
    """
    figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    looks = {
        "full": {"color": ACCENT, "marker": "o"},
        "approximate": {"color": INK, "marker": "s"},
        "bound, full": {"color": NEUTRAL, "ls": "--"},
    }
    for panel, (scaling, title) in zip(panels, _SCALINGS.items(), strict=True):
        means = shown[shown["scaling"] == scaling].groupby("epochs").mean(numeric_only=True)
        for name, look in looks.items():
            panel.plot(means.index, means[name], ms=4, label=name, **look)
        panel.plot(membership.index, membership, ":", color=MUTED, lw=2, label="membership, exact")
        panel.set(xlabel="epochs", title=f"{source}, {title}")
    panels[0].set_ylabel("beta*")
    finish(figure, "The approximate security is the smaller one, whatever is printed", columns=4)


def security_and_accuracy(shown: pd.DataFrame, membership: pd.Series, *, source: str) -> None:
    """Draw Figure 1: beta* against the accuracy of each training, after each of the epochs.

    Args:
        shown: Of `experiments.kept.attribute_table`.
        membership: Exact, indexed by epochs.
        source: Of the records.
    """
    figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    for panel, (scaling, title) in zip(panels, _SCALINGS.items(), strict=True):
        part = shown[shown["scaling"] == scaling]
        panel.plot(part["accuracy"], part["full"], "o", color=ACCENT, ms=4.5, label="attribute, Corollary 10")
        of_members = membership[part["epochs"]].to_numpy()
        panel.plot(part["accuracy"], of_members, "s", color=NEUTRAL, ms=4.5, label="membership, exact")
        first = part[part["epochs"] == part["epochs"].min()]
        rings = {"mfc": "none", "ms": 11, "color": INK, "ls": ""}
        panel.plot(first["accuracy"], first["full"], marker="o", label="after one epoch", **rings)
        panel.plot(first["accuracy"], membership[first["epochs"]].to_numpy(), marker="o", **rings)
        panel.set(xlabel="accuracy on test records", title=f"{source}, {title}")
    panels[0].set_ylabel("beta*")
    ends = shown.groupby("epochs")["accuracy"].mean().iloc[[0, -1]].to_numpy()
    cost = membership.iloc[0] - membership.iloc[-1]
    words = f"Epochs 2 to {membership.index[-1]} bring {ends[1] - ends[0]:+.3f} accuracy, and cost {cost:.2f} of beta* (membership)"
    finish(figure, words)
