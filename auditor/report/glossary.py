"""What the words on the page mean, for a reader who is not a statistician."""

from dataclasses import dataclass

from auditor.values import Estimate

__all__ = ["TERMS", "Term", "glossary", "term_of"]


@dataclass(frozen=True)
class Term:
    """A word of the page; its key makes the link."""

    key: str
    name: str
    text: str


TERMS = (
    Term(
        "attack",
        "Who attacks, and how",
        "The attacker sees the loss that the model has on a record, and calls a low loss a member. Stronger attacks exist,"
        " and single records may be more exposed than the average.",
    ),
    Term(
        "member",
        "Member, non-member",
        "A member is a record that the model was trained on. A non-member, or other record, is one that it was not trained"
        " on, drawn like the members.",
    ),
    Term(
        "loss",
        "Loss",
        "How wrong the model is about a record: small where it predicts well. Models tend to have lower losses on what they"
        " were trained on.",
    ),
    Term(
        "rates",
        "TPR and FPR, false alarm",
        "The true positive rate is the share of members that are recognised; the false positive rate is the share of others"
        " that are wrongly called members. Guessing makes the two equal.",
    ),
    Term(
        "tradeoff",
        "Trade-off curve",
        "All pairs of FPR and TPR that an attacker can choose from by moving the threshold. With a confidence band the"
        " true curve lies inside it as often as the confidence says.",
    ),
    Term(
        "epsilon",
        "Epsilon and delta",
        "Epsilon measures, in nats, how far what is seen can shift an attacker's odds that a record was used: 0 not at all,"
        " 1 by a factor of 2.7, 3 by 20, 5 by 148. Delta is the share of cases that this leaves out.",
    ),
    Term(
        "star",
        "Epsilon*",
        "The published epsilon of one trained model against an attacker who goes by the loss. It trusts two fitted curves far"
        " beyond the records. Where a test rejects them it is not to be relied on; the certified bound needs no fit and"
        " stands.",
    ),
    Term(
        "certified",
        "Certified bound",
        "A lower limit that holds at the stated confidence whatever shape the losses have. A bound of 0 means “no evidence”,"
        " never “private”. No audit can prove privacy; it can only find leakage, or fail to.",
    ),
    Term(
        "ceiling",
        "The ceiling",
        "The largest bound that an audit of this size could certify, even if the model gave everything away. A bound near its"
        " ceiling says: at least this, perhaps much more. A ceiling below the claim says that the audit was too small to"
        " refute it.",
    ),
    Term(
        "interval",
        "Intervals and point estimates",
        "A 95% interval comes from a procedure that is right in at least 95 of 100 audits, if its assumptions hold. Each"
        " holds by itself: of twenty such intervals, one may well be wrong. A point estimate has no interval, and chance alone"
        " may have made it high or low.",
    ),
    Term(
        "subject",
        "This model, or the training algorithm",
        "Most numbers are about this one model. A claimed epsilon is about the training algorithm, over all the models that"
        " it could have produced. So Epsilon* above the claimed epsilon is not a violation, and Epsilon* below it is not"
        " evidence of differential privacy. Only a bound on the training algorithm can refute a claim, and it needs membership"
        " that was decided at random.",
    ),
    Term(
        "adjacency",
        "Adjacency",
        "Which two data sets a promise compares: with one record added or removed (add-remove), or with one record replaced"
        " by another (replace-one). The same training has a different epsilon for each.",
    ),
    Term(
        "verdict",
        "The verdict on a claim",
        "Refuted: a certified bound on the training algorithm exceeds the claim. Not refuted: it does not, although the audit"
        " could have shown more; this is no proof. Inconclusive: the audit could not have refuted the claim. Not evaluable:"
        " membership was not random, or a check failed on which everything rests.",
    ),
    Term(
        "advantage",
        "Membership advantage",
        "The largest gap between TPR and FPR over all thresholds: 0 for guessing, 1 for an attacker who is always right.",
    ),
    Term(
        "security",
        "Bayes security",
        "1 minus the advantage: 1 where the attacker can only guess, 0 where they are always right. Stronger attackers may"
        " push it lower, so only an upper limit is given.",
    ),
    Term(
        "auc",
        "AUC",
        "How often a random member has a lower loss than a random other record: 0.5 for guessing, 1 for complete separation."
        " It averages over all thresholds and can hide a leak that concerns few records.",
    ),
    Term(
        "gaussian",
        "Gaussian and mixture fits",
        "A normal (Gaussian) curve fitted to the losses of each group, or a sum of several normal curves (a mixture).",
    ),
    Term(
        "ks",
        "Kolmogorov-Smirnov test",
        "Tests a fitted curve on records that were held out, by the largest distance between the two. A p-value below 0.05"
        " rejects the fit; a larger one does not prove it, least of all far out in the tails.",
    ),
    Term(
        "quantiles",
        "Quantile plot",
        "The losses found against the losses that the fitted curve expects, in order of size. On the line the two agree.",
    ),
    Term(
        "odds",
        "Odds of a record",
        "How much more a record's loss speaks for a member than for another record. The ranking by odds says where to look"
        " first; it certifies nothing about any one person.",
    ),
)

_STARTS = (
    ("epsilon_bound.", "certified"),
    ("epsilon_star.", "star"),
    ("epsilon_bar", "star"),
    ("tpr_at_fpr", "rates"),
    ("advantage", "advantage"),
    ("bayes_security", "security"),
    ("auc", "auc"),
)


def glossary() -> list[dict[str, str]]:
    """Return the terms as strings, in the order of the page."""
    return [{"key": item.key, "name": item.name, "text": item.text} for item in TERMS]


def term_of(estimate: Estimate) -> str:
    """Return the key of the term that explains an estimate, or nothing."""
    return next((key for start, key in _STARTS if estimate.name.startswith(start)), "")
