"""Small audits of simulated losses, made once."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from report.conftest import changed

import auditor


@cache
def _audited(shift, seed, delta):
    rng = np.random.default_rng(seed)
    losses = auditor.Losses(member=rng.normal(-shift, 1, 600), nonmember=rng.normal(0, 1, 600))
    return auditor.audit(losses, delta=delta)


@pytest.fixture(scope="session")
def audited():
    """Make an audit: ``shift`` is how far members lie below the others, in standard deviations; a twin counts as of other losses."""

    def make(shift, seed=0, *, delta=1e-5, twin=0, **data):
        found = _audited(shift, seed, delta)
        made_of = f"{found.provenance['input_sha256']}{twin or ''}"
        provenance = {**found.provenance, "input_sha256": made_of}
        return replace(found, data={**found.data, **data}, provenance=provenance)

    return make


@pytest.fixture(scope="session")
def trained(audited):
    """Make an audit with a strategy and a test accuracy."""

    def make(shift, seed, strategy, accuracy, **more):
        utility = {"value": accuracy, "name": "test accuracy", "higher_is_better": True}
        return audited(shift, seed, strategy=strategy, utility=utility, **more)

    return make


@pytest.fixture(scope="session")
def six(trained):
    """Three strategies, of one, two and three models."""
    return [
        trained(0.2, 1, "private", 0.70, model="private1"),
        trained(0.6, 2, "plain", 0.80, model="plain1"),
        trained(0.7, 3, "plain", 0.84, model="plain2"),
        trained(1.2, 4, "overfitted", 0.75, model="over1"),
        trained(1.3, 5, "overfitted", 0.76, model="over2"),
        trained(1.4, 6, "overfitted", 0.77, model="over3"),
    ]


@pytest.fixture(scope="session")
def failed():
    """Make an audit whose validity check failed."""

    def make(result, name="duplicates"):
        check = auditor.results.Check(name, auditor.results.Status.FAIL, "Many records are in both groups.")
        return replace(result, checks=(*(item for item in result.checks if item.name != name), check))

    return make


@pytest.fixture(scope="session")
def valued():
    """Make an audit whose estimate of that name has another value or other details."""

    def make(result, name="epsilon_star.gaussian", **fields):
        return changed(result, name, **fields)

    return make
