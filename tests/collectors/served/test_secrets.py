"""Credentials stay where they are: whatever a server answers, nothing that is told or written holds a piece of them.

Answers grow from good ones of each protocol: somewhere in them, or in the line and the headers before them, a server
repeats a secret. So they reach every sentence that has a server's words in it.
"""

import contextlib
import io
import json
import traceback
import warnings
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from fuzz.targets import often, places, put
from hypothesis import given, strategies as st

import auditor
from auditor.cli import app

TOKEN, USER = "tok-5eCr3t-Zx81Qw77", "user:hunter2222"
KEY = "Basic dXNlcjpodW50ZXIyMjIy"
SECRETS = (TOKEN, KEY.split()[1], USER)
PIECES = {word[at : at + 6].lower() for word in SECRETS for at in range(len(word) - 5)}
GROUPS = {"members": (np.eye(3), [0, 1, 0]), "nonmembers": (np.eye(3), [1, 0, 1])}
CONNECTION = {"retries": 0, "timeout": 5.0, "token_variable": "FUZZ_TOKEN"}


def told(text):
    """The pieces of credentials that a text holds, in whatever case."""
    return sorted(piece for piece in PIECES if piece in text.lower())


# --- What a server says ---------------------------------------------------------------------------------


def v2(n):
    """Outputs of the Open Inference Protocol."""
    data = [0.5] * (2 * n)
    return {"outputs": [{"name": "probs", "shape": [n, 2], "datatype": "FP64", "data": data}]}


def described(*inputs, outputs=("probs",)):
    """What a model of that protocol says about itself."""
    tensors = [{"name": name, "datatype": "FP64", "shape": [-1, 3]} for name in inputs]
    return {"name": "m", "inputs": tensors, "outputs": [{"name": name} for name in outputs]}


def completions(n):
    """Texts of two tokens each, echoed."""
    logs = {"token_logprobs": [None, -1.0], "text_offset": [0, 1], "tokens": ["a", " b"]}
    choices = [{"index": place, "text": "a b", "logprobs": logs} for place in range(n)]
    return {"choices": choices, "usage": {"prompt_tokens": 2 * n}}


# By the path of the address: what is told by GET, and what is answered to a request of n records.
GOOD = {
    "/v2/models/m": (
        [described("x"), described("x", "y", "z"), described("x", outputs=("label", "a"))],
        [v2, lambda n: {"outputs": [*v2(n)["outputs"], {**v2(n)["outputs"][0], "name": "scores"}]}],
    ),
    "/v1/models/m": (
        [{"metadata": {"signature_def": {"signature_def": {"serving_default": {"inputs": {"x": 1}}}}}}],
        [
            lambda n: {"predictions": [[0.5, 0.5]] * n},
            lambda n: {"predictions": [{"label": 1, "probs": [0.5, 0.5]}] * n},
            lambda n: {"outputs": {"a": [0.5] * n, "b": [0.5] * n}},
        ],
    ),
    "/invocations": ([{}], [lambda n: {"predictions": [0.5] * n}, lambda n: {"predictions": ["yes"] * n}]),
    "": ([{"models": ["m"]}, {"models": [{"name": "m"}, {"name": "n"}], **described("x")}], [v2]),
    "/v1/completions": ([{}], [completions]),
}
INTEGERS = st.sampled_from([0, -1, 2**32, 2**62, 10**400])


@st.composite
def echoes(draw):
    """A text in which a server repeats a secret: whole, cut, in capitals, with a prefix, where a limit would cut it."""
    word = draw(st.sampled_from([*SECRETS, KEY, f"Bearer {TOKEN}"]))
    start = draw(st.integers(0, len(word) - 6))
    word = word[start : start + draw(st.integers(6, len(word)))]
    word = draw(st.sampled_from([word, word.upper(), word.swapcase(), f"{word} {word}", word + word]))
    before = draw(st.sampled_from(["", "FP32", "INT", "x" * 50, "x" * 95, "y" * 190, "y" * 197, "'", '"\\']))
    return before + word + draw(st.sampled_from(["", " is wrong", "!" * 300, "'", "\n\x1b[31m"]))


def spoiled(value, way, new, *, key):
    """The answer with another item at a place, or another key for what is there."""
    holder = reduce(getitem, way[:-1], value)
    if key is None or not way or not isinstance(holder, dict):
        return put(value, way, new)
    kept = {name: item for name, item in holder.items() if name != way[-1]}
    return put(value, way[:-1], {**kept, key: holder[way[-1]]})


