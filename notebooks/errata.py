# %% [markdown]
# # Where the source papers are wrong, and how one can tell
#
# `auditor` puts five publications into practice. Reading them closely, and computing every number in them again, turned
# up misprints, a few wrong statements, and claims that say more than their proofs. None of them overturns a paper. Most
# would mislead somebody who implements what is printed. We read text copies, in which the extent of a root or a digit can
# be lost: where that may be the whole erratum, it says "in our text copy"; a digit that only our copy lacks is none.
#
# **How to read the tables.** A row is an erratum, with three numbers for the same quantity:
#
# * *as printed*: what the printed form gives, or what the text claims (a bound, where a bound is claimed);
# * *as corrected*: what the corrected form gives, through the public functions of `auditor` where the package has the
#   quantity, else by hand (then it says "arithmetic");
# * *check*: another road: a simulated attack, a numerical integral, an enumeration; for slips of the pen, arithmetic.
#
# A cell ends with an error if a check does not bear out the correction, or does not give the outcome in the last column.
# "Confirmed", or a word on what the erratum comes from: the check bears out the corrected value and contradicts the
# printed one. "True, but loose": both bound it, the printed one needlessly high. "Names only": both are right. How each
# follows is in the functions of `experiments/errata_*.py`, one for each place.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from experiments.errata_bayes import BAYES
from experiments.errata_checks import checked, table
from experiments.errata_composition import POST, SLIDES
from experiments.errata_epsilon import EPSILON_STAR
from experiments.errata_membership import MEMBERSHIP
from IPython.display import HTML, display
from shared import ACCENT, NEUTRAL, figures_alike, finish

from auditor import DPSGD, theory

figures_alike()
rng = np.random.default_rng(20261121)
FOUND = []


def show(places):
    """Check the errata of a paper, keep them, and show them as a table."""
    found = checked(places, rng)
    FOUND.extend(found)
    print(f"{len(found)} errata, each borne out by its check")
    display(HTML(table(found)))


# %% [markdown]
# ## 003: optimal membership-inference bounds
#
# Mahloujifar, Sablayrolles, Cormode, Jha 2022. The bound itself stands; two signs, two constants and a conversion do not.

# %%
show(MEMBERSHIP)

# %% [markdown]
# ## 000: closed-form Bayes security
#
# Cherubin, Köpf, Paverd, Tople, Wutschitz, Zanella-Béguelin 2024. Corollary 7 is true with its error term, and then says
# nothing; without it, as it is used, it is a good approximation and no bound.

# %%
show(BAYES)

# %% [markdown]
# ## 001: a blog post on composition
#
# *Understanding privacy leakage in machine learning (part 1)*. The three theorems hold.

# %%
show(POST)

# %% [markdown]
# ## 002: lecture slides
#
# *CSCI 699, week 4: Gaussian DP and privacy auditing*. The audit's numbers are right.

# %%
show(SLIDES)

# %% [markdown]
# ## 004: Epsilon\*
#
# Negoescu et al. 2024.

# %%
show(EPSILON_STAR)

# %% [markdown]
# ## How far off

# %%
wrong = [
    erratum
    for erratum in FOUND
    if erratum.relation == "=" and not erratum.fits(erratum.printed) and math.isfinite(erratum.check)
]
wrong = sorted(
    (erratum for erratum in wrong if math.isfinite(erratum.printed)), key=lambda e: -abs(e.printed - e.check)
)
LEAST = 1e-9  # nearer than this counts as this
places = np.arange(len(wrong))[::-1]
figure, axes = plt.subplots(figsize=(8, 0.25 * len(wrong) + 1.4))
ends = {
    name: np.array([max(abs(getattr(erratum, name) - erratum.check), LEAST) for erratum in wrong])
    for name in ("printed", "corrected")
}
axes.hlines(places, ends["corrected"], ends["printed"], color=NEUTRAL, lw=0.8)
axes.plot(ends["printed"], places, "o", color=NEUTRAL, label="as printed")
axes.plot(ends["corrected"], places, "o", color=ACCENT, label="as corrected")
axes.set_yticks(places, [erratum.where for erratum in wrong])
axes.set(xscale="log", xlabel="distance from the check, in the quantity's unit (1e-9: or less)")
finish(figure, "Every corrected number is nearer to its check than the printed one")
assert (ends["corrected"] < ends["printed"]).all()
worst = max(abs(erratum.corrected - erratum.check) / erratum.within for erratum in wrong if erratum.within)
print(f"{len(wrong)} of {len(FOUND)} errata have numbers to compare: the corrected forms use at most")
print(f"{worst:.0%} of their tolerance.")

