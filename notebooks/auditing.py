# %% [markdown]
# # Gaussian differential privacy, and an audit that refuted a paper
#
# **The source** is a lecture, "Gaussian DP and Privacy Auditing" (CSCI 699, week 4). It compares ways to compose steps,
# introduces Gaussian differential privacy (GDP), and tells how an audit (Tramer et al. 2022) found that a training
# method with a claimed epsilon of 0.21 has one of at least 2.79.
#
# **What you will learn.** How to read a trade-off curve, what mu means, what an audit by many trainings shows, how many
# trainings it takes, and how to say the result to a person.
#
# **What we find.** The audit's numbers are right. Several formulas on the slides are not, and are corrected here. A bug
# of the same kind, planted in a small DP-SGD, is refuted; the correct DP-SGD is not, though it could have been.
#
# Every number is about a *mechanism* (a training algorithm): in Sections 1 to 3 known exactly, in Sections 4 to 6
# seen through a limited number of trainings, and so with a confidence.

# %%
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from experiments import mechanisms, slides
from experiments.runs_needed import by_counts, by_gdp, runs_needed
from scipy import special
from shared import FULL, Row, agreement, figures_alike, setting

import auditor
from auditor import theory
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.theory import composition

figures_alike()
pd.set_option("display.max_colwidth", None, "display.precision", 9)
DELTA = 1e-5
RUNS = Path(os.environ.get("RUNS", "runs")) / "auditing"


def drawn(curve, alphas):
    """Beta, the false negative rate, at each alpha of a trade-off curve."""
    return [1 - curve.tpr_at(alpha) for alpha in alphas.tolist()]


# %% [markdown]
# ## 1. Composition, as drawn on the slide
#
# **Question.** The slide draws $0.1x$ against advanced composition at $\epsilon=0.1$, $\delta'=10^{-3}$, whose second
# term lacks a factor epsilon. What does the corrected curve say?

# %%
x = np.arange(1, 1501)
printed = slides.advanced_composition(0.1, steps=x, slack=1e-3)
corrected = np.array([composition.advanced_sharper(0.1, steps=k, slack=1e-3).epsilon for k in x.tolist()])
figure, axes = plt.subplots()
axes.plot(x, 0.1 * x, "k-", label="basic, 0.1 x")
axes.plot(x, printed, "r:", label="advanced, as drawn")
axes.plot(x, corrected, "C0-", label="advanced, corrected")
axes.set(xlabel="number of steps x", ylabel="epsilon of all steps (nats)")
axes.set_title("Steps of epsilon 0.1, delta' 0.001")
axes.legend()
plt.show()
starts = [int(x[np.argmax(curve < 0.1 * x)]) for curve in (printed, corrected)]
print(f"below 0.1 x from x = {starts[0]} on as drawn, from x = {starts[1]} on corrected")
print(f"at x = 1500: basic 150, as drawn {printed[-1]:.1f}, corrected {corrected[-1]:.1f}")
for e in (1.0, 0.1, 0.01):
    mean = e + math.expm1(-e)
    print(f"mean loss of a Laplace step, epsilon {e}: {mean:.3g}, {mean / (e * e / 2):.2f} times epsilon^2/2")
for k in (100, 10_000, 1_000_000):
    total = composition.optimal(1 / math.sqrt(k), steps=k, total_delta=DELTA).epsilon
    print(f"{k:,} steps of epsilon 1/sqrt(k): {total:.2f} in all at delta 1e-5")
one = theory.amplified(1.0, delta=0.0, sampling_rate=0.01).epsilon  # epsilon 1, one of n = 100 records a step
for power in (2, 3, 4):
    total = composition.optimal(one, steps=100**power, total_delta=DELTA).epsilon
    unit = math.sqrt(100**power * math.log(1 / DELTA)) / 100
    print(f"q = 1/n, k = n^{power}: epsilon is {total / unit:.1f} times (1/n) sqrt(k ln(1/delta))")

# %% [markdown]
# **What to read off.** Advanced composition gains four times what the slide shows. The slides then call the mean loss of a
# Laplace step $O(\epsilon)$, so that k steps would need $\epsilon=1/k$. Their own formula, $\epsilon+e^{-\epsilon}-1$,
# is about $\epsilon^2/2$: as for the Gaussian, $1/\sqrt k$ will do. The last lines test the statement that one record a
# step gives $O(\epsilon/n\sqrt{k\ln(1/\delta)})$: the factor grows, so it holds up to about $n^2$ steps only.
#
# ## 2. Trade-off curves and mu
#
# **Question.** How do the curves of (epsilon, delta)-DP and mu-GDP look, and does an attacker on a Gaussian mechanism
# reach $\alpha=1-\Phi(\tau)$, $\beta=\Phi(\tau-\mu)$?

