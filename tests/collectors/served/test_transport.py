"""Requests to one server: repeated where that helps, refused in one sentence where it does not, and sent nowhere else."""

import concurrent.futures
import gc
import gzip
import json
import pickle
import socket
import ssl
import threading
import time
import traceback
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy as np
import pytest
from collectors.common import refused

from auditor import InputError
from auditor.collectors.served import Connection, Request, Transport
from auditor.collectors.served.payload import Wanted, answer_rows
from auditor.collectors.served.protocols import _of_tensors, _predictions

SECRET = "tok-5e1f-very-secret"  # noqa: S105 - of no server
CERTIFICATE = Path(__file__).with_name("localhost.pem")
PLACE = ".3 times. for rows 1 to 2"
TOKEN = {"token_variable": "SCORER_TOKEN"}


def transport(server, **kwargs):
    """A transport to a path of a server, with short pauses."""
    url = server if isinstance(server, str) else f"{server.url}/score"
    return Transport(Connection(url, **{"pause": 0.01, "retries": 2, "timeout": 5.0, **kwargs}))


def signed():
    """The context of a server with a certificate that no public authority signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def then(*answers):
    """Answer with one after the other, and with the last for ever."""
    waiting, lock = list(answers), threading.Lock()

    def answer(*_):
        with lock:
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return answer


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ((500, {}, {"error": "no such\x1b[2J" + "x" * 5000}), f"answered 500: '.*no such.*' {PLACE}; look"),
        ((429, {}, b""), f"answered 429 {PLACE}; lower concurrency="),
        ((200, {}, b"<html>log in"), f"incomplete JSON .'<html>log in'. {PLACE}; check"),
        ((200, {"Content-Length": "9"}, b"{"), f"broke off .* {PLACE}; "),
    ],
)
def test_a_fault_that_stays_is_one_sentence(serve, fault, words):
    """After all retries the sentence names the address, the fault, the place and the fix."""
    server = serve(then(fault))
    with refused(f"^endpoint '{server.url}/score' .*{words}") as caught:
        transport(server).many([Request(b"{}", place="rows 1 to 2")])[0]
    assert len(server.posts) == 3
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_late_answer_is_asked_for_again(serve):
    """An answer that takes longer than the time-out is given up, and the next one is taken."""
    calls = []

    def answer(*_):
        calls.append(0)
        time.sleep(1.0 if len(calls) == 1 else 0)
        return {"n": len(calls)}

    assert transport(serve(answer), timeout=0.3).many([Request(b"{}")])[0] == {"n": 2}


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
    server = serve(lambda *_: {"a": 2}, tls=signed() if tls else None)
    plain, server.send = server.send, drip(start, byte)
    asked = transport(server, timeout=1, retries=0, ca_file=CERTIFICATE if tls else None)
    begun = time.monotonic()
    with refused("gave no whole answer within 1 s; raise timeout="):
        asked.many([Request(b"{}")])[0]
    assert 0.9 < time.monotonic() - begun < 3
    server.send = plain
    assert asked.many([Request(b"{}")])[0] == {"a": 2}


def test_a_server_that_reads_nothing_is_late(require_extra):
    """A request that the server does not take from the line is given up in time too."""
    require_extra("http")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        asked = transport(f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=1, retries=0)
        begun = time.monotonic()
        with refused("gave no whole answer within 1 s"):
            asked.many([Request(b" " * 50_000_000)])[0]
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


@pytest.mark.parametrize("form", ["rows", "tensor", "float32"])
def test_a_large_answer_takes_no_more_than_four_times_its_size(serve, form):
    """Numbers of all digits, as servers write them, cost less than four times their bytes, from the first to the last."""
    rng = np.random.default_rng(3)
    values = rng.random((25_000, 10)).astype("float32" if form == "float32" else "float64")
    data = [float(str(value)) for value in values.ravel()]
    tensor = {"name": "probs", "shape": [25_000, 10], "datatype": f"FP{values.itemsize * 8}", "data": data}
    rows = {"predictions": np.reshape(data, (-1, 10)).tolist()}
    body = json.dumps(rows if form == "rows" else {"outputs": [tensor]}).encode()
    wanted = Wanted(None, probabilities=True)
    read = _predictions if form == "rows" else _of_tensors
    asked = transport(serve(then((200, {}, body))))
    tracemalloc.start()
    try:
        request = Request(b"{}", read=lambda answer: answer_rows(read(answer, wanted), n=25_000))
        (found,) = asked.many([request])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found, values)
    assert most < 4 * len(body)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "deflate", "br", "GZIP"])
def test_a_compressed_answer_is_refused_as_it_is(serve, encoding):
    """An answer of a few bytes that would become a gigabyte is refused before it is opened, and not requested again."""
    bomb = gzip.compress(gzip.compress(b" " * 100_000_000))
    server = serve(then((200, {"Content-Encoding": encoding}, bomb)))
    tracemalloc.start()
    try:
        with refused(rf"answered with a compression that was not requested \('{encoding}'\)"):
            transport(server).many([Request(b"{}")])[0]
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert len(server.posts) == 1
    server.answer = then((400, {"Content-Encoding": encoding}, bomb))
    with refused(r"/score' answered 400; check that the features"):  # an error without its words
        transport(server).many([Request(b"{}")])[0]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured_by_all_requests(serve, form):
    """No request is sent before the time that the server requested, neither the refused one nor another."""
    times, lock = [], threading.Lock()

    def answer(*_):
        with lock:
            times.append(time.monotonic())
            if len(times) > 1:
                return {}
        later = datetime.now(tz=UTC) + timedelta(seconds=2)
        wait = "1" if form == "seconds" else format_datetime(later, usegmt=True)
        return 429, {"Retry-After": wait}, b""

    asked = transport(serve(answer), concurrency=1)
    assert asked.many([Request(b"{}"), Request(b"{}")]) == [{}, {}]
    assert times[1] - times[0] > 0.8


def test_a_wait_without_end_is_refused(serve):
    """A server that requests an hour is not waited for."""
    server = serve(then((503, {"Retry-After": "3600"}, b"")))
    with refused(r"answered 503 and asks to wait 3600 s; begin again then\.$"):
        transport(server).many([Request(b"{}")])[0]
    assert len(server.posts) == 1


@pytest.mark.parametrize("where", ["other host", "same host"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(serve, status, where):
    """Neither records nor credentials reach the other address, and the sentence names it without its secrets."""
    other = serve(lambda *_: {})
    target = other.url.replace("http://", "http://u:pw@") if where == "other host" else ""
    server = serve(then((status, {"Location": f"{target}/else?key=1"}, b"")))
    shown = other.url.removeprefix("http://") if where == "other host" else ""
    with refused(rf"redirects \({status}\) to '{shown}/else', which is not followed"):
        transport(server).many([Request(b"{}")])[0]
    assert other.seen == []
    assert len(server.posts) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_response_beyond_the_limit_is_refused_unread(serve, chunked):
    """An answer larger than the limit is given up early, however its length is announced, and never requested again."""
    sent = []
    server = serve(lambda *_: {})

    def flood(handler, _):
        handler.send_response(200)
        size = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(10**10))
        handler.send_header(*size)
        handler.end_headers()
        block = b" " * 65536
        for _ in range(2000):
            handler.wfile.write(b"10000\r\n" + block + b"\r\n" if chunked else block)
            sent.append(len(block))

    server.send = flood
    with refused(r"answered with more than 100,000 bytes; raise max_response_bytes="):
        transport(server, max_response_bytes=100_000).many([Request(b"{}")])[0]
    assert len(server.posts) == 1
    assert sum(sent) < 2000 * 65536


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_name_the_variable_and_never_the_value(serve, monkeypatch, caplog, status):
    """Credentials are sent; the sentence says which variable to set, and no trace, pickle or log of it shows them."""
    monkeypatch.setenv("SCORER_TOKEN", SECRET)
    monkeypatch.setenv("SCORER_KEY", f"{SECRET}-2")
    caplog.set_level("DEBUG")
    server = serve(then((status, {}, {"error": f"bad token {SECRET}"})))
    with refused(rf"refused the credentials \({status}\); .* variable SCORER_TOKEN\.$") as caught:
        transport(server, **TOKEN).many([Request(b"{}")])[0]
    keyed = transport(server, header_variables={"X-Key": "SCORER_KEY"})
    with refused(r"environment variable SCORER_KEY\.$"):
        keyed.many([Request(b"{}")])[0]
    with refused(r"\(\d+\); .* name that with token_variable=\.$"):
        transport(server).many([Request(b"{}")])[0]
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert server.headers[1]["X-Key"] == f"{SECRET}-2"
    shown = ["".join(traceback.format_exception(caught.value)), caplog.text]
    shown += [repr(keyed.connection), repr(keyed), repr(pickle.dumps(keyed.connection))]
    assert not [text for text in shown if SECRET in text]
    assert len(server.posts) == 3


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "é"])
def test_a_variable_without_a_usable_value_is_refused(require_extra, monkeypatch, value):
    """A variable that is not set, is empty or holds what no header can, is named and not shown."""
    require_extra("http")
    monkeypatch.delenv("SCORER_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("SCORER_TOKEN", value)
    with refused(r"^environment variable 'SCORER_TOKEN' must hold "):
        transport("https://models.example", **TOKEN)


def test_a_server_that_is_down_is_one_sentence(closed_port, require_extra):
    """Nobody listening is named with the number of attempts, and the query of the address is not shown."""
    require_extra("http")
    asked = transport(f"{closed_port}/score?version=3")
    with refused(r"/score' cannot be reached \(.*\) \(3 times\); check the address"):
        asked.many([Request(b"{}")])[0]
    assert "version" not in repr(asked.connection)


def test_proxies_of_the_environment_are_not_used_unasked(serve, monkeypatch, closed_port):
    """A proxy in the environment is passed by, and used only by choice, for other machines than this one."""
    for name in ("http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", closed_port)
    server = serve(then({"a": 1}))
    assert transport(server).many([Request(b"{}")])[0] == {"a": 1}
    assert transport(server, use_proxies=True).many([Request(b"{}")])[0] == {"a": 1}
    with refused("cannot be reached"):
        transport("http://models.example", use_proxies=True).many([Request(b"{}")])[0]


def test_plain_http_reads_no_certificates(serve, monkeypatch):
    """The public authorities, slow to read, are read for https alone, where one reading serves all connections."""
    read = []
    plain = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda *args, **kwargs: read.append(plain(*args, **kwargs))
    )
    asked = transport(serve(then({"a": 1})), concurrency=8)
    assert asked.many([Request(b"{}")] * 20) == [{"a": 1}] * 20
    assert read == []
    transport("https://models.example")
    assert len(read) == 1


def test_certificates_are_verified(serve, tmp_path):
    """An unknown certificate is refused before anything is sent, and trusted when it is named in a file of them."""
    secure = serve(then({"a": 1}), tls=signed())
    with refused(r"has a certificate that cannot be verified .* with ca_file=\.$"):
        transport(secure).many([Request(b"{}")])[0]
    assert secure.seen == []
    assert transport(secure, ca_file=CERTIFICATE).many([Request(b"{}")])[0] == {"a": 1}
    (tmp_path / "no.pem").write_text("no certificate")
    for name in ("none.pem", "no.pem"):
        with refused(rf"^ca_file must be a file of certificates \(\.pem\), got .*{name}"):
            transport(secure, ca_file=tmp_path / name)


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
    with refused(r"answered 400: '.*five.*' for item 5"):
        transport(server, concurrency=2, pause=40).many(requests)
    assert len(server.posts) < 10
    assert time.monotonic() - begun < 10


def test_a_caller_that_is_interrupted_leaves_nothing_under_way(serve, monkeypatch):
    """Ctrl-C while answers are awaited cuts every connection and begins nothing more; the next batch is answered."""
    under_way = threading.Event()
    server = serve(lambda *_: under_way.set() or time.sleep(0.5) or {})
    asked = transport(server, concurrency=2)

    def interrupted(_work):
        assert under_way.wait(5)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked.many([Request(b"{}")] * 50)
    time.sleep(0.7)
    assert len(server.posts) == 2
    assert asked.many([Request(b"{}")])[0] == {}


def test_a_transport_that_is_forgotten_ends_its_thread(serve):
    """Its connections and its thread go with it, after a failure too."""
    before = set(threading.enumerate())
    asked = transport(serve(then({"a": 1}, (400, {}, b""))))
    (own,) = [thread for thread in set(threading.enumerate()) - before if "_run" in thread.name]
    assert asked.many([Request(b"{}")])[0] == {"a": 1}
    with pytest.raises(InputError):
        asked.many([Request(b"{}")])[0]
    del asked
    gc.collect()
    own.join(5)
    assert not own.is_alive()


@pytest.mark.parametrize(
    "fault",
    [
        *((status, {}, b"") for status in (500, 502, 503, 504)),
        (429, {"Retry-After": "0"}, b""),
        (200, {}, b'{"a": [1, 2'),
        (200, {"Content-Length": "100"}, b'{"a": 1'),
        (200, {}, b""),
    ],
    ids=str,
)
def test_a_fault_that_passes_costs_one_repetition(serve, fault):
    """After one fault of each kind the request is repeated exactly once, and the good answer is returned."""
    server = serve(then(fault, {"a": 1}))
    assert transport(server).many([Request(b'{"q": 2}')])[0] == {"a": 1}
    assert server.posts == [{"q": 2}] * 2
