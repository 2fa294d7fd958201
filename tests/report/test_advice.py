"""Every check that is not fine says what to do."""

import pytest

from auditor.core import Check, Status
from auditor.report import advice

RANDOM = {"split": "random"}


@pytest.mark.parametrize(
    ("check", "data", "words"),
    [
        (("novelty", "fail"), {}, "."),  # a check of another version gets advice that fits any
        (("novelty", "warn"), {}, "."),
        (("novelty", "unknown"), {}, "."),
        (("shift", "unknown"), RANDOM, "Confirm the declared random split"),
        (("shift", "fail"), RANDOM, "cannot be true"),
        (("goodness_of_fit", "warn"), {}, "Ask for mixture"),
        (
            ("goodness_of_fit", "warn", {"mixture": {"rejected": False}}),
            {},
            "Decide by the certified bound. The mixture",
        ),
        (("goodness_of_fit", "warn", {"mixture": {"rejected": True}}), {}, "neither normals nor mixtures"),
        (("ties", "warn", {"advice": "Do this."}), {}, "Do this."),
    ],
)
def test_what_is_advised(check, data, words):
    """Advice goes by the status, the declared split and what was fitted; a check's own comes first, as it is."""
    name, status, *details = check
    assert words in advice(Check(name, Status(status), "", *details), data)
