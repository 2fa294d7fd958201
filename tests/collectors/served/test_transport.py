"""Requests to one server: repeated where that helps, refused in one sentence where it does not, and sent nowhere else."""

import gzip
import pickle
import re
import socket
import ssl
import threading
import time
import traceback
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from auditor import InputError
from auditor.collectors.served import Connection, Request, Transport, printable, run_in_order

SECRET = "tok-5e1f-very-secret"  # noqa: S105 - of no server
CERTIFICATE = Path(__file__).with_name("localhost.pem")
TOKEN = {"token_variable": "SCORER_TOKEN"}


def transport(server, **kwargs):
    """A transport to a path of a server, with short pauses."""
    url = server if isinstance(server, str) else f"{server.url}/score"
    return Transport(Connection(url, **{"pause": 0.01, "retries": 2, "timeout": 5.0, **kwargs}))


def then(*answers):
    """Answer with one after the other, and with the last for ever."""
    waiting, lock = list(answers), threading.Lock()

    def answer(*_):
        with lock:
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return answer


@pytest.mark.parametrize(
    "fault",
    [
        (500, {}, {"error": "hiccup"}),
        (502, {}, b"bad gateway"),
        (503, {}, b""),
        (504, {}, b""),
        (429, {"Retry-After": "0"}, b""),
        (200, {}, b'{"a": [1, 2'),
        (200, {"Content-Length": "100"}, b'{"a": 1'),
        (200, {}, b""),
    ],
    ids=["500", "502", "503", "504", "429", "cut JSON", "cut connection", "empty"],
)
def test_a_fault_that_passes_costs_one_repetition(serve, fault):
    """One fault of each kind is asked again exactly once, and the good answer is returned."""
    server = serve(then(fault, {"a": 1}))
    assert transport(server).post(Request(b'{"q": 2}')) == {"a": 1}
    assert server.posts == [{"q": 2}] * 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            (500, {}, {"error": "no such column"}),
            "answered 500: 'no such column' .3 times. for rows 1 to 2; look",
        ),
        ((429, {}, b""), "answered 429 .3 times. for rows 1 to 2; lower concurrency="),
        (
            (200, {}, b"<html>log in"),
            "no whole JSON .it begins with '<html>log in'. .3 times. for rows 1 to 2; check",
        ),
        ((200, {"Content-Length": "9"}, b"{"), "broke off .* .3 times. for rows 1 to 2; "),
    ],
)
def test_a_fault_that_stays_is_one_sentence(serve, fault, words):
    """After all retries the sentence names the address, the fault, the place and the fix."""
    server = serve(then(fault))
    with pytest.raises(InputError, match=f"^endpoint '{server.url}/score' .*{words}"):
        transport(server).post(Request(b"{}", place="rows 1 to 2"))
    assert len(server.posts) == 3


def test_a_late_answer_is_asked_for_again(serve):
    """An answer that takes longer than the time-out is given up, and the next one is taken."""
    calls = []

    def answer(*_):
        calls.append(0)
        time.sleep(1.0 if len(calls) == 1 else 0)
        return {"n": len(calls)}

    assert transport(serve(answer), timeout=0.3).post(Request(b"{}")) == {"n": 2}


