"""Results that somebody edited: each field of each kind of result changed, deleted or put in place of another."""

import copy
import json
import random

import numpy as np
import pytest
from command_line import run
from sklearn.tree import DecisionTreeClassifier

import auditor
from auditor.results.document import content_hash

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\n::error::x"
# Commands of a terminal and of a build server, and a turned direction.
UNSEEN = ("\x1b[31m", "\u202e", "\n::error::")
VALUES = [HOSTILE, -1, 1e308, 0.999, 10**30, True, None, "inf", "", [], [[HOSTILE]], {}, {HOSTILE: HOSTILE}]


def made(folder):
    """One small result of each kind, as its JSON."""
    rng = np.random.default_rng(7)
    losses = [
        auditor.Losses(
            member=rng.normal(-1, 1, 60),
            nonmember=rng.normal(0, 1, 60),
            id=(np.arange(60).astype(str), np.arange(60, 120).astype(str)),
        )
        for _ in range(2)
    ]
    claim = auditor.StatedClaim(0.5, 1e-5)
    audits = [auditor.audit(item, split=auditor.RandomSplit(), claim=claim) for item in losses]
    results = {
        "audit": audits[0],
        "instances": auditor.audit_instances(losses, delta=1e-5),
        "runs": auditor.audit_runs(
            auditor.Losses(member=rng.normal(-3, 1, 40), nonmember=rng.normal(0, 1, 40)), delta=1e-5
        ),
    }
    x, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    results["labels"] = auditor.audit_labels(
        DecisionTreeClassifier().fit(x, y), (x, y), probabilities=np.full((300, 2), 0.5)
    )
    found = {kind: json.loads(result.to_json()) for kind, result in results.items()}
    path = folder / "claim.json"
    line = [
        "claim",
        "--noise-multiplier",
        1,
        "--sampling-rate",
        0.1,
        "--steps",
        10,
        "--delta",
        1e-5,
        "--quiet",
    ]
    assert run(*line, "--json", path) == 0
    return {**found, "claim": json.loads(path.read_text(encoding="utf-8"))}


def places(value, path=()):
    """Every path to a value: of a list the first item and the last."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else []
    if isinstance(value, list):
        items = [(place, value[place]) for place in sorted({0, len(value) - 1}) if value]
    for key, item in items:
        yield from places(item, (*path, key))


def edited(raw, path, draw):
    """The same JSON with one value changed, deleted, or in place of another; the hash made again in half of the cases."""
    raw = copy.deepcopy(raw)
    holder = raw
    for key in path[:-1]:
        holder = holder[key]
    how = draw.random()
    if how < 0.2:
        del holder[path[-1]]
    elif how < 0.4:
        other = draw.choice(list(places(raw)))
        there = raw
        for key in other:
            there = there[key]
        holder[path[-1]] = copy.deepcopy(there)
    else:
        holder[path[-1]] = draw.choice(VALUES)
    again = draw.random() < 0.5 and isinstance(raw.get("provenance"), dict)
    if again:
        raw["provenance"]["content_sha256"] = content_hash(raw)
    return raw, again


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """One small result of each kind."""
    return made(tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("kind", ["audit", "instances", "runs", "labels", "claim"])
def test_an_edited_result_is_refused_or_marked_and_shows_nothing_unescaped(
    request, originals, kind, tmp_path, capsys
):
    """A sentence and exit code 2, or the mark of an altered result, or a page that commands nothing; never a traceback."""
    raw, draw, outcomes = originals[kind], random.Random(kind), []  # noqa: S311 - no secret
    paths = list(places(raw))
    draw.shuffle(paths)
    chosen = paths[: 75 if request.config.getoption("--long") else 45]
    path = tmp_path / "r.json"
    for number, place in enumerate(chosen):
        changed, again = edited(raw, place, draw)
        if changed == raw:
            continue
        path.write_text(json.dumps(changed), encoding="utf-8")
        capsys.readouterr()
        code = run("report", path, "--markdown", tmp_path / "r.md", "--set", "allow-unjudged")
        printed = capsys.readouterr()
        about = (number, place, printed.err[:200])
        assert "this is a bug" not in printed.err, about
        shown = [printed.out, printed.err]
        if code == 2:
            assert printed.err.startswith("error: "), about
            assert printed.err.count("\n") == 1, about
            outcomes.append("refused")
        else:
            result = auditor.read_result(path)
            assert again or result.altered, about
            assert again or code == 3, about
            shown += [(tmp_path / "r.md").read_text(encoding="utf-8"), result.to_sarif(), result.to_junit()]
            if number % 12 == 0:
                shown.append(result.to_html())
                assert "<img" not in shown[-1], about
            outcomes.append("marked" if result.altered else "shown")
        assert [words for words in UNSEEN if any(words in text for text in shown)] == [], about
    assert len(outcomes) >= 0.6 * len(chosen)
    assert set(outcomes) == {"refused", "marked", "shown"}
