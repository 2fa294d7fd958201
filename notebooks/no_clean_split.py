# %% [markdown]
# # Where there is no clean split
#
# Deployed models rarely come with records that were set aside by a coin. Members are last year's customers and the others
# this year's; or members come from one office and the others from elsewhere. The groups then differ before any model is
# asked, and a difference in their losses is no evidence of leakage.
#
# Here are four audits for that case, on records whose truth we know because we made it: which audit says what, and when it is
# wrong. One idea carries three of them: *a guess about a record's membership is judged by that record's own odds*.
#
# | audit | needs | what it can say |
# | --- | --- | --- |
# | known odds, `BernoulliSplit` | the odds by which records were drawn | a verdict |
# | estimated odds, `Propensity` | features that tell how the groups differ | a bound if the estimates are right, never a verdict |
# | labels, `audit_labels` | the law of labels given features, and no other records | a bound on label privacy under that condition |
# | output policies | the same losses | what answering less would help |

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from experiments import adult
from scipy import special
from shared import ACCENT, INK, NEUTRAL, figures_alike, finish, setting
from sklearn.ensemble import RandomForestClassifier

import auditor

figures_alike()
DATA = (
    adult.load(os.environ["ADULT"])
    if os.environ.get("ADULT")
    else adult.stand_in(n_train=6_000, n_test=3_000)
)
SIZE = setting(6_000, 30_000)
print(DATA.source)

# %% [markdown]
# ## The groups, and the truth
#
# An office collected the training data, and younger and less schooled people came there more often: each record was a member
# with odds that fall with age and years of schooling, by a coin of its own. Those who did not come are the non-members.
#
# Three models, or what stands for one, whose leak we know:
#
# * **others' model**: a forest trained on other people altogether. It cannot leak who came to the office: epsilon 0.
# * **epsilon 1**: the same, but each answer also tells who came, by randomised response. That is epsilon 1, exactly.
# * **own model**: a forest trained on those who came, which learns them by heart. It leaks; by how much nobody knows.

# %%
rng = np.random.default_rng(0)
table, X, y = DATA.raw_train.iloc[:SIZE], DATA.x_train[:SIZE], DATA.y_train[:SIZE]
features = table.drop(columns=["income", "fnlwgt"])


def standard(column):
    """A column in standard units."""
    return (column - column.mean()) / column.std()


chance = special.expit(-0.9 * standard(table["age"]) - 0.6 * standard(table["education-num"])).to_numpy()
came = rng.random(SIZE) < chance
print(
    f"{came.sum():,} members, mean age {table['age'][came].mean():.1f}; others {table['age'][~came].mean():.1f}"
)

forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=2)
models = {"others' model": forest.fit(DATA.x_test, DATA.y_test)}
models["own model"] = RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=2).fit(
    X[came], y[came]
)


def losses_of(model):
    """The losses of both groups by a model."""
    return auditor.collect(model, members=(X[came], y[came]), nonmembers=(X[~came], y[~came]))


losses = {name: losses_of(model) for name, model in models.items()}
plain = losses["others' model"]
told = [
    side + 20 * (rng.random(side.size) < special.expit(-1.0 if member else 1.0))
    for side, member in ((plain.member, True), (plain.nonmember, False))
]
losses["epsilon 1"] = auditor.Losses(*told)
truth = {"others' model": 0.0, "epsilon 1": 1.0, "own model": np.nan}

# %% [markdown]
# ## What goes wrong without care
#
# Declared as a random split, the losses of the model that *cannot* leak look like a leak: young people are easier to classify.
# With the features at hand the audit notices, and refuses any verdict: honest, but no answer.

# %%
both = auditor.Features(features[came], features[~came])
careless = auditor.audit(
    plain, split=auditor.RandomSplit(), claim=auditor.StatedClaim(epsilon=0.1, delta=1e-5)
)
careful = auditor.audit(
    plain, split=auditor.RandomSplit(), claim=auditor.StatedClaim(epsilon=0.1, delta=1e-5), features=both
)
print(
    f"careless: {careless.verdict} (epsilon at least {careless['epsilon_bound.one_run'].value:.2f}, which is wrong)"
)
print(f"careful:  {careful.verdict}")
print({check.name: check for check in careful.checks}["shift"].message)

# %% [markdown]
# ## Known odds, estimated odds, and odds without what matters
#
# * *Known*: the design says with what probability each record came. Guesses are judged by these odds (delta 0), or records are
#   thinned until the coins are fair (any delta): a verdict, like that of a random split.
# * *Estimated*: a classifier learns the odds from half of the records, and the other half is audited.
# * *Without age and schooling*: the same where the features lack what decided. What they do not show is taken for a leak; the
#   page says so, and by how much the estimated odds would have to be off to explain it.

