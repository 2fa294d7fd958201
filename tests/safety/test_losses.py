"""No loss and no feature of a record leaves an audit unless it is requested."""

import json
import re

import numpy as np
import pytest

import auditor
from auditor.curves import log_odds, published
from auditor.report import audit_text, render

N = 300


@pytest.fixture(scope="module")
def audited():
    """An audit of losses and features that cannot be mistaken for anything else, and these numbers."""
    rng = np.random.default_rng(5)
    losses = auditor.Losses(
        member=rng.exponential(0.3, N) + 0.01,
        nonmember=rng.exponential(1, N) + 0.01,
        id=([f"a{i}" for i in range(N)], [f"b{i}" for i in range(N)]),
        group=(rng.choice(["x", "y"], N), rng.choice(["x", "y"], N)),
    )
    features = auditor.Features(member=rng.normal(size=(N, 2)), nonmember=rng.normal(size=(N, 2)))
    result = auditor.audit(
        losses,
        split=auditor.RandomSplit(),
        claim=auditor.StatedClaim(epsilon=1, delta=1e-5),
        mixture=auditor.Mixture(2),
        features=features,
        reference=auditor.Losses(member=rng.exponential(1, N), nonmember=rng.exponential(1, N)),
    )
    scales = [losses, published(losses), log_odds(losses)]
    values = [np.concatenate([item.member, item.nonmember]) for item in scales]
    values.append(np.concatenate([np.ravel(features.member), np.ravel(features.nonmember)]))
    return result, np.concatenate(values)


def _numbers(value, where=""):
    """Every number in a JSON value, with its place."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _numbers(item, f"{where}/{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item, where)
    elif isinstance(value, float) and value != round(value):
        yield where, value


def test_json_has_none(audited):
    """No number of a result is a record's loss, on any of the scales it is put on, or a feature's value."""
    result, secret = audited
    found = {
        where
        for where, value in _numbers(json.loads(result.to_json()))
        if np.min(np.abs(secret - value)) <= 1e-9 * max(1.0, abs(value))
    }
    assert found == set()


_DIGITS = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")


def _said(text, secret):
    """Numbers of seven digits or more in a text that are one of those, rounded."""
    tokens = {
        item for item in _DIGITS.findall(text) if len(item.split("e")[0].replace(".", "").lstrip("0")) >= 7
    }
    return {item for item in tokens if np.min(np.abs(np.abs(secret) / float(item) - 1)) < 1e-6}


def test_texts_have_none(audited):
    """No output holds the digits of a loss or of a feature's value."""
    result, secret = audited
    outputs = [render([result]), audit_text(result), result.to_markdown(), result.to_junit()]
    outputs += [result.to_sarif(), result._repr_html_()]
    assert [(at, found) for at, text in enumerate(outputs) if (found := _said(text, secret))] == []


def test_they_would_be_found(audited):
    """A loss in a number or in a text is found by the tests above: they can fail."""
    _, secret = audited
    value = float(secret[7])
    assert np.min(np.abs(secret - float(f"{value:.12g}"))) <= 1e-9
    assert _said(f"the loss is {value:.7g}.", secret)
    assert not _said(f"the loss is about {value:.4g}.", secret)


def test_ranking_has_none(tmp_path):
    """The table of ranked records holds no losses."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.exponential(0.3, N), nonmember=rng.exponential(1, N))
    secret = np.concatenate([losses.member, losses.nonmember])
    ranking = auditor.rank_records(losses, rng=rng)
    ranking.write(tmp_path / "ranking.csv")
    assert _said((tmp_path / "ranking.csv").read_text(encoding="utf-8"), secret) == set()
