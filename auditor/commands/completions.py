"""What a shell offers on the tabulator key, where the parser cannot know it: the numbers that a gate can name."""

__all__ = ["GATES", "gates"]

# The numbers of an ordinary audit, as they are named in results; a test holds that an audit has them.
GATES: dict[str, str] = {
    "epsilon_bound.clopper_pearson": "certified epsilon of this model",
    "epsilon_bound.one_run": "certified epsilon of the training algorithm",
    "epsilon_bound.gdp": "bound if the trade-off curve is Gaussian",
    "epsilon_bound.one_run_gdp": "the same of the training algorithm",
    "epsilon_star.gaussian": "published estimate, from two fitted normals",
    "epsilon_star.empirical": "largest ratio seen in the data",
    "epsilon_star.mixture": "the same of fitted mixtures, with --mixture",
    "bayes_security": "1 is guessing, 0 is always right",
    "advantage": "TPR - FPR of the best threshold",
    "auc": "0.5 is guessing",
    "tpr_at_fpr.0.1": "recognised at 1 false alarm in 10",
    "tpr_at_fpr.0.01": "recognised at 1 false alarm in 100",
    "tpr_at_fpr.0.001": "recognised at 1 false alarm in 1,000",
    "verdict": "with == or != and refuted, not_refuted, inconclusive or not_evaluable",
}
# The checks of an audit; not every audit makes every one of them.
CHECKS: dict[str, str] = {
    "collection": "what was noted when the losses were collected",
    "direction": "whether members have the lower losses",
    "duplicates": "records in both groups",
    "goodness_of_fit": "whether the fitted curves fit",
    "label_shuffle": "the bound on shuffled labels",
    "persons": "several records of one person",
    "placebo": "the same audit of a reference model",
    "power": "whether there are enough records",
    "saturation": "probabilities rounded to 0 or 1",
    "sensitivity": "whether the estimate hangs on a few records",
    "shift": "a difference between the two populations",
    "ties": "losses that are equal",
}
_ENDS = ("lower", "upper")
_VERDICTS = ("verdict == refuted", "verdict != not_refuted")


def gates(incomplete: str) -> list[tuple[str, str]]:
    """Return what ``--fail-if`` may begin with, and what each means.

    Args:
        incomplete: What is typed already.

    >>> gates("epsilon_star.g")
    [('epsilon_star.gaussian', 'published estimate, from two fitted normals')]
    >>> [name for name, _ in gates("auc.")]
    ['auc.lower', 'auc.upper']
    """
    found = [(name, words) for name, words in GATES.items() if name.startswith(incomplete)]
    head, dot, end = incomplete.rpartition(".")
    if dot and head in GATES and head != "verdict":
        found += [(f"{head}.{name}", f"{name} end of its interval") for name in _ENDS if name.startswith(end)]
    found += [
        (f"checks.{name}", words) for name, words in CHECKS.items() if f"checks.{name}".startswith(incomplete)
    ]
    if incomplete.startswith("verdict "):
        found += [(text, "the claim is judged so") for text in _VERDICTS if text.startswith(incomplete)]
    return found
