"""JSON on a terminal is JSON, and nothing but that."""

import io
import json
import sys
import unicodedata

import pytest
from safety import formats
from safety.texts import HOSTILE

from auditor.cli import hand_out


def _printed(data, monkeypatch, encoding="utf-8"):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    hand_out(data)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
@pytest.mark.parametrize("name", HOSTILE)
def test_same_json(name, encoding, monkeypatch):
    """The JSON that a terminal gets says the same, in its encoding, and holds nothing that commands or hides."""
    value = {HOSTILE[name]: [HOSTILE[name], 0.5, None]}
    printed = _printed(json.dumps(value, ensure_ascii=False, indent=2) + "\n", monkeypatch, encoding)
    assert json.loads(printed) == value
    assert formats.UNSAFE.search(printed) is None


def test_every_control(monkeypatch):
    """No control, format character or half of a pair gets out, joiners too."""
    kinds = {"Cc", "Cf", "Cs"}
    signs = [sign for sign in map(chr, range(0x110000)) if unicodedata.category(sign) in kinds]
    value = "é模م" + " ".join(signs)
    printed = _printed(json.dumps(value, ensure_ascii=False), monkeypatch)
    assert json.loads(printed) == value
    assert formats.UNSAFE.search(printed) is None
    assert not {"\u200c", "\u200d", "\x7f"} & set(printed)
