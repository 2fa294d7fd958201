"""Each erratum: the printed form gives the wrong number, and ours agrees with an independent check that uses neither.

The errata, each with its printed number, the corrected one and its check (a simulation, an integral, an enumeration), are those
of `notebooks/experiments/errata_*.py`; here they are all held to their checks under another seed. Some printed forms are true
and only loose, or fit another reading: then the erratum says that, too.
"""

import itertools
import math

import numpy as np
import pytest
from experiments.errata_bayes import BAYES
from experiments.errata_checks import Erratum, answers_delta, answers_epsilon, checked, table
from experiments.errata_composition import POST, SLIDES
from experiments.errata_epsilon import EPSILON_STAR
from experiments.errata_membership import MEMBERSHIP
from scipy import special


def test_the_notebooks_randomised_responses_are_those_of_every_answer():
    """`answers_delta` is the sum over all 2^6 answers, and `answers_epsilon` inverts it."""
    eps, truth = 0.7, special.expit(0.7)
    delta = 0.0
    for answers in itertools.product((True, False), repeat=6):
        with_record = math.prod(truth if right else 1 - truth for right in answers)
        without = math.prod(1 - truth if right else truth for right in answers)
        delta += max(0.0, with_record - math.exp(1.5) * without)
    assert answers_delta(eps, steps=6, at=1.5) == pytest.approx(delta, rel=1e-12)
    assert answers_epsilon(eps, steps=6, delta=delta) == pytest.approx(1.5, abs=1e-9)


@pytest.mark.parametrize(
    ("printed", "corrected", "check", "relation", "outcome"),
    [
        (2.0, 1.0, 1.0, "=", "confirmed"),
        (1.0, 1.0, 1.0, "=", "names only: same number"),
        (2.0, 1.5, 1.0, "=", "NOT CONFIRMED"),
        (0.5, 1.5, 1.0, "<=", "confirmed"),
        (2.0, 1.5, 1.0, "<=", "true, but loose"),
        (2.0, 0.5, 1.0, "<=", "NOT CONFIRMED"),
    ],
)
def test_an_outcome_follows_from_the_three_numbers(printed, corrected, check, relation, outcome):
    """The notebook calls nothing false that is only loose, and stops where a check does not bear a correction out."""
    words = dict.fromkeys(("where", "says", "correct", "quantity", "how"), "a < b")
    numbers = {
        "printed": printed,
        "corrected": corrected,
        "check": check,
        "within": 0.01,
        "relation": relation,
    }
    found = Erratum(**words, **numbers)
    assert found.outcome == outcome
    if outcome != "confirmed":
        with pytest.raises(AssertionError, match="a < b"):
            checked([lambda _: [found]], np.random.default_rng(0))
    assert table([found] * 3).count("<tr>") == 4
    assert "a < b" not in table([found])  # escaped


@pytest.mark.parametrize(
    ("places", "count"), [(MEMBERSHIP, 10), (BAYES, 11), (POST, 5), (SLIDES, 8), (EPSILON_STAR, 5)]
)
def test_every_erratum_is_borne_out_by_its_check(places, count):
    """Under another seed than the notebook's, too, each check bears out the correction and the outcome that it names."""
    found = checked(places, np.random.default_rng(5))
    assert len({erratum.where for erratum in found}) == len(found) == count
    assert all("NOT" not in erratum.outcome for erratum in found)
