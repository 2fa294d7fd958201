"""Shared fixtures and the switch for long simulations."""

import os

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


@pytest.fixture
def required():
    """Skip a test whose optional package is missing, or fail it where CI says that nothing may be missing."""

    def need(module):
        if os.environ.get("AUDITOR_REQUIRE_EXTRAS") == "1":
            return __import__(module)
        return pytest.importorskip(module)

    return need
