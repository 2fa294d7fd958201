"""Targets of a fuzzer: every reader of files of others, and the answers of servers, as functions of bytes.

A target may refuse what it is given, with the package's own error in one printable sentence; whatever else it raises is a
finding. All are called as users call them, so that they outlive any rewriting of what they test.
"""

import contextlib
import io
import json
import tempfile
import unittest
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
from collectors.server import Server

import auditor
from auditor.cli import run

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
GROUPS = {"members": (X, [0, 1, 0]), "nonmembers": (X, [1, 0, 1])}


class FindingError(AssertionError):
    """Exceptions that no input may cause."""


@contextlib.contextmanager
def refusing():
    """Let the package refuse, in one printable sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except auditor.MissingExtraError as error:
        raise unittest.SkipTest(str(error)) from None  # or nothing would be fed, and all be well
    except auditor.AuditorError as error:
        sentence = str(error)
        if not sentence.isprintable() or "this is a bug" in sentence or not sentence.strip():
            raise FindingError(f"not one printable sentence: {sentence!r}") from error
        try:
            sentence.encode()
        except UnicodeEncodeError as wrong:
            raise FindingError(f"not text: {sentence!r}") from wrong


@contextlib.contextmanager
def file_of(content: bytes, name: str):
    """A file with this content, and nothing beside it."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


# --- Tables -----------------------------------------------------------------------------------------


def losses(content: bytes, kind: str) -> None:
    """Read a table of losses."""
    with refusing(), file_of(content, f"t{kind}") as path:
        auditor.read_losses(path)


def records(content: bytes, kind: str) -> None:
    """Score the records of a table, which holds both groups."""
    with refusing(), file_of(content, f"t{kind}") as path:
        auditor.collect(_first_feature, records=auditor.RecordTable(path, label="y"))


def _first_feature(features):
    value = np.asarray(features, dtype=object)[:, 0]
    numbers = np.array(
        [item if isinstance(item, int | float) else 0.0 for item in value.tolist()], dtype=float
    )
    return 1 / (1 + np.exp(-np.nan_to_num(np.clip(numbers, -30, 30))))


def features(content: bytes, kind: str) -> None:
    """Read a table of features."""
    with refusing(), file_of(content, f"t{kind}") as path:
        auditor.collectors.read_features(path, columns=["x", "word"])


def schedule(content: bytes, kind: str) -> None:
    """Read a training description."""
    with refusing(), file_of(content, f"t{kind}") as path:
        auditor.collectors.read_schedule(path)


# --- Results, settings, models ----------------------------------------------------------------------


def result(content: bytes, kind: str) -> None:
    """Read a stored result, and write it again."""
    with refusing(), file_of(content, f"t{kind}") as path:
        json.loads(auditor.read_result(path).to_json())


def settings(content: bytes, kind: str) -> None:
    """Run a command with a file of settings, which ends in 0 or in one sentence and 2."""
    errors = io.StringIO()
    with (
        file_of(content, f"auditor{kind}") as path,
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        code = run(["power", "--epsilon", "1", "--delta", "1e-5", "--config", str(path), "--quiet"])
    said = errors.getvalue()
    if code not in (0, 2) or "this is a bug" in said or said.count("\n") > 1:
        raise FindingError(f"exit code {code}: {said!r}")


def model(content: bytes, kind: str) -> None:
    """Open the file of a model, and ask it once."""
    with refusing(), file_of(content, f"t{kind}") as path:
        auditor.collect(auditor.load_model(path, trust_pickle=kind == ".json"), **GROUPS)


# --- Answers of servers -----------------------------------------------------------------------------


@cache
def _server() -> Server:
    return Server(lambda *_: b"{}")


def answer(content: bytes, kind: str) -> None:
    """Ask a server that answers every request with these bytes."""
    server = _server()
    server.seen.clear()
    server.headers.clear()
    server.answer = lambda *_: (200, {}, content)
    few = {"retries": 0, "timeout": 5.0, "max_response_bytes": 100_000}
    with refusing():
        if kind == ".completions":
            endpoint = auditor.collectors.CompletionsEndpoint(
                f"{server.url}/v1/completions", model="m", **few
            )
            auditor.collect_texts(endpoint, members=["one text", "two"], nonmembers=["three", "and four"])
        else:
            path = {".v1": "/v1/models/m", ".v2": "/v2/models/m", ".mlflow": "/invocations"}[kind]
            auditor.collect(auditor.Endpoint(server.url + path, **few), **GROUPS)


TARGETS: dict[str, Callable[[bytes, str], None]] = {
    **{f"losses{kind}": losses for kind in (".csv", ".parquet", ".npz", ".arrow", ".feather")},
    **{f"records{kind}": records for kind in (".csv", ".parquet", ".npz", ".arrow", ".feather")},
    "features.csv": features,
    "schedule.csv": schedule,
    "result.json": result,
    "settings.toml": settings,
    **{f"model{kind}": model for kind in (".onnx", ".json", ".skops")},
    **{f"answer{kind}": answer for kind in (".v1", ".v2", ".mlflow", ".completions")},
}


def fed(name: str, content: bytes) -> None:
    """Give a target its input."""
    TARGETS[name](content, Path(name).suffix)


# --- How often, and where, what is fed is spoiled ---


def often(request, least):
    """How often an input is drawn: the same few each time, or many others with ``--long``."""
    long = request.config.getoption("--long")
    return hypothesis.settings(
        max_examples=5000 if long else least,
        deadline=None,
        database=None,
        derandomize=not long,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def places(value, path=()):
    """Every place in a value of JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def put(value, path, new):
    """The same value with another at one place."""
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = put(changed[path[0]], path[1:], new)
    return changed