# %%
alpha = np.linspace(0, 1, 401)
taus = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
draws = np.random.default_rng(1).normal(size=setting(200_000, 5_000_000))
figure, axes = plt.subplots(figsize=(5.4, 4.6))
for mu, colour in ((0.5, "C0"), (1.0, "C1"), (2.0, "C2")):
    axes.plot(alpha, drawn(theory.gdp_curve(mu), alpha), colour, label=f"mu = {mu:g}")
    missed = np.array([np.mean(draws + mu <= tau) for tau in taus])
    axes.plot([np.mean(draws > tau) for tau in taus], missed, "o", color=colour, ms=4)
    off = np.max(np.abs(missed - special.ndtr(taus - mu))) * math.sqrt(draws.size) * 2
    print(
        f"mu {mu:g} is epsilon {theory.epsilon_from_mu(mu, delta=DELTA):.3f} at delta 1e-5; beta of the simulated"
    )
    print(f"  attackers is within {off:.1f} standard errors (at most) of Phi(tau - mu)")
stated = auditor.TradeoffCurve.from_epsilon_delta(1.0, delta=0.05)
axes.plot(stated.fpr, 1 - stated.tpr, "k--", label="(1, 0.05)-DP")
axes.set(xlabel="alpha = false positive rate", ylabel="beta = false negative rate")
axes.set_title("Trade-off curves; the dots are simulated attackers")
axes.legend()
plt.show()

# %% [markdown]
# **What to read off.** A mechanism is mu-GDP if its curve is never *below* that of mu. "Strictly above", as the slide
# says, would leave out the Gaussian mechanism itself.
#
# ## 3. Sampled steps, and the central limit theorem
#
# **Question.** What does sampling do to a curve, and how near is Corollary 5.4, corrected, to the exact epsilon? It is
# about batches of a fixed size and one record replaced, so the accountant is asked for those.

# %%
counts = setting([10, 100, 1000, 10_000, 100_000], np.geomspace(10, 1e5, 17).astype(int).tolist())
exact, limit = [], []
for k in counts:
    # One record replaced moves a clipped sum by 2: at noise 2 a step without sampling has mu = 1.
    run = auditor.DPSGD(2.0, 0.01, k, sampling=auditor.FixedSizeSampling())
    exact.append(theory.epsilon(run, delta=DELTA, adjacency=auditor.Adjacency.REPLACE_ONE).value)
    sampled_mu = theory.subsampled_mu(1.0, sampling_rate=0.01, steps=k)
    limit.append(theory.epsilon_from_mu(sampled_mu, delta=DELTA))
step = theory.gdp_curve(1.0)
half = theory.amplified_curve(step, sampling_rate=0.5)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
left.plot(alpha, drawn(step, alpha), "C0-", label="f, mu = 1")
left.plot(alpha, drawn(half, alpha), "C1-", label="f_q, q = 0.5")
left.plot(drawn(half, alpha), alpha, "C1:", label="its inverse")
both = theory.symmetric_amplified_curve(step, sampling_rate=0.5)
left.plot(alpha, drawn(both, alpha), "k--", lw=1, label="min(f_q, f_q^-1)**")
left.set(xlabel="alpha", ylabel="beta", title="Theorem 4.2: what sampling does to a curve")
right.loglog(counts, exact, "C1o-", label="accountant (proven)")
right.loglog(counts, limit, "r:", label="Corollary 5.4, corrected (CLT)")
right.set(xlabel="steps k", ylabel="epsilon at delta 1e-5 (nats)", title="q = 0.01, mu = 1, replace-one")
left.legend()
right.legend()
plt.show()
for k, true, guess in zip(counts, exact, limit, strict=True):
    print(f"k = {k:,}: CLT {guess:.3f}, accountant {true:.3f} ({guess / true:.0%})")
rarely = theory.symmetric_amplified_curve(step, sampling_rate=1e-3)
theorem, corollary = (
    theory.limit_mu(rarely, steps=10**6),
    theory.subsampled_mu(1.0, sampling_rate=1e-3, steps=10**6),
)
print(f"q = 0.001, k = 10^6: mu {theorem:.3f} by Theorem 3.4 on the curve, {corollary:.3f} by Corollary 5.4")