# %%
lacking = features.drop(columns=["age", "education", "education-num"])
fewer = auditor.Features(lacking[came], lacking[~came])
splits = {
    "known odds": auditor.BernoulliSplit((chance[came], chance[~came])),
    "estimated odds": auditor.Propensity(both),
    "estimated, lacking age and schooling": auditor.Propensity(fewer),
}
ROW = {"known odds": "epsilon_bound.one_run"}
rows = []
for name, item in losses.items():
    for kind, split in splits.items():
        found = auditor.audit(item, split=split, delta=0.0, seed=0)
        row = found.estimate(ROW.get(kind, "epsilon_bound.propensity"))
        rows.append(
            {
                "model": name,
                "audit": kind,
                "truth": truth[name],
                "at least": row.value,
                "ceiling": row.details["ceiling"],
            }
        )
answers = pd.DataFrame(rows)
answers["within the truth"] = np.where(answers["truth"].isna(), "?", answers["at least"] <= answers["truth"])
answers.round(2)

# %% [markdown]
# Known and estimated odds stay within the truth where we know it, and see the leak where there is one. With features that lack
# what decided, no answer is worth anything unless somebody who knows the office says that nothing else mattered.
#
# The page of such an audit says that in words, with the attack by features alone beside it:

# %%
found = auditor.audit(losses["own model"], split=splits["estimated odds"], delta=0.0)
odds = found["epsilon_bound.propensity"].details["odds"]
by_features, by_losses = odds["by_features"]["value"], odds["by_losses"]["value"]
print(
    f"{odds['kept']:,} of {odds['held']:,} held records audited; AUC {by_features:.3f} by features, {by_losses:.3f} by losses"
)

# %%
names = list(splits)
figure, panels = plt.subplots(1, len(losses), figsize=(9.0, 2.6), sharey=True)
for panel, (name, part) in zip(panels, answers.groupby("model", sort=False), strict=True):
    panel.barh(names, part["at least"], color=[ACCENT, ACCENT, NEUTRAL], height=0.5)
    if np.isfinite(truth[name]):
        panel.axvline(truth[name], color=INK, linewidth=2, linestyle=(0, (1, 0.8)), label="truth")
    panel.set(title=name, xlabel="Epsilon, at least", xlim=(0, max(answers["at least"].max(), 1.2) * 1.05))
    panel.invert_yaxis()
finish(figure, "Odds that are right stay below the truth; what features lack looks like a leak", columns=1)

# %% [markdown]
# ## Labels, without any non-member
#
# For each training record a coin shows its real label, or one drawn from the law of labels given features, which is learnt
# from other people. A model that remembers labels gives the real one away. Here the records are those who came, and the law
# is learnt from the other table.

# %%
labels = {
    name: auditor.audit_labels(model, (X[came], y[came]), reference=(DATA.x_test, DATA.y_test))
    for name, model in {
        "own model": models["own model"],
        "never saw them": RandomForestClassifier(100, min_samples_leaf=2, random_state=1).fit(
            X[~came], y[~came]
        ),
    }.items()
}
for name, item in labels.items():
    row = item["epsilon_bound.labels"]
    print(
        f"{name}: label epsilon at least {row.value:.2f} ({row.confidence:.0%}, delta 0), if the law of labels is right"
    )

# %% [markdown]
# ## What answering less would help
#
# The same records under what the model would answer instead: scored at collection, without asking the model again. Here on
# records that were split by a fair coin, so that the AUC is about leakage alone.

# %%
coin = rng.random(SIZE) < 0.5
fair = RandomForestClassifier(100, random_state=0, n_jobs=2).fit(X[coin], y[coin])
under = auditor.collect(
    fair,
    members=(X[coin], y[coin]),
    nonmembers=(X[~coin], y[~coin]),
    policies=("digits=2", "digits=1", "top1", "label"),
)
result = auditor.audit(under, split=auditor.BernoulliSplit(0.5), delta=1e-5)
policies = pd.DataFrame(
    {
        "policy": item.policy,
        "AUC": item.estimates[0].value,
        "from": item.estimates[0].lower,
        "to": item.estimates[0].upper,
        "training epsilon, at least": item.at_least.get("epsilon_bound.one_run", np.nan),
    }
    for item in result.policies
)
policies.round(3)

# %% [markdown]
# A lower AUC is not a smaller leak: labels alone can hide most of the AUC and still prove a large epsilon, as the last column
# shows. It says what *this* attack loses; the best attacker loses no more than that column allows.
