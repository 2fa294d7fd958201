"""Credentials stay where they are: where one is sent, nothing that is returned, raised, printed or written quotes the server."""

import contextlib
import io
import traceback
import warnings

import numpy as np
import pytest

import auditor
from auditor.cli import app

TOKEN, KEY = "tok-5eCr3t-Zx81Qw77", "Basic dXNlcjpodW50ZXIyMjIy"
ECHO = f"said {TOKEN} and dXNlcjpodW50ZXIyMjIy"
GROUPS = {"members": (np.eye(3), [0, 1, 0]), "nonmembers": (np.eye(3), [1, 0, 1])}
TENSOR = {"name": "probs", "shape": [3, 2], "datatype": "FP64", "data": [0.5] * 6}


def tensors(*names):
    """Metadata of the inputs of a model of the Open Inference Protocol."""
    return {"name": "m", "inputs": [{"name": name, "datatype": "FP64", "shape": [-1, 3]} for name in names]}


V1, V2 = "/v1/models/m:predict", "/v2/models/m"
# By the place where a server repeats a credential: the path of the address, the answers to GET and to POST, and what of the
# sentence stays.
PLACES = {
    "error": (V1, {}, (400, {}, {"error": ECHO}), "answered 400"),
    "fault": (V1, {}, (500, {}, {"error": ECHO}), "answered 500"),
    "no JSON": (V1, {}, (200, {}, ECHO.encode()), "incomplete JSON"),
    "encoding": (V1, {}, (200, {"Content-Encoding": ECHO}, b"{}"), "a compression that was not requested"),
    "redirect": (V1, {}, (302, {"Location": f"http://h/{ECHO}"}, b""), "redirects (302)"),
    "header": (V1, {}, (200, {"Bad Name": ECHO}, {}), "cannot be queried|broke off|without predictions"),
    "label": (V1, {}, {"predictions": [ECHO] * 3}, "predicted labels"),
    "class": (V1, {}, {"predictions": [{TOKEN: 0.5, "b": 0.5}] * 3}, "a credential as the name of a class"),
    "piece": (V1, {}, {"predictions": [{TOKEN[4:12]: 0.5, "b": 0.5}] * 3}, "a credential as the name of a class"),
    "outputs": (V1, {}, {"outputs": {ECHO: [0.5] * 3, "b": [0.5] * 3}}, "answered with the outputs"),
    "inputs": (V2, tensors("a", ECHO), {}, "has the inputs (not quoted"),
    "input": (V2, tensors(ECHO), (400, {}, {}), "answered 400"),
    "shape": (V2, {}, {"outputs": [{**TENSOR, "shape": ECHO}]}, "no tensor of the shape"),
    "tensors": (V2, {}, {"outputs": [{**TENSOR, "name": ECHO}, {**TENSOR, "name": "b"}]}, "answered with the outputs"),
    "completions": ("/v1/completions", {}, {"choices": [{"text": ECHO, "logprobs": {}}] * 3}, "token_logprobs"),
}  # fmt: skip


def by_library(url, files):  # noqa: ARG001 - as the other
    """Everything that a caller of the library gets: results, errors with all they carry, and warnings."""
    options = {"retries": 0, "token_variable": "TOKEN", "header_variables": {"X-Key": "KEY"}}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            if url.endswith("completions"):
                endpoint = auditor.collectors.CompletionsEndpoint(url, model="m", **options)
                losses = auditor.collect_texts(endpoint, members=["a b"] * 3, nonmembers=["a b"] * 3)
            else:
                endpoint = auditor.Endpoint(url, **options)
                losses = auditor.collect(endpoint, **GROUPS)
            found = [repr(losses), *losses.history, repr(endpoint)]
        except auditor.AuditorError as error:
            found = [repr(error), *map(str, error.args), *traceback.format_exception(error)]
    return "\n".join([*found, *(str(item.message) for item in warned)])


def by_command(url, files):
    """Everything that the command line prints and writes."""
    line = ["--members", files / "in.csv", "--nonmembers", files / "out.csv"]
    line += [
        "--out",
        files / "losses.parquet",
        "--overwrite",
        "--set",
        "retries=0",
        "--token-variable",
        "TOKEN",
    ]
    line += ["--set", "header-variable=X-Key=KEY"]
    if url.endswith("completions"):
        line += ["--text-column", "text", "--set", "served-model=m", "--protocol", "completions"]
    else:
        line += ["--label", "label", "--features", "a,b,c"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert app.run(["collect", url, *map(str, line)]) == 2, printed.getvalue()
    return "\n".join([printed.getvalue(), *(path.read_text(errors="replace") for path in files.iterdir())])


@pytest.mark.parametrize("give", [by_library, by_command])
@pytest.mark.parametrize("place", PLACES)
def test_no_word_of_a_server_is_quoted_beside_credentials(serve, monkeypatch, tmp_path, place, give):
    """Wherever a server repeats a credential, whole or in part, the sentence keeps what went wrong and none of its words."""
    path, fact, answer, kept = PLACES[place]
    monkeypatch.setenv("TOKEN", TOKEN)
    monkeypatch.setenv("KEY", KEY)
    for name in ("in.csv", "out.csv"):
        (tmp_path / name).write_text("a,b,c,label,text\n1,0,0,0,a b\n0,1,0,1,a b\n0,0,1,0,a b\n")
    server = serve(lambda method, *_: fact if method == "GET" else answer)
    found = " ".join(give(server.url + path, tmp_path).split())
    assert any(words in found for words in kept.split("|")), found
    words = (TOKEN, KEY.split()[1], "user:hunter2222", ECHO)
    pieces = {word[at : at + 6].lower() for word in words for at in range(len(word) - 5)}
    assert [piece for piece in pieces if piece in found.lower()] == []