# %% [markdown]
# **What to read off.** The CLT is far too low for few steps and close for many. The numbers of the slides so far:

# %%
noise = math.sqrt(2 * math.log(1.25 / DELTA)) / 0.5  # the slide's sigma for epsilon 0.5
delta_1, tail_1 = theory.delta_from_mu(1.0, epsilon=1.0), float(special.ndtr(-0.5))
hundred = slides.advanced_composition(0.1, steps=100, slack=1e-5).item()
sharper = composition.advanced_sharper(0.1, steps=100, slack=1e-5).epsilon
clt, corollary = slides.clt_of_gaussian_steps(0.1, steps=100), slides.sampled_mu(1.0, rate=0.01, steps=1000)
right_clt = theory.limit_mu(theory.gdp_curve(0.1), steps=100)
right_corollary = theory.subsampled_mu(1.0, sampling_rate=0.01, steps=1000)
of_curve = theory.delta_from_curve(theory.gdp_curve(1.0), epsilon=1.0)
divergence = theory.renyi_divergence(auditor.DPSGD(noise, 1.0, 1), order=1 + 1e-9)
wrong = {"within": 1e-6, "erratum": True}
same = {"within": 1e-6, "because": "the same formula, by another route"}
agreement(
    [
        Row("iff", "P[loss >= 1] as delta of mu = 1", tail_1, delta_1, because="only 'if'", **wrong),
        Row("advanced", "100 steps of 0.1, 1e-5", hundred, sharper, because="k eps tanh(eps/2)", **wrong),
        Row("graph", "at x = 1500", printed[-1], corrected[-1], because="the same", **wrong),
        Row("Laplace", "order at 0.1", 0.1, 0.1 + math.expm1(-0.1), because="eps^2/2", **wrong),
        Row(
            "Prop. 2.5", "beta at 1", slides.stated_beta(1, epsilon=1, delta=0.05), 0, because="or 0", **wrong
        ),
        Row("Thm 3.4", "100 of mu 0.1", clt, right_clt, because="2 sqrt(k) k1/sqrt(k2 - k1^2)", **wrong),
        Row(
            "Cor. 5.4", "mu 1, q .01, k 1000", corollary, right_corollary, because="sqrt 2, one root", **wrong
        ),
        Row("sampling", "epsilon 1, q .01", math.log(1 - 0.01 + 0.01 * math.e), one, **same),
        Row("Gaussian KL", "epsilon 0.5", 1 / (2 * noise**2), divergence, **same),
        Row("composition", "mu .3, .4, 1.2", math.sqrt(1.69), theory.composed_mu([0.3, 0.4, 1.2]), **same),
        Row(
            "Prop. 2.12", "delta at epsilon 1, mu 1", delta_1, of_curve, 1e-5, "the curve is made of tangents"
        ),
    ]
)

# %% [markdown]
# ## 4. The audit of backpropagation clipping
#
# **The story.** A method of 2022 claims (0.21, 1e-5)-DP. Auditors chose a canary (an image with a checkerboard and a wrong
# label), trained 100,000 models with it and 100,000 without, and called a model "with" if the canary's loss was at
# most 2.64, a threshold found on other models. That caught 4.922% of the models with it, and 0.174% of the others.
#
# **Question.** Can that be chance, at their confidence of 1 - 1e-10?

# %%
CLAIM = mechanisms.CLAIM
N, TP, FP = 100_000, 4922, 174
published = auditor.Losses(
    member=np.repeat([0.0, 1.0], [TP, N - TP]), nonmember=np.repeat([0.0, 1.0], [FP, N - FP])
)
rule = auditor.FixedThreshold(0.5)
verdict = auditor.audit_runs(published, delta=DELTA, confidence=1 - 1e-10, claim=CLAIM, threshold=rule)
METHODS = {
    "epsilon_bound.clopper_pearson": "Clopper-Pearson",
    "epsilon_bound.katz": "Katz",
    "epsilon_bound.bayesian": "Bayesian",
    "epsilon_bound.gdp": "GDP",
}


def methods(result):
    """One line for each method of an audit: its epsilon, and what it takes for granted first of all."""
    rows = [result.estimate(name) for name in METHODS]
    lines = [(row.value, f"{1 - row.confidence:.2g}", row.assumptions[0]) for row in rows]
    return pd.DataFrame(lines, index=list(METHODS.values()), columns=["epsilon", "error", "assumes"])


print(f"the claim of epsilon 0.21 is {verdict.verdict}")
methods(verdict)