@st.composite
def scripts(draw, path):
    """What a server says: by GET, to a request of n records, and what stands before either."""
    facts, answers = GOOD[path]
    fact, answer, echo = draw(st.sampled_from(facts)), draw(st.sampled_from(answers)), draw(echoes())
    new = draw(
        st.sampled_from([echo, [echo], {echo: 1}, [3, echo]]) | INTEGERS | st.lists(INTEGERS, max_size=2)
    )
    key = draw(st.none() | st.just(echo))
    share = draw(st.floats(0, 1, exclude_max=True))
    where = draw(st.sampled_from(["fact", "answer", "body", "status", "header", "line", "nowhere"]))
    escaped = draw(st.booleans())

    def change(value):
        ways = list(places(value))
        return spoiled(value, ways[int(share * len(ways))], new, key=key)

    def text(value):
        return "".join(f"\\u{ord(sign):04x}" if escaped and sign.isalnum() else sign for sign in value)

    def raw(value):
        return json.dumps(value).replace(json.dumps(echo)[1:-1], text(json.dumps(echo)[1:-1]))

    def say(method, n):
        value = fact if method == "GET" else answer(n)
        if where == ("fact" if method == "GET" else "answer"):
            value = change(value)
        content, reason, headers = raw(value), "OK", {}
        status = 200
        if where == "body":
            content = echo + content
        elif where == "status":
            status, content, reason = draw_status, raw({"error": echo}), echo.splitlines()[0]
        elif where == "header":
            headers = {header: echo.splitlines()[0]}
            status = {"Location": 302, "Retry-After": 503}.get(header, 200)
        elif where == "line":
            return f"HTTP/{echo}\r\n\r\n".encode()
        lines = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(content.encode())}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n" + content).encode()

    draw_status = draw(st.sampled_from([400, 401, 404, 429, 500, 503]))
    header = draw(
        st.sampled_from(["Content-Encoding", "Location", "Retry-After", "Bad Name", "Content-Length"])
    )
    return say


# --- What is made of it ---------------------------------------------------------------------------------


def by_library(url, files):  # noqa: ARG001 - as the other
    """Everything that a caller of the library is given: results, errors with all they carry, and warnings."""
    headers = {"header_variables": {"X-Key": "FUZZ_KEY"}, **CONNECTION}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            if url.endswith("completions"):
                endpoint = auditor.CompletionsEndpoint(url, model="m", **headers)
                found = auditor.collect_texts(endpoint, members=["a b", "a b"], nonmembers=["a b", "a b"])
            else:
                endpoint = auditor.Endpoint(url, **headers)
                found = auditor.collect(endpoint, **GROUPS)
            given = [repr(found), *found.history, repr(endpoint)]
        except auditor.AuditorError as error:
            given = [repr(error), str(error), *map(str, error.args), *getattr(error, "__notes__", ())]
            given += traceback.format_exception(error)
    return "\n".join([*given, *(str(item.message) for item in said)])


def by_command(url, files):
    """Everything that the command line prints and writes."""
    out = files / "losses.csv"
    given = ["--members", files / "in.csv", "--nonmembers", files / "in.csv", "--set", "allow-shared-rows"]
    given += ["--out", out, "--overwrite", "--set", "retries=0", "--token-variable", "FUZZ_TOKEN"]
    given += ["--set", "header-variable=X-Key=FUZZ_KEY"]
    if url.endswith("completions"):
        given += ["--text-column", "text", "--set", "served-model=m", "--protocol", "completions"]
    else:
        given += ["--label", "label", "--features", "a,b,c"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = app.run(["collect", url, *map(str, given)])
    assert code in (0, 2), printed.getvalue()
    written = [path.read_text(errors="replace") for path in files.iterdir() if path.is_file()]
    return "\n".join([printed.getvalue(), *written])


@pytest.fixture
def files(tmp_path, require_extra):
    """A folder with a table of a few records."""
    require_extra("http")
    (tmp_path / "in.csv").write_text("a,b,c,label,text\n" + "1,0,0,0,a b\n0,1,0,1,a b\n" * 2)
    return tmp_path


@pytest.mark.parametrize("give", [by_library, by_command])
@pytest.mark.parametrize("path", GOOD)
def test_no_piece_of_a_secret_is_told(serve, monkeypatch, request, files, path, give):
    """No six letters of a credential stand in what is raised, printed, returned or written, whatever is answered."""
    monkeypatch.setenv("FUZZ_TOKEN", TOKEN)
    monkeypatch.setenv("FUZZ_KEY", KEY)
    script = []

    def send(handler, count):
        handler.close_connection = True
        handler.wfile.write(script[0](handler.command, count))

    server = serve(lambda _method, _path, body: records_in(body))
    server.send = send

    @often(request, 60 if give is by_library else 10)
    @given(scripts(path))
    def ask(say):
        script[:] = [say]
        assert told(give(server.url + path, files)) == []

    ask()


def records_in(body):
    """How many records a request holds, of whatever protocol."""
    body = body or {}
    rows = body.get("instances", body.get("inputs", body.get("prompt", body.get("dataframe_split", []))))
    if isinstance(rows, dict):
        rows = rows.get("data", [])
    return rows[0]["shape"][0] if rows and isinstance(rows[0], dict) and "shape" in rows[0] else len(rows)
