# %% [markdown]
# # Your first privacy audit: from a trained model to a decision
#
# You trained a model on records of people. Somebody asks: *can one tell from the model who was in the training data?* And
# perhaps: *it is said to be differentially private; is it?* This tour answers both, in half a minute of computing, on data
# that comes with scikit-learn.
#
# **What you will learn**
#
# 1. to collect losses and audit them: five lines;
# 2. to read the card: what an attacker can do, in plain words, with an interval;
# 3. what the numbers mean, and what they do not: *this model* and *the training algorithm* are different subjects;
# 4. to judge a claim, with natural records and with planted ones, and why "not refuted" does not mean "true";
# 5. to set a gate for a release, to compare two models, and what to do next.

# %%
import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from experiments.private_logistic import softmax_regression
from shared import ACCENT, NEUTRAL, figures_alike, finish, titled
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import auditor
from auditor import theory

figures_alike()
DELTA = 1e-5


def down(bounds, digits=3):
    """Lower bounds, never rounded up."""
    return np.floor(bounds * 10**digits) / 10**digits


# %% [markdown]
# ## 1. A model, and losses
#
# An audit needs two kinds of records: *members*, which were in the training data, and *non-members*, drawn from the same
# population, which were not. The cleanest way to get them is to set records aside at random **before** training. That
# coin is what later allows a statement about the training algorithm.
#
# We train the same forest twice: once as it comes, which learns its training records by heart, and once with large leaves.

# %%
X, y = load_digits(return_X_y=True)
X_in, X_out, y_in, y_out = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "over-fitted forest": RandomForestClassifier(200, random_state=0),
    "regularised forest": RandomForestClassifier(200, min_samples_leaf=10, random_state=0),
}
for name, model in models.items():
    model.fit(X_in, y_in)
    print(
        f"{name}: accuracy {model.score(X_in, y_in):.3f} on members, {model.score(X_out, y_out):.3f} on others"
    )

# %% [markdown]
# The over-fitted one is the *better* classifier on new digits. Accuracy on new records says nothing about privacy; nor
# does a small gap between the two accuracies.
#
# `collect` asks the model for one number per record, its loss. That is all an audit sees. A **small** loss speaks for
# membership.

# %%
losses = {
    name: auditor.collect(model, members=(X_in, y_in), nonmembers=(X_out, y_out))
    for name, model in models.items()
}
losses["over-fitted forest"]

# %% [markdown]
# ## 2. The audit, and its card
#
# **Differential privacy** limits what one record can do to training: no outcome may be more than e^epsilon times as likely
# with it as without it (*add-remove*) or with another in its place (*replace-one*), but for events of chance delta. So a
# small epsilon is strong: with epsilon 1 odds change by a factor of at most 2.7. Epsilon is in nats, the unit of ln.
#
# `RandomSplit()` declares what we know: a random half was trained on. The claim is what a supplier might state,
# (epsilon 1, delta 1e-5). With `features` the audit also checks that the two halves come from one population. A result
# alone on a line shows its card.

# %%
audits = {
    name: auditor.audit(
        found,
        delta=DELTA,
        split=auditor.RandomSplit(),
        claim=auditor.StatedClaim(1.0, delta=DELTA),
        features=auditor.Features(X_in, X_out),
        model=name,
        utility=auditor.Utility(models[name].score(X_out, y_out), "test accuracy"),
        seed=0,
    )
    for name, found in losses.items()
}
overfitted, regularised = audits.values()
audits["over-fitted forest"]

# %% [markdown]
# Read the card from the top: what an attacker can do, then the verdict on the claim, then numbers with their intervals,
# then the checks. The same numbers as text, with what each is about:

# %%
shown = [
    "epsilon_bound.clopper_pearson",
    "epsilon_bound.one_run",
    "epsilon_star.gaussian",
    "advantage",
    "auc",
    "tpr_at_fpr.0.1",
]
columns = ["subject", "value", "lower", "upper", "confidence", "delta", "adjacency"]
frames = {name: result.to_frame().loc[shown, columns] for name, result in audits.items()}
table = pd.concat(frames, names=["model", "estimate"])
table["value"] = down(table["value"]).where(table["value"] == table["lower"], table["value"])  # a bound
table["lower"], table["upper"] = down(table["lower"]), -down(-table["upper"])
table.style.format(precision=3, na_rep="none").format("{:.3g}", subset=["delta"], na_rep="none")