def drip(start, byte=b" "):
    """Send the start of an answer at once, and then a byte now and then, for 30 seconds."""

    def send(handler, _):
        handler.close_connection = True
        handler.wfile.write(start)
        for _ in range(600):
            handler.wfile.write(byte)
            handler.wfile.flush()
            time.sleep(0.05)

    return send


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("start", "byte"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" "),
        (b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"a": 1}', b" "),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: a\r\n"),
        (b"", b"H"),
    ],
    ids=["body", "body without length", "error", "headers", "first line"],
)
def test_an_answer_that_drips_is_late_as_a_whole(serve, start, byte, tls):
    """Bytes that keep coming do not extend the time-out, whatever they belong to, and the next request is answered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server = serve(lambda *_: {"a": 2}, tls=context if tls else None)
    plain, server.send = server.send, drip(start, byte)
    asked = transport(server, timeout=1, retries=0, ca_file=CERTIFICATE if tls else None)
    begun = time.monotonic()
    with pytest.raises(InputError, match="gave no whole answer within 1 s; raise timeout="):
        asked.post(Request(b"{}"))
    assert 0.9 < time.monotonic() - begun < 3
    server.send = plain
    assert asked.post(Request(b"{}")) == {"a": 2}


def test_a_server_that_reads_nothing_is_late(require_extra):
    """A request that the server does not take from the line is given up in time too."""
    require_extra("http")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        asked = transport(f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=1, retries=0)
        begun = time.monotonic()
        with pytest.raises(InputError, match="gave no whole answer within 1 s"):
            asked.post(Request(b" " * 50_000_000))
        assert time.monotonic() - begun < 3


def test_a_time_that_is_over_does_not_end_later_requests(serve):
    """A hundred requests that take three times the time-out together are all answered, over one connection."""
    ports = set()
    server = serve(lambda *_: time.sleep(0.03) or {})
    plain = server.send
    server.send = lambda handler, answer: (ports.add(handler.client_address), plain(handler, answer))
    asked = transport(server, timeout=1, retries=0, concurrency=1)
    assert asked.many([Request(b"{}")] * 100) == [{}] * 100
    assert len(ports) == 1


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "deflate", "br", "GZIP"])
def test_a_compressed_answer_is_refused_as_it_is(serve, encoding):
    """An answer of a few bytes that would become a gigabyte is refused before it is opened, and not asked for again."""
    bomb = gzip.compress(gzip.compress(b" " * 100_000_000))
    server = serve(then((200, {"Content-Encoding": encoding}, bomb)))
    sentence = (
        rf"answered with a compression that was not asked for \('{encoding}'\); turn compression off in"
    )
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=sentence):
            transport(server).post(Request(b"{}"))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert len(server.posts) == 1


def test_a_compressed_error_is_told_without_its_words(serve):
    """The status of a compressed error is named, and its body is not opened."""
    server = serve(then((400, {"Content-Encoding": "gzip"}, gzip.compress(b"words"))))
    with pytest.raises(InputError, match=r"/score' answered 400; check that the features"):
        transport(server).post(Request(b"{}"))


def test_an_answer_that_says_it_is_plain_is_taken(serve):
    """Content-Encoding: identity is no compression."""
    server = serve(then((200, {"Content-Encoding": "identity"}, {"a": 1})))
    assert transport(server).post(Request(b"{}")) == {"a": 1}


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured_by_all_requests(serve, form):
    """No request is sent before the time that the server asked for, neither the refused one nor another."""
    times, lock = [], threading.Lock()

    def answer(*_):
        with lock:
            times.append(time.monotonic())
            if len(times) > 1:
                return {}
        wait = (
            "1"
            if form == "seconds"
            else format_datetime(datetime.now(tz=UTC) + timedelta(seconds=2), usegmt=True)
        )
        return 429, {"Retry-After": wait}, b""

    asked = transport(serve(answer), concurrency=1)
    assert asked.many([Request(b"{}"), Request(b"{}")]) == [{}, {}]
    assert times[1] - times[0] > 0.8


def test_a_wait_without_end_is_refused(serve):
    """A server that asks for an hour is not waited for."""
    server = serve(then((503, {"Retry-After": "3600"}, b"")))
    with pytest.raises(InputError, match=r"answered 503 and asks to wait 3600 s; begin again then\.$"):
        transport(server).post(Request(b"{}"))
    assert len(server.posts) == 1


@pytest.mark.parametrize("where", ["other host", "same host"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(serve, status, where):
    """Neither records nor credentials reach the other address, and the sentence names it without its secrets."""
    other = serve(lambda *_: {})
    target = other.url.replace("http://", "http://u:pw@") if where == "other host" else ""
    server = serve(then((status, {"Location": f"{target}/else?key=1"}, b"")))
    kind, shown = ("another host", re.escape(other.url)) if where == "other host" else ("another path", "")
    with pytest.raises(
        InputError, match=rf"redirects \({status}\) to {kind}, '{shown}/else', which is not followed"
    ):
        transport(server).post(Request(b"{}"))
    assert other.seen == []
    assert len(server.posts) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_response_beyond_the_limit_is_refused_unread(serve, chunked):
    """An answer larger than the limit is given up early, however its length is announced, and never asked for again."""
    sent = []
    server = serve(lambda *_: {})

    def flood(handler, _):
        handler.send_response(200)
        handler.send_header(
            *(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(10**10)))
        )
        handler.end_headers()
        block = b" " * 65536
        for _ in range(2000):
            handler.wfile.write(b"10000\r\n" + block + b"\r\n" if chunked else block)
            sent.append(len(block))

    server.send = flood
    sentence = (
        r"answered with more than 100,000 bytes; .*max_request_records=, or raise max_response_bytes=\.$"
    )
    with pytest.raises(InputError, match=sentence):
        transport(server, max_response_bytes=100_000).post(Request(b"{}"))
    assert len(server.posts) == 1
    assert sum(sent) < 2000 * 65536


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_name_the_variable_and_never_the_value(serve, monkeypatch, status):
    """The sentence says which environment variable to mend, and no trace of it shows the token."""
    monkeypatch.setenv("SCORER_TOKEN", SECRET)
    server = serve(then((status, {}, {"error": f"bad token {SECRET}"})))
    sentence = (
        rf"refused the credentials \({status}\); put valid ones into the environment variable SCORER_TOKEN\.$"
    )
    with pytest.raises(InputError, match=sentence) as caught:
        transport(server, **TOKEN).post(Request(b"{}"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert len(server.posts) == 1


def test_missing_credentials_say_how_to_give_them(serve):
    """Without any, the sentence names the option."""
    with pytest.raises(InputError, match=r"\(401\); .* name that with token_variable=\.$"):
        transport(serve(then((401, {}, b"")))).post(Request(b"{}"))


def test_credentials_are_sent_and_shown_nowhere(serve, monkeypatch, caplog):
    """Token and headers reach the server; no repr, pickle, log or server message shows them."""
    monkeypatch.setenv("SCORER_TOKEN", SECRET)
    monkeypatch.setenv("SCORER_KEY", f"{SECRET}-2")
    server = serve(then((400, {}, {"message": f"token {SECRET} and {SECRET}-2 are fine"})))
    options = {**TOKEN, "header_variables": {"X-Key": "SCORER_KEY"}}
    asked = transport(server, **options)
    caplog.set_level("DEBUG")
    with pytest.raises(InputError, match=r"answered 400: 'token \*\*\* and \*\*\* are fine'") as caught:
        asked.post(Request(b"{}"))
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert server.headers[0]["X-Key"] == f"{SECRET}-2"
    shown = [repr(asked.connection), repr(asked), repr(pickle.dumps(asked.connection)), caplog.text]
    assert not [text for text in (*shown, str(caught.value)) if SECRET in text]


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "é"])
def test_a_variable_without_a_usable_value_is_refused(require_extra, monkeypatch, value):
    """A variable that is not set, is empty or holds what no header can, is named and not shown."""
    require_extra("http")
    monkeypatch.delenv("SCORER_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("SCORER_TOKEN", value)
    with pytest.raises(InputError, match=r"^environment variable 'SCORER_TOKEN' must hold "):
        transport("https://models.example", **TOKEN)


def test_a_query_is_sent_and_not_shown(serve):
    """What follows the question mark reaches the server, and is left out of sentences and of the repr."""
    server = serve(then((400, {}, b"")))
    asked = transport(f"{server.url}/score?version=3")
    with pytest.raises(InputError, match=r"/score' answered 400; "):
        asked.post(Request(b"{}"))
    assert server.seen[0][1] == "/score?version=3"
    assert "version" not in repr(asked.connection)


def test_a_server_that_is_down_is_one_sentence(closed_port, require_extra):
    """Nobody listening is named with the number of attempts."""
    require_extra("http")
    with pytest.raises(InputError, match=r"cannot be reached \(.*refused\) \(3 times\); check the address"):
        transport(closed_port).post(Request(b"{}"))


def test_messages_of_a_server_are_short_and_printable(serve):
    """Control characters are replaced, and a long message is cut."""
    server = serve(then((400, {}, {"error": "\x1b[2J" + "x" * 5000})))
    with pytest.raises(InputError, match="answered 400: ") as caught:
        transport(server).post(Request(b"{}"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    assert printable("a\u202eb\x00c\nd") == "a?b?c d"


def test_proxies_of_the_environment_are_not_used_unasked(serve, monkeypatch, closed_port):
    """A proxy in the environment is passed by, and used only by choice."""
    monkeypatch.setenv("HTTP_PROXY", closed_port)
    monkeypatch.setenv("http_proxy", closed_port)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = serve(then({"a": 1}))
    assert transport(server).post(Request(b"{}")) == {"a": 1}
    with pytest.raises(InputError, match="cannot be reached"):
        transport(server, use_proxies=True).post(Request(b"{}"))


@pytest.fixture
def secure(serve):
    """A server with a certificate that no public authority signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return serve(then({"a": 1}), tls=context)