# %% [markdown]
# Chance cannot do it. Only Clopper-Pearson judges a claim: besides independent trainings it takes nothing for granted.

# %%
allowed = auditor.TradeoffCurve.from_epsilon_delta(CLAIM.epsilon, delta=CLAIM.delta)
found = verdict.estimate("epsilon_bound.clopper_pearson")
needed = auditor.TradeoffCurve.from_epsilon_delta(found.value, delta=DELTA)
least = float(np.interp(TP / N, allowed.tpr, allowed.fpr))
by_hand = (1 - DELTA - 0.95078) / math.exp(0.21)
fpr_lower, fpr_upper = (float(f(FP, N, 5e-11)) for f in (lower_limit, upper_limit))
fnr_upper = 1 - float(lower_limit(TP, N, 5e-11))
rates = np.geomspace(1e-4, 1, 300)
figure, axes = plt.subplots(figsize=(6.4, 4.2))
axes.loglog(rates, [allowed.tpr_at(r) for r in rates.tolist()], "k-", label="at most, by the claim")
axes.loglog(
    rates, [needed.tpr_at(r) for r in rates.tolist()], "C3--", label=f"at most, by epsilon {found.value:.3f}"
)
error = [[TP / N - 1 + fnr_upper], [0]], [[0], [fpr_upper - FP / N]]
axes.errorbar(FP / N, TP / N, *error, fmt="o", capsize=3, label="the attack, and its limits")
axes.set(xlabel="false positive rate", ylabel="true positive rate", title="100,000 models of each kind")
axes.legend()
plt.show()
exactly = {"within": 1e-12, "because": "counts"}
mu_slide, mu_right = (slides.gdp_from_limits(limit, fnr_upper) for limit in (fpr_lower, fpr_upper))
agreement(
    [
        Row("attack", "beta, here the FPR", 0.00174, FP / N, **exactly),
        Row("attack", "alpha, here the FNR", 0.95078, 1 - TP / N, **exactly),
        Row("first slide", "least beta", 0.0398885074, by_hand, 5e-11, "a digit 8 was lost", erratum=True),
        Row("second slide", "least beta", 0.03988885074, by_hand, 5e-12, "as printed"),
        Row("second slide", "the same by our curve", 0.03988885074, least, 5e-12, "as printed"),
        Row("limits", "alpha+, FNR at most", 0.95509, fnr_upper, 1e-5, "rounded up"),
        Row("limits", "beta-, FPR at least", 0.00274, fpr_lower, 5e-6, "it is the upper limit", erratum=True),
        Row("limits", "FPR at most", 0.00274, fpr_upper, 5e-6, "as printed"),
        Row(
            "last slide", "mu- with beta-", mu_slide, mu_right, 1e-6, "needs both upper limits", erratum=True
        ),
        Row("Tramer et al.", "epsilon at least", 2.79, found.value, 0.01, "rounded down"),
    ]
)

# %% [markdown]
# ## 5. Saying it to a person
#
# **Question.** The lecture recommends odds (ODDS-TEXT). What do its example, the claim and the finding mean for one person?

# %%
ADDED = auditor.Adjacency.ADD_REMOVE
example = auditor.Claim("epsilon", math.log(61 / 39), 0.0, ADDED, "stated", proven=True)
shown = auditor.Claim("epsilon", found.value, DELTA, ADDED, "shown by an audit", proven=False)
print("the slide:  ", theory.odds_in_words(example))
print("the claim:  ", theory.odds_in_words(theory.epsilon(CLAIM, delta=DELTA)))
print("the finding:", theory.odds_in_words(shown))

# %% [markdown]
# The last sentence says "about": an audit gives a floor, and the truth may be worse.
#
# ## 6. The same kind of bug, planted
#
# `experiments/mechanisms.py` trains a logistic regression with five steps of DP-SGD: once correctly, and once with the
# *mean* gradient of a batch clipped instead of each record's, but noise for the latter. Both claim (0.21, 1e-5).
# `auditor.collect_runs` trains each many times, half with a canary; some trainings choose a threshold on the canary's
# loss, and `auditor.audit_runs` counts the others.

# %%
TRAININGS = {"correct": mechanisms.train_correctly, "with the bug": mechanisms.train_with_bug}
RUNS_JUDGED, RUNS_CHOOSING = setting((4000, 1000), (200_000, 20_000))
if FULL:
    minutes = mechanisms.minutes(trainings=2 * (RUNS_JUDGED + RUNS_CHOOSING))
    print(f"two mechanisms, 220,000 trainings each: about {minutes:.0f} minutes on one core, less on several")