# %% [markdown]
# ## 3. What each number means
#
# * **advantage**: how much more often than its false alarms the best loss-threshold attacker recognises a member. 0 is
#   guessing, 1 is certainty. About *this model*.
# * **auc**: the chance that a random member has the lower loss of a random pair; 0.5 is guessing. About *this model*.
# * **tpr_at_fpr.0.1**: the share of members that one recognises who accepts one false alarm in ten. About *this model*.
# * **epsilon_bound.clopper_pearson**: a certified lower bound, in nats, on how well the losses separate the two groups,
#   whatever they look like. `0` means "no evidence", never "private". About *this model*: **not** the epsilon of
#   differential privacy.
# * **epsilon_star.gaussian**: the published Epsilon\*, read off two fitted normals. Without an interval it is a point
#   estimate, and where the fit is rejected, as for the over-fitted forest, not even a good one.
# * **epsilon_bound.one_run**: a lower bound on the epsilon of *the training algorithm*. It exists only because the split
#   was random, and it alone may judge a claim.
#
# Every bound has a *ceiling*: what a perfect attack on so many records would have shown. Where does the bound come from? Let the result say it:

# %%
for name, result in audits.items():
    bound, star = result.estimate("epsilon_bound.clopper_pearson"), result.estimate("epsilon_star.gaussian")
    tail = {"lower": "low losses: 'was in'", "upper": "high losses: 'was not in'"}[bound.details["tail"]]
    interval = (
        "point estimate, fit rejected"
        if star.lower is None
        else f"at least {down(star.lower, 2):.2f} at {star.confidence:.0%} if the fit holds"
    )
    print(f"{name} (this model, delta {bound.delta:g})")
    ceiling = down(bound.details["ceiling"], 2)
    print(
        f"  certified {down(bound.value, 2):.2f} at {bound.confidence:.0%}, of at most {ceiling:.2f}; from {tail}"
    )
    print(f"  Epsilon* {star.value:.2f} ({interval})")
    tpr = result.estimate("tpr_at_fpr.0.01")
    floor = f"at least {down(tpr.lower, 4):.2%} at {tpr.confidence:.0%}" if tpr.lower else "point estimate"
    print(f"  members recognised at one false alarm in a hundred: {tpr.value:.1%} ({floor})")

# %% [markdown]
# For the over-fitted forest the strongest evidence is in the *high* losses: a digit on which it is unsure was almost
# surely not in the training data. That is why the share recognised at few false alarms can be next to nothing while the leak
# is large: look at more than one number.
#
# ### Figures
#
# **Question.** How do the losses of the two groups differ? The card and the report draw this for you;
# `result.figures()` has every figure by name.

# %%
LOWEST = -7
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True)
for place, (name, found) in zip(axes, losses.items(), strict=True):
    drawn = [found.member.clip(LOWEST), found.nonmember.clip(LOWEST)]
    bins, colours = np.arange(LOWEST, 4.1, 0.5), [ACCENT, NEUTRAL]
    place.hist(drawn, bins=bins, label=["members", "non-members"], color=colours)
    place.set_title(
        f"{name}\n(below {LOWEST}: {np.sum(drawn[0] == LOWEST)} and {np.sum(drawn[1] == LOWEST)})"
    )
    place.set_xlabel("loss (negative log-odds of the true digit)")
axes[0].set_ylabel("records in a bin of 0.5")
finish(figure, "The over-fitted forest is almost never unsure of a member, and often of others")
for name, found in losses.items():
    share = np.mean(found.nonmember > np.quantile(found.member, 0.99))
    print(
        f"{name}: {share:.0%} of these non-members have a higher loss than 99% of the members (1% if nothing leaked; point estimate)."
    )

# %% [markdown]
# **Question.** What can an attacker do at every threshold? The curve of true against false positives, with its 95% band:
# guessing is the diagonal. The line of the claim is drawn for scale: this curve is about the model, and the claim about
# the training is judged in Section 4, by another number.

# %%
titled(
    overfitted.figure("tradeoff"),
    "The measured curve lies above guessing: the model gives its training records away",
)

# %% [markdown]
# ## 4. Is the claim true?
#
# **Question.** The supplier states (epsilon 1, delta 1e-5). The random split replaces one record by another, so the claim
# is judged in the form that it implies for that: twice the epsilon, at a larger delta.

# %%
for name, result in audits.items():
    judged = next(found for found in result.comparisons if found.verdict is not None)
    print(f"{name}: {result.verdict}\n  {judged.reason}")

# %% [markdown]
# * `refuted`: the training algorithm is not (1, 1e-5)-private, shown by this one model. At 95% confidence, and only for a
#   random split.
# * `not_refuted`: the audit had the power to refute, and did not. **It does not mean that the claim is true.** Here we know
#   that nothing backs it: neither forest adds noise or limits what one record may do. An audit of one model sees only what
#   this model gives away to this attacker.
#
# Without the declared split nobody may judge at all, however strong the leak:

# %%
undeclared = auditor.audit(
    losses["over-fitted forest"], delta=DELTA, claim=auditor.StatedClaim(1.0, delta=DELTA), seed=0
)
print(undeclared.verdict)
print(undeclared.estimate("epsilon_bound.one_run").details["reason"])

# %% [markdown]
# How can one model be enough? Members and non-members are paired at random, and of each pair it is guessed which is which. The
# guesses are counted in several orders, which share the error. Over-fitting shows in the losses of records that a model has
# *not* seen, so here the order that starts with the largest losses tells most:

# %%
shown = overfitted.estimate("epsilon_bound.one_run").details
assert shown["order"] == "larger loss"
print(
    f"{shown['order']} first: of {shown['pairs']} pairs the first {shown['guesses']} were guessed, {shown['correct']} of them rightly"
)

# %% [markdown]
# ### Canaries: records made to be remembered
#
# Digits like all others make a weak test of the regularised forest: it learns little from any of them. A *canary* is planted
# to be as visible as possible. Each has a fair coin of its own, which alone decides whether it is in the training set; so
# `BernoulliSplit(0.5)` is true by construction, and the claim is judged as it stands, for a record added or removed.
#
# **Question.** Do 300 canaries, digits with a wrong label, tell more of the forest? And what do canaries with a feature of
# their own, which no other digit has, tell of a linear model trained by DP-SGD, whose accountant promises epsilon 1, and of
# the same with a bug?

# %%
pixels, others = X_in / 16, X_out / 16
wrong = auditor.canaries.mislabelled(others, y_out, size=300, seed=0)  # a seed only for repetition
own = auditor.canaries.own_feature(others, y_out, size=300, seed=0)


def with_canaries(planted):
    """Training digits, with 0 in the features of the canaries, and the canaries whose coin is heads."""
    return np.vstack([planted.widened(pixels), planted.included[0]]), np.append(y_in, planted.included[1])


noise = theory.noise_multiplier_for(theory.WantedEpsilon(1.0, delta=DELTA), sampling_rate=0.2, steps=100)
promise, said = auditor.DPSGD(noise.value, 0.2, 100), auditor.StatedClaim(1.0, delta=DELTA)
forest = clone(models["regularised forest"]).fit(*with_canaries(wrong))
descent = partial(softmax_regression, *with_canaries(own), promise, expected=200)
trained = {
    "regularised forest": (forest.predict_proba, wrong, said),
    "DP-SGD": (descent(), own, promise),
    "DP-SGD, clipping forgotten": (descent(clips=False), own, promise),
    "DP-SGD, noise forgotten": (descent(noisy=False), own, promise),
}
rows, weighed = {}, {}
for name, (model, planted, claim) in trained.items():
    right = model(planted.features)[np.arange(300), planted.labels]  # of all canaries, those left out too
    weighed[name] = auditor.audit(
        planted.losses(-np.log(right.clip(1e-300))),
        delta=DELTA,
        split=auditor.BernoulliSplit(0.5),
        claim=claim,
        seed=0,
    )
    bound, judged = weighed[name].estimate("epsilon_bound.one_run"), weighed[name].comparisons[0]
    guessed = bound.details
    rows[name] = {
        "claim of epsilon 1": str(judged.verdict),
        "p-value": f"{judged.p_value:.2g}",
        "epsilon at least": f"{down(bound.value, 2):.2f}",
        "guesses": f"{guessed['correct']} of {guessed['guesses']} right ({guessed['order']})",
        "test accuracy": f"{np.mean(model(planted.widened(others)).argmax(axis=1) == y_out):.3f}",
    }
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown]
# **What to read off.** The forest that natural digits did not refute is refuted by canaries, in one run. So are DP-SGD
# without clipping and DP-SGD without noise; the correct one is not, and could have been:

# %%
verdicts = [result.verdict for result in weighed.values()]
assert verdicts == ["refuted", "not_refuted", "refuted", "refuted"]
print(weighed["DP-SGD"].comparisons[0].reason)

# %% [markdown]
# The kind of canary must fit the model. Leaves of ten records and more do not isolate a feature that one record has, so the
# forest hides such canaries; and canaries with a wrong label say little about a linear model, which fits few of them. A claim
# about DP-SGD deserves many trainings, which find smaller bugs than these: [auditing](auditing.ipynb), Section 7. (Advantage or
# AUC of such an audit are about canaries, not about people's records.)
#
# ## 5. Can these numbers be trusted?
#
# Every audit checks itself. `ok` is not proof, and a warning says what to do.

