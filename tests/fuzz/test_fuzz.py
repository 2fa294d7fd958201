"""Whatever a file or a server says: it is read, or refused in one sentence. ``--long`` spoils far more."""

import json
from pathlib import Path

import pytest
from fuzz.targets import TARGETS, fed, often, places, put
from hypothesis import given, strategies as st

# Of each target small inputs that are good (seed-1, ...), and what was found once, by a name that says what it is.
CORPUS = Path(__file__).parent / "corpus"
SLOW = {"model.onnx", "model.skops", "model.json"}
JSON = ("result.json", "answer.v1", "answer.v2", "answer.mlflow", "answer.completions")
NUMBERS = [0, -1, 2**31, 2**32, 2**62, 10**400, -(10**400), 1e308, 5e-324, float("nan"), float("inf"), 0.5]
TEXTS = [
    "",
    "\x00",
    "\x1b[31m",
    "\ud800",
    "x" * 5000,
    "__import__('os')",
    "../../x",
    "\u202e",
    "1_0",
    "1e999",
    "\n::error::x",
]


def corpus(name):
    """The inputs of a target, by their names."""
    return {path.name: path.read_bytes() for path in sorted((CORPUS / name).iterdir())}


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(name):
    """The seeds, and what was found once, are read or refused."""
    found = corpus(name)
    assert any(item.startswith("seed-") for item in found)
    for content in found.values():
        fed(name, content)


# --- Bytes ------------------------------------------------------------------------------------------

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "remove", "repeat", "set"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 64),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=6,
)


def spoiled(content, changes):
    """Bytes with changes at places that are shares of their length."""
    data = bytearray(content)
    for kind, place, length, given_bytes in changes:
        at = int(place * max(1, len(data)))
        if kind == "flip" and data:
            data[at % len(data)] ^= 1 << (length % 8)
        elif kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = given_bytes
        elif kind == "remove":
            del data[at : at + length]
        elif kind == "repeat":
            data[at:at] = data[at : at + length] * 3
        else:
            data[at : at + len(given_bytes)] = given_bytes
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_spoiled_bytes(request, name):
    """Inputs of which bytes are changed, cut off, put in or repeated are read or refused."""

    @often(request, 10 if name in SLOW else 40)
    @given(st.sampled_from(sorted(corpus(name).values())), CHANGES)
    def spoil(content, changes):
        fed(name, spoiled(content, changes))

    spoil()


# --- Values of JSON ---------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS), inner, max_size=2),
    max_leaves=5,
)


@pytest.mark.parametrize("name", JSON)
def test_other_values(request, name):
    """JSON in which any value is another, however large or odd, is read or refused."""
    seeds = [json.loads(content) for key, content in corpus(name).items() if key.startswith("seed-")]

    @often(request, 60)
    @given(st.data())
    def change(data):
        value = data.draw(st.sampled_from(seeds))
        for _ in range(data.draw(st.integers(1, 3))):
            value = put(value, data.draw(st.sampled_from(list(places(value)))), data.draw(VALUES))
        fed(name, json.dumps(value).encode("utf-8", "surrogatepass"))

    change()
