"""A credential in an address is sent to nobody who could read it on the way, and appears in no message and no file."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
from command_line import leaking, run

import auditor
from auditor.collectors.served import Connection, Request, Transport

SECRET = "hunter2-Zx81Qw77"  # noqa: S105 - of no server
# Some that `Connection` knows as those of credentials, and some that nothing knows: the value decides.
NAMES = [
    "token",
    "access_token",
    "sig",
    "X-Amz-Signature",
    "sv",
    "code",
    "api-key",
    "Ocp-Apim-Subscription-Key",
]
NAMES += ["Authentication", "pwd", "clientSecret", "session", "sas", "t"]
PLACES = ("query", "user", "password", "fragment", "parameter", "bare query")


def address(base, name, place="query"):
    """An address with the secret at a place."""
    scheme, _, rest = base.partition("://")
    return {
        "query": f"{base}?{name}={SECRET}",
        "user": f"{scheme}://{SECRET}@{rest}",
        "password": f"{scheme}://{name}:{SECRET}@{rest}",
        "fragment": f"{base}#{name}={SECRET}",
        "parameter": f"{base};{name}={SECRET}",
        "bare query": f"{base}?a=1&{SECRET}",
    }[place]


@pytest.fixture
def files(tmp_path, monkeypatch, require_extra):
    """The current folder, with tables, a result of an audit, and nothing that leads out of this machine."""
    require_extra("http")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    leaking(tmp_path / "losses.csv", np.random.default_rng(0), member=40, nonmember=40)
    pd.DataFrame({"a": [1.0, 2.0] * 3, "y": [0, 1] * 3}).to_csv("in.csv", index=False)
    pd.DataFrame({"a": [3.0, 4.0] * 3, "y": [0, 1] * 3}).to_csv("out.csv", index=False)
    assert run("audit", "losses.csv", "--json", "r.json", "--quiet") == 0
    monkeypatch.setattr("socket.getaddrinfo", _nowhere)
    return tmp_path


def _nowhere(host, *_, **__):
    raise AssertionError(f"{host} was looked up")


def told(capfd, caplog, folder, *arguments, code=(2,)):
    """Everything that a command prints, logs and writes."""
    caplog.set_level("DEBUG")
    capfd.readouterr()
    assert run(*arguments) in code
    printed = capfd.readouterr()
    written = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    logged = [logging.Formatter().format(record) for record in caplog.records]
    return "\n".join([printed.out, printed.err, *logged, *written])


SENT = [
    "--members",
    "in.csv",
    "--nonmembers",
    "out.csv",
    "--label",
    "y",
    "--out",
    "o.parquet",
    "--set",
    "retries=0",
]
COMMANDS = {
    "collect": lambda link: ["collect", link, *SENT],
    "completions": lambda link: ["collect", link, *SENT, "--text-column", "a"],
    "table": lambda link: ["collect", "m.onnx", "--members", link, *SENT[2:8]],
    "losses": lambda link: ["audit", link],
    "members": lambda link: ["audit", "--members", link, "--nonmembers", "in.csv"],
    "number": lambda link: ["audit", "losses.csv", "--delta", link],
    "output": lambda link: ["audit", "losses.csv", "--html", link],
    "settings": lambda link: ["audit", "losses.csv", "--config", link],
    "result": lambda link: ["report", link],
    "results": lambda link: ["compare", link, "r.json"],
    "altered": lambda link: ["report", link, "--verify"],
    "folder": lambda link: ["report", link, "--html", "site"],
    "model": lambda link: ["collect", link.replace("http", "s3", 1), *SENT[:8]],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_tells_a_credential_of_an_address_it_refuses(files, capfd, caplog, command):
    """Of 14 names and 6 places in an address none brings the credential into a sentence, a traceback, a log or a file."""
    for at, name in enumerate(NAMES):
        link = address("http://models.example/v2/models/m.json", name, PLACES[at % len(PLACES)])
        line = COMMANDS[command](link)
        for more in [(), ("--debug",)] if at < len(PLACES) else [()]:
            assert SECRET not in told(capfd, caplog, files, *line, *more), line


@pytest.mark.parametrize("name", NAMES)
def test_credentials_over_plain_http_are_refused_before_anything_is_sent(
    files, capfd, caplog, name, require_extra
):
    """An endpoint, and an address that is summarised, whatever the credential is called, is not even looked up."""
    require_extra("remote")
    for place in ("query", "fragment", "bare query"):
        link = address("http://models.example/losses.parquet", name, place)
        for line in (["collect", link, *SENT], ["summarise", link, "--out", "s.parquet"]):
            found = told(capfd, caplog, files, *line)
            assert SECRET not in found
            assert "https" in found or "must hold no credentials" in found


@pytest.mark.parametrize("value", ["2024-02-01", "2024-02-15-preview", "3", "v1.2", "1.20.3", "true"])
def test_what_is_plainly_no_credential_may_go_over_http(value):
    """A version, a date or a short word in the query leaves the address as usable as before."""
    assert (
        Connection(f"http://models.example/score?api-version={value}").display_url
        == "http://models.example/score"
    )


@pytest.fixture
def tables():
    """A server on loopback of one file, as a presigned link gives it, that keeps the requested paths."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        content = b""

        def log_message(self, *_):
            """Say nothing."""

        def do_HEAD(self):
            """Answer with the size."""
            self.do_GET(body=False)

        def do_GET(self, *, body=True):
            """Answer with a range of the file, where the link is the right one."""
            seen.append(self.path)
            here = f"={SECRET}" in self.path and "missing" not in self.path
            start, end = 0, len(self.content) - 1
            if here and "Range" in self.headers:
                start, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = self.content[start : end + 1] if here else b""
            self.send_response(404 if not here else 206 if "Range" in self.headers else 200)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Accept-Ranges", "bytes")
            if "Range" in self.headers:
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(self.content)}")
            self.end_headers()
            self.wfile.write(part if body else b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", Handler, seen
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", NAMES[::5])
def test_a_presigned_link_is_summarised_and_never_shown(tmp_path, capfd, caplog, tables, name, require_extra):
    """The table at a presigned link is counted; neither it, a broken table, nor a missing one is named with the signature."""
    require_extra("remote")
    pytest.importorskip("aiohttp")
    base, handler, seen = tables
    frame = pd.DataFrame({"loss": [0.1, 0.2, 0.3, 0.9], "member": [1, 1, 0, 0]})
    frame.to_parquet(tmp_path / "t.parquet")
    link = address(f"{base}/t.parquet", name)
    for content, path, code in (
        ((tmp_path / "t.parquet").read_bytes(), link, 0),
        (b"no table" * 50, link, 2),
        (b"", link.replace("t.parquet", "missing.parquet"), 2),
    ):
        handler.content = content
        line = ["summarise", path, "--out", tmp_path / "s.parquet", "--every-bin", "--debug"]
        assert SECRET not in told(capfd, caplog, tmp_path, *line, code=(code,))
    assert any(SECRET in path for path in seen)
    assert auditor.Summary.read(tmp_path / "s.parquet").n_member == 2


def test_a_presigned_link_is_audited_and_never_shown(tmp_path, capfd, caplog, tables, require_extra):
    """Losses, and a table of outputs, at a presigned link are read there; no output, log or result has the signature."""
    require_extra("remote")
    pytest.importorskip("aiohttp")
    base, handler, seen = tables
    p = np.linspace(0.1, 0.9, 40)
    frame = pd.DataFrame(
        {"loss": p, "p_0": 1 - p, "p_1": p, "y": np.arange(40) % 2, "member": np.arange(40) // 20}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    handler.content = (tmp_path / "t.parquet").read_bytes()
    link, result = address(f"{base}/t.parquet", "sig"), tmp_path / "r.json"
    collect = ["collect", "--outputs", link, "--label", "y", "--out", tmp_path / "l.parquet"]
    for line in (["audit", link, "--json", result, "--html", tmp_path / "r.html"], collect):
        assert SECRET not in told(capfd, caplog, tmp_path, *line, "--debug", code=(0,))
    assert any(SECRET in path for path in seen)
    assert "t.parquet" in result.read_text()
    own = np.where(frame.y, p, 1 - p)[frame.member == 1]
    losses = auditor.read_losses(tmp_path / "l.parquet").member
    np.testing.assert_allclose(losses, np.log1p(-own) - np.log(own))


@pytest.mark.parametrize("name", ["sig", "X-Amz-Signature", "session", "whatever"])
@pytest.mark.parametrize("key", ["members", "reference", "html", "model", "strategy"])
def test_an_address_in_a_file_of_settings_is_never_shown(files, capfd, caplog, key, name):
    """Neither the result, its page nor a sentence repeats what a file of settings has in an address."""
    link = address("https://models.example/x.json", name)
    (files / "away").mkdir()
    settings = files / "away" / "auditor.toml"
    settings.write_text(f"[audit]\n{key} = {json.dumps(link)}\n")
    line = [
        "audit",
        "losses.csv",
        "--config",
        "away/auditor.toml",
        "--json",
        "new.json",
        "--markdown",
        "new.md",
    ]
    caplog.set_level("DEBUG")
    run(*line, *([] if key == "html" else ["--html", "new.html"]), "--debug")
    printed = capfd.readouterr()
    written = [path.read_text() for path in files.rglob("new.*") if path.is_file()]
    assert SECRET not in "\n".join([printed.out, printed.err, *written])
    assert len(written) == (3 if key in ("model", "strategy") else 0)


def test_what_a_server_repeats_of_the_query_is_not_told(serve, caplog):
    """A server that echoes the query of an address, as it is and decoded, brings no word of it into a sentence or a log."""
    caplog.set_level("DEBUG")
    server = serve(lambda _method, path, _body: (400, {}, {"error": f"bad {path} hunter2 Zx81Qw77=="}))
    asked = Transport(Connection(f"{server.url}/score?whatever=hunter2%20Zx81Qw77%3D%3D", retries=0))
    with pytest.raises(auditor.InputError) as caught:
        asked.many([Request(b"{}")])[0]
    assert "hunter2%20Zx81Qw77" in server.seen[0][1]
    assert "/score" in caplog.text
    assert not [
        text for text in (str(caught.value), caplog.text) for word in ("hunter2", "Zx81Qw") if word in text
    ]


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("http://models.example/score?whatever=hunter2-Zx81Qw77", {}),
        ("http://models.example/score", {"token_variable": "SOME_TOKEN"}),
        ("http://models.example/score", {"header_variables": {"X-Key": "SOME_TOKEN"}}),
    ],
)
def test_no_proxy_sees_credentials_in_the_clear(monkeypatch, url, more):
    """With a consent to plain http too, credentials are not sent through a proxy that could read them."""
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    assert Connection(url, allow_plain_http=True, **more)
    with pytest.raises(auditor.InputError, match="leave out use_proxies=") as caught:
        Connection(url, allow_plain_http=True, use_proxies=True, **more)
    assert SECRET not in str(caught.value)
    assert Connection(url.replace("http:", "https:"), use_proxies=True, **more)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_request_to_this_machine_passes_no_proxy(serve, monkeypatch, closed_port, host):
    """A request to loopback with a credential is sent without the proxy of the environment, wherever that is."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, closed_port.replace("://", f"://user:{SECRET}@"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = serve(lambda *_: {"a": 1})
    port = server.url.rpartition(":")[2]
    asked = Transport(Connection(f"http://{host}:{port}/score?sig2={SECRET}", use_proxies=True, retries=0))
    assert asked.many([Request(b"{}")])[0] == {"a": 1}


def test_debug_shows_no_cell(tmp_path, capfd):
    """Neither what pandas or pyarrow says of a cell nor a local stands in the traceback of --debug."""
    for at, text in enumerate(
        ("loss,member\n0.1,1\nsecret-cell,0\n0.3,0\n0.2,1\n", "loss,member\n0.1,1\n0.2,0,secret-cell\n")
    ):
        (tmp_path / "l.csv").write_text(text)
        assert run("audit", tmp_path / "l.csv", "--debug") == 2
        *trace, _sentence = capfd.readouterr().err.splitlines()
        assert len(trace) > 5
        assert "Traceback" in trace[0]
        assert [line for line in trace if "secret-cell" in line] == [], at


def test_an_error_that_was_not_foreseen_quotes_no_cell(tmp_path, capfd, monkeypatch):
    """The message of a bug, which may hold a cell, is neither in the sentence nor in the traceback; that of the system is."""
    leaking(tmp_path / "l.csv", np.random.default_rng(0), member=40, nonmember=40)
    for error, words in (
        (KeyError("secret-cell"), "unexpected KeyError"),
        (OSError("disk full"), "disk full"),
    ):

        def fail(*_, error=error, **__):
            raise RuntimeError("secret-cell") from error

        def fail_alone(*_, error=error, **__):
            raise error

        for one in (fail, fail_alone):
            monkeypatch.setattr("auditor.api.audit_of", one)
            assert run("audit", tmp_path / "l.csv", "--debug") == 2
            said = capfd.readouterr().err
            assert "secret-cell" not in said
            assert (words if one is fail_alone else "unexpected RuntimeError") in said
            assert type(error).__name__ in said
