"""Files of models that want to do harm, and servers that answer as none should: each has a name, and is the same each time."""

import base64
import gzip
import io
import json
import pickle
import socket
import struct
import threading
import time
import warnings
import zipfile
from functools import cache, partial
from pathlib import Path

from safety.texts import ORDERS

CORPUS = Path(__file__).parent / "corpus"
MARK = "touched"  # the file that exists once foreign code has run

# --- Files of models --------------------------------------------------------------------------------


class Trap:
    """Unpickled, it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path(MARK),)


def _zip(parts):
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of two parts of one name
        for name, content in parts:
            archive.writestr(name, content)
    return file.getvalue()


def _link():
    found = zipfile.ZipInfo("schema.json")
    found.external_attr = 0o120777 << 16
    return _zip([(found, "/etc/passwd")])


def _safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _tensor(shape, offsets):
    return {"w": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}


def _h5(attribute):
    """The beginning of an HDF5 file with a configuration as text."""
    return b"\x89HDF\r\n\x1a\n" + bytes(88) + attribute


LAMBDA = json.dumps(
    {
        "module": "keras",
        "class_name": "Sequential",
        "config": {
            "layers": [
                {
                    "module": "keras.layers",
                    "class_name": "Lambda",
                    "config": {"function": ["4wEAAA", None, None]},
                }
            ]
        },
    }
)
DEEP = "[" * 100_000
SCHEMA = '{"__class__": "%s", "__module__": "%s", "__loader__": "%s", "content": {"__class__": "str"}, "protocol": 2}'


def _zips():
    """Archives that grow, climb out of their folder, lie about themselves or name what may not be built."""
    zeros = bytes(300_000_000)
    for suffix, inner in ((".skops", "schema.json"), (".keras", "config.json"), (".pt", "archive/data.pkl")):
        good = _zip([(inner, "{}")])
        yield f"bomb{suffix}", _zip([(inner, zeros)])
        yield f"bomb-beside{suffix}", _zip([(inner, "{}"), ("data.npy", zeros)])
        yield f"climbing{suffix}", _zip([(inner, "{}"), (f"../{MARK}", "x"), (f"/tmp/{MARK}", "x")])  # noqa: S108 - where none may lie
        yield f"link{suffix}", _link()
        yield f"twice{suffix}", _zip([(inner, "{}"), (inner, DEEP)])
        yield f"deep{suffix}", _zip([(inner, DEEP)])
        yield f"nothing{suffix}", _zip([])
        yield f"sum{suffix}", good.replace(b"{}", b"[]", 1)
        yield f"pickle-inside{suffix}", _zip([(inner, pickle.dumps(Trap())), ("archive/version", "3")])
        yield f"method{suffix}", good.replace(b"\x08\x00", b"\x63\x00")
    for name, module, loader in (
        ("system", "os", "FunctionNode"),
        ("Popen", "subprocess", "ObjectNode"),
        ("x" * 100_000, "y", "z"),
        ("str", "builtins", "MethodNode"),
    ):
        yield f"{name[:6]}.skops", _zip([("schema.json", SCHEMA % (name, module, loader))])
    yield (
        "lambda.keras",
        _zip([("config.json", LAMBDA), ("metadata.json", "{}"), ("model.weights.h5", _h5(b""))]),
    )
    yield (
        "module.keras",
        _zip([("config.json", LAMBDA.replace("keras.layers", "os").replace("Lambda", "system"))]),
    )


def _plain():
    """Files whose numbers and depths promise more than there is."""
    many = 2**62
    yield "length.safetensors", struct.pack("<Q", 2**63) + b"{}"
    yield "short.safetensors", b"\x10"
    yield "shape.safetensors", _safetensors(_tensor([many, many], [0, 4]), bytes(4))
    yield "negative.safetensors", _safetensors(_tensor([-1], [4, 0]), bytes(4))
    yield "offsets.safetensors", _safetensors(_tensor([1], [0, many]), bytes(4))
    yield "deep.safetensors", _safetensors(DEEP.encode())
    yield (
        "kind.safetensors",
        _safetensors({"w": {"dtype": "OBJ", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
    )
    yield "deep.json", DEEP.encode()
    yield (
        "number.json",
        b'{"learner": {"learner_model_param": {"num_feature": "%d"}}, "version": [9, 9, 9]}' % many,
    )
    yield "infinite.json", b'{"learner": NaN, "version": [1e999, -1, null]}'
    yield "array.ubj", b"{L" + struct.pack(">q", 7) + b"learner[$d#L" + struct.pack(">q", many)
    # Each of these three ends a process that reads it and predicts.
    yield "size.ubj", b"{L" + struct.pack(">q", 7) + b"learner[$d#L" + struct.pack(">q", 2**31)
    good = json.loads((CORPUS / "model.json" / "seed-1").read_text())
    tree = good["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["left_children"] = [900_000_000] * len(tree["left_children"])
    yield "children.json", json.dumps(good).encode()
    yield (
        "children.txt",
        (
            b"tree\nversion=v4\nnum_class=1\nlabel_index=0\nmax_feature_idx=1\nfeature_names=a b\nfeature_infos=[0:1] [0:1]\n"
            b"\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=900000000\nsplit_gain=1\nthreshold=0\ndecision_type=2\n"
            b"left_child=700000000\nright_child=-900000000\nleaf_value=1 2\nleaf_weight=1 1\nleaf_count=1 1\n"
            b"internal_value=0\ninternal_weight=0\ninternal_count=2\nshrinkage=1\n\nend of trees\n"
        ),
    )
    yield "deep.ubj", b"[" * 100_000
    yield "text.ubj", b"{L" + struct.pack(">q", -5) + b"x"
    yield (
        "trees.txt",
        f"tree\nversion=v4\nnum_class={many}\nmax_feature_idx={many}\n\nTree=0\nnum_leaves={many}\n".encode(),
    )
    yield (
        "leaves.txt",
        b"tree\nversion=v4\nnum_class=1\nmax_feature_idx=1\n\nTree=0\nnum_leaves=-3\nleaf_value=1e999\n",
    )
    yield "signs.txt", b"\xff\xfe\x00tree\x1b[31m\n::error::x\n"
    yield "outside.onnx", _onnx_beside("../../../../../../etc/passwd")
    yield "absolute.onnx", _onnx_beside("/etc/passwd")
    yield "device.onnx", _onnx_beside("/dev/zero")
    yield "names.onnx", _onnx_named(ORDERS)
    yield "names-op.onnx", _onnx_named(ORDERS, kind=ORDERS.encode())
    yield "names-shape.onnx", _onnx_named(ORDERS, kind=b"Flatten")
    yield "lambda.h5", _h5(LAMBDA.encode())
    yield "kernel.cbm", b"CBM1" + struct.pack("<I", 2**32 - 1) + bytes(64)


def _field(number, content):
    """A field of a message, in its length and its bytes."""
    size, length = len(content), b""
    while size > 127:
        size, length = size >> 7, length + bytes([size & 127 | 128])
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def _onnx(graph):
    return b"\x08\x08" + _field(7, graph) + _field(8, b"\x10\x0d")


def _onnx_beside(place):
    """A model of one initializer whose numbers lie elsewhere, in the fields of its format."""
    entry = _field(13, _field(1, b"location") + _field(2, place.encode()))
    return _onnx(_field(2, b"g") + _field(5, b"\x08\x02\x10\x01" + _field(8, b"w") + entry + b"\x70\x01"))


def _onnx_named(text, kind=b"Identity"):
    """A model that answers with its input, or fails, and has a text wherever a name goes, unused initializers among it."""
    name = text.encode()
    shape = _field(2, _field(1, _field(3, b"n")) + _field(1, b"\x08\x02"))
    value = _field(2, _field(1, b"\x08\x01" + shape))
    node = _field(1, b"x" + name) + _field(2, b"y" + name) + _field(3, name) + _field(4, kind)
    unused = b"\x08\x01\x10\x01" + _field(4, bytes(4)) + _field(8, b"u" + name)
    ends = _field(11, _field(1, b"x" + name) + value) + _field(12, _field(1, b"y" + name) + value)
    return _onnx(_field(1, node) + _field(2, name) + _field(5, unused) + ends)


SUFFIXES = (
    *("pkl", "pickle", "joblib", "sav", "pt", "pth", "ts", "torchscript", "skops", "keras", "h5", "hdf5"),
    *("safetensors", "ubj", "json", "txt", "onnx", "cbm"),
)


def files():
    """Every hostile file by its name, whose ending says what it pretends to be."""
    found = {f"trap.{suffix}": pickle.dumps(Trap()) for suffix in SUFFIXES}
    return found | dict(_zips()) | dict(_plain())


# --- Servers ----------------------------------------------------------------------------------------

SECRET = "s3cr3t-0f-4-t0ken"  # noqa: S105 - of nothing
# Bodies in which # is how many records were requested, @ the outputs of all but the first, and ~ those in another order.
_WRAPPED = {
    "v1": '{"predictions": %s}',
    "mlflow": '{"predictions": %s}',
    "v2": '{"outputs": [{"name": "predict_proba", "datatype": "FP64", "shape": [#, 2], "data": %s}]}',
}
GOOD = "[[0.25, 0.75]@]"
PATHS = {"v1": "/v1/models/m", "v2": "/v2/models/m", "mlflow": "/invocations"}
# What may stand for the outputs of three records, as it is written.
OUTPUTS = {
    "good": GOOD,
    "swapped": "[[0.75, 0.25]~]",
    **{
        f"value-{i}": text
        for i, text in enumerate(["null", "{}", "[]", '""', "0", "true", "-1", '"NaN"', "[[]]"])
    },
    **{
        f"cell-{i}": GOOD.replace("0.25", text)
        for i, text in enumerate(
            [
                *(
                    "NaN",
                    "Infinity",
                    "-Infinity",
                    "1e999",
                    "1" * 400,
                    "-0.25",
                    "2.5",
                    "1e-400",
                    "null",
                    "true",
                    "{}",
                ),
                *('"0.25"', '"=1+1"', '"\\u001b[31m"', '"\\ud800"', "[0.25]", "0.25, 0.25"),
            ]
        )
    },
    "few": "[[0.25, 0.75]]",
    "many": "[[0.25, 0.75]@" + "@" * 1000 + "]",
    "ragged": "[[1.0]@]",
    "deep": "[" * 50_000 + "]" * 50_000,
    "open": "[" * 100_000,
    "objects": '[{"a": 0.5, "b": 0.5}, {"c": 1}, {}]',
    "named": json.dumps([{"::error::x\n": 0.5, SECRET: 0.5}] * 3),
    "texts": json.dumps(["\n::error::x", "\u202e", "y" * 100_000]),
    "long": json.dumps(["y" * 3_000_000]),
    "cut": GOOD[:-2],
    "after": GOOD + "]}{",
}
STATUSES = [100, 204, 206, *range(300, 309), *range(400, 406), 413, 418, 422, 429, *range(500, 504), 599, 999]


def _head(status=200, *headers, version="HTTP/1.1"):
    return "".join(f"{line}\r\n" for line in (f"{version} {status} X", *headers, "")).encode("latin-1")


def _sized(body, *headers, status=200):
    body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return _head(status, f"Content-Length: {len(body)}", *headers) + body


def _endless(first, part, pause=0.0):
    """A beginning, and then the same again and again, until nobody reads or ten seconds have passed."""

    def send(connection):
        connection.sendall(first)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            connection.sendall(part)
            time.sleep(pause)

    return send


@cache
def _wires(elsewhere, n):
    """Answers for so many records that are wrong below JSON: their sizes, headers, ends and pace."""
    body = (_WRAPPED["v1"] % GOOD).replace("@", ", [0.5, 0.5]" * (n - 1))
    size = f"Content-Length: {len(body)}"
    chunked = _head(200, "Transfer-Encoding: chunked")
    bomb = gzip.compress(bytes(50_000_000))
    return {
        "nothing": b"",
        "garbage": bytes(range(256)) * 20,
        "http-0.9": body.encode(),
        "http-1.0": _head(200, version="HTTP/1.0") + body.encode(),
        "http-9.9": _head(200, size, version="HTTP/9.9") + body.encode(),
        "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "size-large": _head(200, "Content-Length: 100000") + body.encode(),
        "size-small": _head(200, "Content-Length: 5") + body.encode(),
        "size-negative": _head(200, "Content-Length: -1") + body.encode(),
        "size-word": _head(200, "Content-Length: many") + body.encode(),
        "size-huge": _head(200, f"Content-Length: {10**30}") + body.encode(),
        "sizes": _head(200, size, "Content-Length: 1") + body.encode(),
        "size-and-chunks": _head(200, size, "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        "no-size": _head(200) + body.encode(),
        "chunk-huge": chunked + b"fffffffffffffff\r\nx",
        "chunk-negative": chunked + b"-5\r\nx\r\n",
        "chunk-word": chunked + b"zz\r\nx\r\n",
        "chunk-cut": chunked + b"5\r\n[[",
        "gzip": _sized(gzip.compress(body.encode()), "Content-Encoding: gzip"),
        "gzip-bomb": _sized(bomb, "Content-Encoding: gzip"),
        "br": _sized(body, "Content-Encoding: br"),
        "encodings": _sized(body, "Content-Encoding: identity, gzip, \x1b[31m"),
        "cookies": _sized(body, *[f"Set-Cookie: a{i}={SECRET}; Domain=127.0.0.1" for i in range(50)]),
        "header-long": _head(200, f"X: {'y' * 2_000_000}", size) + body.encode(),
        "headers-many": _head(200, *[f"X{i}: y" for i in range(20_000)], size) + body.encode(),
        "header-none": _head(200, "no colon here", size) + body.encode(),
        "header-nul": _head(200, "X: \x00\x1b[31m", size) + body.encode(),
        "header-folded": _head(200, "X: a", " b", size) + body.encode(),
        "1xx-some": _head(100) * 50 + _sized(body),
        "1xx-early": b"HTTP/1.1 103 Early\r\nLink: <http://evil.example>\r\n\r\n" + _sized(body),
        "1xx-switch": _head(101, "Upgrade: websocket", "Connection: Upgrade") + body.encode(),
        "more": _sized(body) + _sized("again"),
        "type-html": _sized("<html><script>alert(1)</script>", "Content-Type: text/html"),
        "type-pickle": _sized(pickle.dumps(Trap()), "Content-Type: application/python-pickle"),
        "type-wrong": _sized(body, "Content-Type: image/png; charset=\x1b"),
        "utf-8-mark": _sized(b"\xef\xbb\xbf" + body.encode()),
        "utf-16": _sized(body.encode("utf-16")),
        "latin": _sized(b"\xff\xfe\xfd"),
        "nul": _sized(body + "\0"),
        "twice": _sized('{"predictions": [], ' + body[1:]),
        "comment": _sized("/* x */ " + body),
        "list": _sized(json.dumps([[0.25, 0.75]] * n)),
        "echo": _sized(f'{{"error": "Bearer {SECRET}"}}', status=400),
        "echo-base64": _sized(base64.b64encode(SECRET.encode()), status=400),
        "location": _sized("", f"Location: {elsewhere}/?token={SECRET}", status=307),
        "refresh": _sized(body, f"Refresh: 0; url={elsewhere}", f"Link: <{elsewhere}>; rel=preload"),
        **{f"wait-{wait[:9]}": _sized("x", f"Retry-After: {wait}", status=503) for wait in (
            "1e9", "-5", "0", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "soon", "\x1b[31m"
        )},
        "1xx-flood": _endless(b"", _head(100) * 100),
        "headers-endless": _endless(b"HTTP/1.1 200 X\r\n", b"X: y\r\n" * 100),
        "header-endless": _endless(b"HTTP/1.1 200 X\r\nX: ", b"y" * 10_000),
        "body-endless": _endless(_head(200), b"[" * 10_000),
        "chunks-endless": _endless(chunked, b"5\r\n[[[[[\r\n" * 100),
        "error-endless": _endless(_head(500), b"x" * 10_000),
        "drip-head": _endless(b"HTTP/1.1 200 X\r\n", b"X: y\r\n", 0.2),
        "drip-body": _endless(_head(200, "Content-Length: 1000000"), b" ", 0.2),
        "silence": lambda _: time.sleep(10),
    }  # fmt: skip


def behaviours(elsewhere):
    """Every behaviour by its name: the protocol that is spoken, and what is sent: bytes, a body to be filled, a function."""
    found = {
        f"{protocol}-{name}": (protocol, wrap % text)
        for protocol, wrap in _WRAPPED.items()
        for name, text in OUTPUTS.items()
    }
    for status in STATUSES:
        told = [f"Location: {elsewhere}/x?{SECRET}"] if 300 <= status < 400 else []
        found[f"status-{status}"] = ("v1", _sized(f"no: {SECRET}\n::error::x\x1b[31m", *told, status=status))
    return found | {f"wire-{name}": ("v1", partial(_wired, elsewhere, name)) for name in _wires(elsewhere, 1)}


def _wired(elsewhere, name, n):
    return _wires(elsewhere, n)[name]


class Hostile:
    """A server that sends a fixed answer to any request, and keeps the heads of requests."""

    def __init__(self):
        self.answer, self.heads = b"", []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection):
        with connection:
            connection.settimeout(5)
            try:
                while (asked := self._asked(connection)) is not None:
                    head, answer = asked[0], self.answer
                    self.heads.append(head)
                    if head.startswith(b"GET"):  # what it tells about itself is as it should be
                        connection.sendall(_sized('{"name": "m", "inputs": [], "outputs": []}'))
                        continue
                    answer = _filled(answer, _records(asked[1])) if answer else b""
                    if callable(answer):
                        return answer(connection)
                    connection.sendall(answer)
                    return None
            except OSError:
                return None

    def _asked(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := connection.recv(65536)):
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        size = next(
            (
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ),
            0,
        )
        while len(body) < size:
            body += connection.recv(65536)
        return head, body


def _records(body):
    """How many records a request holds."""
    asked = json.loads(body)
    tensor = asked.get("instances") or asked["inputs"]
    return tensor[0]["shape"][0] if isinstance(tensor[0], dict) else len(tensor)


def _filled(answer, n):
    """The body that is sent for so many records."""
    if isinstance(answer, bytes):
        return answer
    if callable(answer):
        return answer(n)
    rest, swapped = ", [0.625, 0.375]" * (n - 1), ", [0.375, 0.625]" * (n - 1)
    return _sized(answer.replace("@", rest).replace("~", swapped).replace("#", str(n)))
