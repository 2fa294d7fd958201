"""Shared fixtures and the switch for long simulations."""

import numpy as np
import pytest


def pytest_addoption(parser):
    """Add ``--long``: simulations at full size."""
    parser.addoption("--long", action="store_true", default=False, help="run simulations at full size")


def pytest_collection_modifyitems(config, items):
    """Skip what is marked long unless asked for."""
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="full-size simulation; run with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


@pytest.fixture
def rng():
    """A fresh generator with a fixed seed."""
    return np.random.default_rng(20261121)
