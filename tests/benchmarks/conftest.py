"""A ratio that a busy machine disturbed is measured again: a benchmark fails when it fails three times in a row."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Let every benchmark of this folder run up to three times."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


@pytest.fixture
def told(capsys):
    """Print what was measured, whatever is captured."""

    def tell(words):
        with capsys.disabled():
            print(f"\n{words}")  # noqa: T201

    return tell