def test_certificates_are_verified(secure):
    """An unknown certificate is refused before anything is sent, and trusted when it is named."""
    with pytest.raises(InputError, match=r"has a certificate that cannot be verified .* with ca_file=\.$"):
        transport(secure).post(Request(b"{}"))
    assert secure.seen == []
    assert transport(secure, ca_file=CERTIFICATE).post(Request(b"{}")) == {"a": 1}


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_refused(tmp_path, require_extra, content):
    """A file that is missing or holds something else is named."""
    require_extra("http")
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=r"^ca_file must be a file of certificates \(\.pem\), got .*ca\.pem"):
        transport("https://models.example", ca_file=path)


def test_many_keep_their_order_and_the_bound(serve):
    """Answers come back in the order of the requests, with never more under way than allowed."""
    under_way, most, lock = [], [], threading.Lock()

    def answer(_method, _path, body):
        with lock:
            under_way.append(0)
            most.append(len(under_way))
        time.sleep(0.02 * (body % 3))
        with lock:
            under_way.pop()
        return {"got": body}

    server = serve(answer)
    found = transport(server, concurrency=4).many([Request(str(item).encode()) for item in range(30)])
    assert found == [{"got": item} for item in range(30)]
    assert max(most) == 4


def test_the_first_failure_ends_the_work(serve):
    """After a refusal nothing new is sent, requests that wait for their repetition give up, and the first is named."""

    def answer(_method, _path, body):
        if body == 5:
            return 400, {}, {"error": "five"}
        return (503, {}, b"") if body == 4 else {}

    server = serve(answer)
    requests = [Request(str(item).encode(), place=f"item {item}") for item in range(100)]
    begun = time.monotonic()
    with pytest.raises(InputError, match="answered 400: 'five' for item 5"):
        transport(server, concurrency=2, pause=40).many(requests)
    assert len(server.posts) < 10
    assert time.monotonic() - begun < 10


def test_the_first_failure_is_the_first_in_the_list():
    """Of several failures the one of the smallest position is raised, whichever came first."""
    barrier = threading.Barrier(2)

    def work(item, _stop):
        barrier.wait(timeout=5)
        time.sleep(0.1 if item == 0 else 0)
        raise InputError(f"item {item}")

    with pytest.raises(InputError, match="item 0"):
        run_in_order(work, [0, 1], concurrency=2)


def test_connections_are_kept_open(serve):
    """A hundred requests one after the other use one connection."""
    ports = set()
    server = serve(lambda *_: {})
    plain = server.send

    def send(handler, answer):
        ports.add(handler.client_address)
        plain(handler, answer)

    server.send = send
    asked = transport(server, concurrency=1)
    for _ in range(5):
        asked.many([Request(b"{}")] * 20)
    assert len(ports) == 1