# %% [markdown]
# ## Slips without a number of their own
#
# | | |
# | --- | --- |
# | 000 | Age takes 73 values in Adult, but the range 17 to 90 that the analysis goes through has 74 |
# | 000 | Section 6.1's "26 steps per epoch" do not fit batches of 256, but of about 1,000 |
# | 000 | Figure 4's "≤ 0.01" up to 50 epochs holds only rounded; so does Figure 7's 0.5 for the FPR at which Bayes security is optimal: that is Φ(-μ/2). Purchase's .87 in Section 6.2 is reproduced within the rounding of its noise, 1.8 |
# | 001 | In the proof of Theorem 1, $e^{\varepsilon_2}\Pr[\ldots]$ is not at most 1 (the line before it needs a minimum with 1) |
# | 001 | In the proof of Theorem 2, $e^{-z^2/2} = \delta'$, not $T\delta + \delta'$; the losses of adaptive steps are not independent (bounds given the past are enough); one "≤" should be "≥". Two theorems have the number 3 |
# | 002 | f-DP asks for a curve *at or above* f, not strictly above it. $O(\varepsilon/n\,\sqrt{k\ln(1/\delta)})$ for q = 1/n holds up to about n² steps. X = "predicted D where it was D'" is called the false positive rate, and is the false negative one. "Reduces number of runs by 10,000x" depends on the epsilon: see [auditing](auditing.ipynb) |
# | 003 | The caption of Figure 4 says that *decreasing* d narrows the gap, the text *increasing*, which is what we find; that it shrinks "to almost 0" we do not find at noise 1 and below, if the paper went there (its noise range is not printed) |
# | 003 | Appendix I's threshold leaves out the learning rate. Its majority vote over all models, "the stronger" attack, is shown to be the weaker one at noise 1 and below: see [membership bounds](membership_bounds.ipynb) |
# | 003 | Proposition 16 repeats half of Proposition 15. Lemma 5 uses a for two things. By "Figures 3(a) and 5" in Section 4.1, Figures 1 and 3 are probably meant |
# | 004 | The non-members of Adult are 16,281, not 16,280 |
# | 004 | Section 8.1 compares two estimates under two clips, rates in (0.001, 0.999) for counts and (δ, 1 - δ) for the fit: under one clip the counts are the closer, for d > 0 and 10,000 records or more. See [Epsilon\*](epsilon_star.ipynb) |
# | 004 | Section 8.2's p-values above 0.05 are of 1,000 records at most, and of 100 seldom anything else: they show no good fit. See the same |

# %%
records = 26_318  # what Equation 4 makes of the printed noise
print(
    f"000 Section 6.1, steps per epoch with batches of 256: {records / 256:.0f}, or {32_561 / 256:.0f} for all of Adult;"
)
print(f"  26 fit batches of {records / 26:,.0f} or {32_561 / 26:,.0f}")
long_run, figure_7 = DPSGD(1.0, 0.001, 50_000), DPSGD(2.0, 1e-4, 500_000)
too_high = theory.bayes_security_closed_form(long_run).value - 1 + theory.total_variation(long_run).value
print(f"000 Figure 4, error at noise 1 after 50 epochs: {too_high:.4f};")
print(f"  Figure 7, touching point: FPR {theory.bayes_security_closed_form(figure_7).value / 2:.3f}")
purchase = [
    theory.bayes_security_closed_form(DPSGD(noise, 512 / 197_324, round(30 * 197_324 / 512))).value
    for noise in (1.75, 1.8)
]
print(f"000 Section 6.2, Purchase: {purchase[0]:.4f} at noise 1.75, {purchase[1]:.4f} at 1.8")