def trained(train, *, runs, seed):
    """The canary's losses of many trainings, kept on disk in the full setting."""
    kept = {"folder": RUNS, "progress": print} if FULL else {"workers": 1}
    return auditor.collect_runs(train, runs=runs, seed=seed, **kept)


choosing = {name: trained(train, runs=RUNS_CHOOSING, seed=1) for name, train in TRAININGS.items()}
losses = {name: trained(train, runs=RUNS_JUDGED, seed=0) for name, train in TRAININGS.items()}
audits = {
    name: auditor.audit_runs(runs, threshold_runs=choosing[name], delta=DELTA, claim=CLAIM)
    for name, runs in losses.items()
}
figure, panels = plt.subplots(1, 2, figsize=(10, 3.8))
for axes, (name, runs) in zip(panels, losses.items(), strict=True):
    ends = np.quantile(np.concatenate([runs.member, runs.nonmember]), [0.001, 0.999])
    axes.hist(runs.nonmember, np.linspace(*ends, 50), histtype="step", label="without the canary")
    axes.hist(runs.member, np.linspace(*ends, 50), histtype="step", label="with the canary")
    axes.set(xlabel="loss of the canary (nats)", ylabel="trainings", title=name)
    axes.legend()
plt.show()
for name, audit in audits.items():
    bound = audit.estimate("epsilon_bound.clopper_pearson")
    print(f"{name}: claim {audit.verdict}; epsilon at least {bound.value:.3f} at {bound.confidence:.0%}")
    above = [label for name_, label in METHODS.items() if audit.estimate(name_).value > CLAIM.epsilon]
    print(f"  (a perfect attack would have shown {bound.details['ceiling']:.2f}); above the claim: {above}")
pd.concat({name: methods(audit)[["epsilon", "error"]] for name, audit in audits.items()}).round(3)

# %% [markdown]
# **What to read off.** The bug is refuted. The correct mechanism is "not refuted" rather than "inconclusive": the ceiling
# is far above the claim, and the same audit refuted the other. That is no proof that it is private. A method that is
# listed above the claim for the *correct* mechanism shows why approximate and credible numbers do not judge.
#
# **Question.** How do the bounds grow with the number of trainings, and does testing for GDP "reduce the number of runs by
# 10,000x", as the last slide says?

# %%
grown = {}
for n in setting([50, 100, 200, 500, 1000, 2000], [50, 200, 1000, 3000, 10_000, 30_000, 100_000]):
    runs = losses["with the bug"]
    part = auditor.Losses(member=runs.member[:n], nonmember=runs.nonmember[:n])
    audit = auditor.audit_runs(part, threshold_runs=choosing["with the bug"], delta=DELTA, claim=CLAIM)
    grown[2 * n] = {label: audit.estimate(name).value for name, label in METHODS.items()}
grown = pd.DataFrame(grown).T.astype(float)
figure, axes = plt.subplots()
for label, style in zip(grown, ("C0o-", "C1s--", "C2^--", "C3d:"), strict=True):
    axes.semilogx(grown.index, grown[label], style, label=label)
axes.axhline(CLAIM.epsilon, color="k", lw=1, label="claim, 0.21")
axes.set(
    xlabel="trainings judged", ylabel="epsilon at delta 1e-5 (nats), 95%", title="The mechanism with the bug"
)
axes.legend()
plt.show()
refuted = grown.index[grown["Clopper-Pearson"] > CLAIM.epsilon].min()
print(f"Clopper-Pearson refutes the claim from {refuted:,} trainings on, of the numbers tried")
shares = [0.25, 0.5, 0.75, 0.9]
table = {}
for e in (0.21, 1.0, 8.0):
    fewest = [[runs_needed(t, epsilon=e, share=s, delta=DELTA) for s in shares] for t in (by_counts, by_gdp)]
    table[f"epsilon {e:g}"] = np.divide(*fewest).round()
pd.DataFrame(table, index=[f"to show {share:.0%} of it" for share in shares])

# %% [markdown]
# **What to read off.** The table divides the runs that counts need by those that GDP needs, for a Gaussian mechanism:
# 10,000 holds for a large epsilon of which most is to be shown, and not for a claim like 0.21. And GDP needs a
# Gaussian curve, which no number of runs can show: elsewhere its number can exceed the truth, so it judges no claim.
#
# **Not possible here.** Accuracy 0.98, "30x smaller epsilon", 25 canaries and 2,000 first trainings are of the cited papers'
# image models. Drawings without numbers are not redrawn.