# %%
pd.DataFrame(
    [
        {"model": name, "check": check.name, "status": str(check.status), "message": check.message}
        for name, result in audits.items()
        for check in result.checks
        if check.status != auditor.results.Status.OK
    ]
).style.set_properties(subset=["message"], **{"text-align": "left", "white-space": "normal"}).hide(
    axis="index"
)

# %% [markdown]
# ## 6. A gate: may this model be released?
#
# A gate is a condition that must not be true. Ask for evidence of safety by an *upper* end: a bound from below is low, too,
# where there are few records. What is acceptable is for you to decide, before the audit.

# %%
GATES = ["verdict == refuted", "epsilon_bound.clopper_pearson > 1", "auc.upper > 0.65"]
for name, result in audits.items():
    outcomes = auditor.check_gates(result, GATES)
    print(f"{name}: {'released' if all(outcome.passed for outcome in outcomes) else 'stopped'}")
    for outcome in outcomes:
        print(f"  {'passed' if outcome.passed else 'failed'}: {outcome.sentence}")

# %% [markdown]
# The release rests on what *this model's losses* show, by their upper end, and on nothing about the training: the claim is not
# backed, as Section 4 says. On the command line, for a pipeline: `auditor audit losses.csv --fail-if "auc.upper > 0.65"` ends with exit code 1.
#
# ## 7. Two models side by side
#
# **Question.** Is the regularised forest shown to leak less, and what does it cost?

# %%
comparison = auditor.comparison.compare_audits([overfitted, regularised])
print(comparison.changes[0].headline.sentence)
kept = ["model", "utility_name", "utility", "value", "lower", "upper", "confidence", "verdict"]
side = comparison.to_frame()[kept]
side["lower"], side["upper"] = down(side["lower"]), -down(-side["upper"])
side.rename(columns={"value": comparison.measure}).round(3)

# %% [markdown]
# Each number is a model: 1 as it comes, 2 regularised. Left is more private, up is more accurate.

# %%
titled(
    comparison.landscape_figure(),
    "The over-fitted forest is more accurate, and gives three times as much away",
)

# %%
cost = models["over-fitted forest"].score(X_out, y_out) - models["regularised forest"].score(X_out, y_out)
change = next(found for found in comparison.changes[0].differences if found.name == "advantage")
print(
    f"The attacker's advantage falls by at least {down(-change.upper, 2):.2f} ({change.confidence:.0%} confidence, this attacker, these"
    f" two models), and {cost:.1%} of test accuracy are lost. Neither model dominates the other: a decision, not a computation."
)

# %% [markdown]
# ## 8. The report
#
# One offline HTML page for reviewers, with every number, figure, assumption and check; JSON for machines.

# %%
with tempfile.TemporaryDirectory() as folder:
    page, data = Path(folder, "report.html"), Path(folder, "result.json")
    overfitted.to_html(page, gates=GATES)
    overfitted.to_json(data)
    print(
        f"{page.name}: {page.stat().st_size / 1024:.0f} KiB, {data.name}: {data.stat().st_size / 1024:.0f} KiB"
    )
    again = auditor.read_result(data)
    print(f"read back: {again.verdict}, {again.estimate('auc').value:.3f}")

# %% [markdown]
# ## What next
#
# * **Leaks?** Regularise, stop earlier, train with DP-SGD; audit again with the same split. `auditor.rank_records` says which
#   records to look at first.
# * **Too few records?** `auditor.records_needed` says, before any training, how many certify what you want to certify.
# * **A stronger attacker**: `auditor.scores` compares each loss with what reference models say of the same record.
# * **A claim about the training algorithm**: many trainings with and without a planted record say more than one model
#   (`auditor.collect_runs`, `auditor.audit_runs`); see [auditing](auditing.ipynb). What DP-SGD's parameters promise on paper: [membership bounds](membership_bounds.ipynb),
#   [composition](composition.ipynb), [Bayes security](bayes_security.ipynb).
# * **The published Epsilon\*** and when to believe it: [Epsilon*](epsilon_star.ipynb).

# %%
plan = auditor.records_needed(
    2.0, delta=DELTA, split=auditor.RandomSplit(), attack=auditor.many.GaussianAttack(1.0)
)
print(
    f"To refute the claim of Section 4 takes more than epsilon 2. To certify that (delta {plan.delta:g}, {plan.adjacency}, {plan.confidence:.0%} confidence) of a training algorithm"
    f" whose losses shift by one standard deviation takes about {plan.n_member:,} members and {plan.n_nonmember:,} non-members"
    f" ({plan.power:.0%} of the time)."
)
