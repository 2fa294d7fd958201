"""Reading results: those of every release, those that others made, and those that are none."""

import dataclasses
import decimal
import hashlib
import json
import math
import os
import tempfile
import threading
import tracemalloc
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor import AuditResult
from auditor.core import (
    Adjacency,
    Check,
    Claim,
    Comparison,
    Estimate,
    InputError,
    Losses,
    Status,
    Subject,
    Verdict,
)
from auditor.curves import Histogram, NamedCurve
from auditor.results import Slice, SliceKind, TopRecord, json_value


@pytest.fixture(scope="module")
def result():
    """An audit with ids, groups and a claim."""
    rng = np.random.default_rng(5)
    ids, groups = np.arange(60).astype(str), np.repeat(["a", "b"], 30)
    losses = Losses(
        member=rng.normal(-1, 1, 60),
        nonmember=rng.normal(0, 1, 60),
        id=(ids, np.char.add("x", ids)),
        group=(groups, groups),
    )
    found = auditor.audit(
        losses, split=auditor.RandomSplit(), claim=auditor.StatedClaim(0.5, 1e-5), disclosure="insiders"
    )
    top = (
        TopRecord(rank=1, id="7", group="a", person=None, odds=math.inf),
        TopRecord(rank=2, id="inf", group=None, person="-inf", odds=3.5),
    )
    return dataclasses.replace(found, top_records=top)


def written(folder, text):
    """A file with this text or these bytes."""
    path = folder / "r.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path):
    """The one sentence that refuses a file."""
    with pytest.raises(InputError) as caught:
        auditor.read_result(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"result file {str(path)!r} ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 700
    return sentence


# --- Versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (
            "4",
            "a newer release wrote; this release reads '3': upgrade with 'pip install --upgrade",
        ),
        (2, "schema_version 2; this release reads"),
        ([[1]], "schema_version [[1]]"),
    ],
)
def test_other_versions_are_refused(version, words, tmp_path, result):
    """A version that this release does not know is refused with what it reads; a newer one says to upgrade."""
    raw = result.to_dict() | {"schema_version": version}
    assert words in refused(written(tmp_path, json.dumps(raw)))


def test_a_record_of_the_first_second_version_is_read(tmp_path, result):
    """Fields that later releases gave to exposed records may be missing, those of the first may not."""
    first = ("rank", "id", "group", "person", "odds")
    raw = result.to_dict()
    raw["top_records"] = [{name: item[name] for name in first} for item in raw["top_records"]]
    read = auditor.read_result(written(tmp_path, json.dumps(raw)))
    assert [(item.rank, item.id, item.odds) for item in read.top_records] == [
        (item.rank, item.id, item.odds) for item in result.top_records
    ]
    for name in first:
        without = [{key: value for key, value in raw["top_records"][0].items() if key != name}]
        words = refused(written(tmp_path, json.dumps(raw | {"top_records": without})))
        assert f"is damaged: top_records[0].{name} is missing." in words


# --- Edited results: what is said to hold together ------------------------------------------------


@pytest.fixture(scope="module")
def leaking():
    """The JSON of an audit that names a bound, an advantage, an AUC and a point."""
    rng = np.random.default_rng(3)
    losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500))
    found = auditor.audit(losses, disclosure="insiders")
    raw = json.loads(found.to_json())
    assert raw["data"]["shown"]["names"] == ["epsilon_bound.clopper_pearson", "advantage", "auc"]
    assert raw["data"]["shown"]["point"]["end"] == "low"
    return raw


def hashed(raw, **changed):
    """The same JSON with other findings, and the hash of that: who edits can make one."""
    data = raw["data"] | {"shown": raw["data"]["shown"] | changed}
    origin = {name: item for name, item in raw["provenance"].items() if name != "content_sha256"}
    raw = raw | {"data": data, "provenance": origin}
    text = json.dumps(raw, sort_keys=True, separators=(",", ":"))
    return raw | {"provenance": origin | {"content_sha256": hashlib.sha256(text.encode()).hexdigest()}}


BOUND, THREE = "epsilon_bound.clopper_pearson", ["epsilon_bound.clopper_pearson", "advantage", "auc"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        *(({"looks": looks}, "looks of 1 or more") for looks in (0, -6, None, "6", 0.5)),
        *(({"names": names}, "must have a list of names") for names in (None, 3, "auc")),
        *(({"reversed": x}, "reversed from 0 to 1") for x in (-0.1, 1.5, None, "x", [0.5])),
        ({"reversed": 0.2}, "reversed 0 beside a point and beside other names"),
        ({"reversed": 0.2, "point": None}, "reversed 0 beside a point and beside other names"),
        ({"reversed": 0.2, "names": [], "limits": {}}, "reversed 0 beside a point"),
        ({"names": [*THREE, "nobody"]}, "names 'nobody', of which no estimate is beyond guessing"),
        ({"names": [*THREE, "auc.upper"]}, "names 'auc.upper', of which no estimate is beyond guessing"),
        ({"names": [*THREE, "epsilon_bound.one_run"]}, "names 'epsilon_bound.one_run', of which no estimate"),
        ({"names": [*THREE, ""]}, "names '', of which no estimate"),
        ({"limits": {}}, "must have limits of advantage and auc where it names them"),
        ({"limits": {"auc": 0.6}}, "must have limits of advantage and auc where it names them"),
        ({"names": [BOUND]}, "must have limits of advantage and auc where it names them, and no others"),
        *(({"limits": {"advantage": x, "auc": 0.6}}, "a limit of advantage") for x in (0.9, 1.0, -0.1, None)),
        *(({"limits": {"advantage": 0.1, "auc": x}}, "a limit of auc") for x in (0.99, 1.0, 0.2, "x")),
        *(
            ({"point": {"errors": x, "hits": y, "end": end}}, "has a point outside the band")
            for x, y, end in (
                *((0.001, 0.9, "low"), (0.001, 0.9, "high"), (0.0, 0.1, "low"), (0.5, 0.4, "low")),
                *((0.01, 1.5, "low"), (-0.1, 0.2, "low"), (0.01, 0.02, "middle"), (None, 0.1, "low")),
                *((0.01, "x", "low"), (0.01, 0.02, None)),
            )
        ),
        ({"point": {}}, "has a point outside the band"),
        *(({"differs": x}, "must have 'lower' in differs") for x in ([], ["higher"])),
    ],
)
def test_findings_that_cannot_hold_together_are_refused(tmp_path, leaking, changed, words):
    """Names that no estimate has, limits beyond its interval, a point outside the band, no looks: each is one sentence."""
    sentence = refused(written(tmp_path, json.dumps(hashed(leaking, **changed))))
    assert "is damaged: data.shown " in sentence
    assert words in sentence


def test_a_point_without_a_band_is_refused(tmp_path, leaking):
    """The band cannot be taken away so that any point would pass."""
    curves = [item for item in leaking["curves"] if item["name"] != "band_lower"]
    assert "has a point outside" in refused(
        written(tmp_path, json.dumps(hashed(leaking | {"curves": curves})))
    )


@pytest.mark.parametrize("shift", [-1.0, -0.2, 0.0, 0.2, 0.5, 3.0])
@pytest.mark.parametrize("members", [auditor.Sample(), auditor.Census()])
def test_findings_of_audits_are_read_also_rounded_outward(tmp_path, shift, members):
    """The joint findings of an audit are read back unchanged, and with its limits rounded outward to three digits."""
    rng = np.random.default_rng(8)
    losses = Losses(member=rng.normal(-shift, 1, 400), nonmember=rng.normal(0, 1, 300))
    found = auditor.audit(losses, coverage=members, split=auditor.RandomSplit())
    raw = json.loads(found.to_json())
    assert auditor.read_result(written(tmp_path, json.dumps(raw))).to_json() == found.to_json()
    for item in raw["estimates"]:
        if item["name"] in ("auc", "advantage"):
            for holder in (item, item["details"].get("as_draws", {})):
                for end, toward in (("lower", decimal.ROUND_FLOOR), ("upper", decimal.ROUND_CEILING)):
                    if isinstance(holder.get(end), float):
                        holder[end] = in_three_digits(holder[end], toward)
    shown = raw["data"]["shown"]
    limits = {name: in_three_digits(x, decimal.ROUND_FLOOR) for name, x in shown["limits"].items()}
    point = shown["point"] and {
        "errors": in_three_digits(shown["point"]["errors"], decimal.ROUND_CEILING),
        "hits": in_three_digits(shown["point"]["hits"], decimal.ROUND_FLOOR),
        "end": shown["point"]["end"],
    }
    text = json.dumps(hashed(raw, limits=limits, point=point))
    assert not auditor.read_result(written(tmp_path, text)).altered


def in_three_digits(value, toward):
    """A number rounded to three significant digits in one direction."""
    return float(decimal.Context(prec=3, rounding=toward).create_decimal_from_float(value))


@pytest.mark.parametrize("absent", ["gone", None, ""])
def test_a_result_without_a_hash_is_marked(tmp_path, leaking, absent):
    """A result from which the hash was removed counts as altered, also when it is written again."""
    origin = leaking["provenance"] | {"content_sha256": absent}
    if absent == "gone":
        del origin["content_sha256"]
    found = auditor.read_result(written(tmp_path, json.dumps(leaking | {"provenance": origin})))
    found.to_json(tmp_path / "again.json")
    for result in (found, auditor.read_result(tmp_path / "again.json")):
        assert result.altered
        assert [item.name for item in result.checks][:1] == ["altered_since_it_was_written"]
        assert "Altered since it was written" in result.to_html()


# --- Not results ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not valid JSON"),
        ("[]", "has no schema_version"),
        ('{"schema_version": "3", "verdict": null}', "is damaged: data is missing."),
        ('{"schema_version": "3", "kind": "instances"}', "is damaged: estimates is missing."),
        ('{"schema_version": "3", "kind": null}', "holds something other than one audit"),
        ('{"schema_version": "3", "kind": "comparison"}', "holds a comparison of audits; give the result of one"),
        ("[" * 100_000, "is nested more than 40 levels deep"),
        ('{"a": 1, "b": {"c": 2, "c": 3}}', "the key 'c' stands twice in one object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"schema_version": "3", "a": [1, -1e999]}', "a has a number beyond the range of floats"),
        (f'{{"schema_version": "3", "a": {"9" * 350}}}', "a has a number beyond the range of floats"),
        (f'{{"a": {"9" * 5000}}}', "a number has 5,000 digits"),
        (json.dumps({"schema_version": "3", "a": {"b": "x" * 100_001}}), "a has a text of 100,001 characters"),
        (json.dumps({"schema_version": "3", "a": {"x" * 100_001: 1}}), "a has a text of 100,001 characters"),
        (json.dumps({"schema_version": "3", "a": [0] * 20_001}), "a has 20,001 entries, more than 20,000"),
        ('{"schema_version": "3", "a": ' + "[" * 40 + "]" * 40 + "}", "is nested more than 40 levels deep"),
        ("[" + "0," * 2_000_001 + "0]", "has more than 2,000,000 values"),
        (b"\xff\xfe\xfa", "is not text in UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(tmp_path, content, words):
    """A file that is no result, or larger than any, is refused in one short sentence with the reason."""
    assert words in refused(written(tmp_path, content))


@pytest.mark.parametrize(
    ("points", "words", "most"),
    [
        (None, "is larger than 64 MB (100,000,000 bytes)", 10**6),
        (10**7, "has more than 2,000,000 values", 10**8),
    ],
)
def test_a_large_file_is_refused_before_it_fills_the_memory(tmp_path, points, words, most):
    """A file of 100 MB is refused unread, a curve of 10^7 points with five times the memory that its text takes."""
    path = tmp_path / "r.json"
    with path.open("wb") as file:
        if points is None:
            file.truncate(100_000_000)
        else:
            file.write(b'{"schema_version": "2", "curves": [' + b"0," * points + b"0]}")
    tracemalloc.start()
    said = refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert words in said
    assert peak < most


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    ("kind", "word"), [("pipe", "a pipe"), ("zero", "a device"), ("folder", "a folder"), ("link", "a device")]
)
def test_only_ordinary_files_are_read(tmp_path, kind, word):
    """A pipe that nobody writes to, an endless device, a folder, or a link to one is refused at once."""
    path = tmp_path / "r.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/dev/zero")
    else:
        path = Path("/dev/zero")
    said = []
    waiting = threading.Thread(target=lambda: said.append(refused(path)), daemon=True)
    waiting.start()
    waiting.join(timeout=20)
    assert [f"is {word}; name an ordinary file" in words for words in said] == [True]


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    """A missing file, a dangling link, a name with a NUL and a path that is none are refused by name."""
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert "cannot be read: No such file" in refused(tmp_path / "missing.json")
    assert "cannot be read: No such file" in refused(tmp_path / "dangling")
    assert "cannot be read" in refused(f"{tmp_path}/a\x00b")
    assert "cannot be read" in refused(tmp_path / ("x" * 300))
    with pytest.raises(InputError, match=r"path must be a text or a path, got b'r\.json'"):
        auditor.read_result(b"r.json")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_unicode_encodings_are_read(tmp_path, result, encoding):
    """JSON redirected by a shell of Windows, in UTF-16 or with a byte order mark, is the same result."""
    path = written(tmp_path, result.to_json().encode(encoding))
    assert auditor.read_result(path).to_json() == result.to_json()


def test_numbers_beyond_64_bits_become_floats():
    """A whole number that no array of integers holds is the nearest float; smaller ones stay whole."""
    text = b'{"a": 9223372036854775807, "b": 9223372036854775808, "c": -9223372036854775808}'
    found = json_value(text, named="x")
    assert found == {"a": 2**63 - 1, "b": 2.0**63, "c": -(2**63)}
    assert [type(value) for value in found.values()] == [int, float, int]


# --- Damage ---------------------------------------------------------------------------------------


def spoiled(result, place, value):
    """The JSON of a result with this value at this place."""
    raw = at = json.loads(result.to_json())
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return json.dumps(raw)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("data",), [], "data should be an object, got []"),
        (("curves",), "x", "curves should be a list, got 'x'"),
        (("curves", 0, "fpr"), [0.1], "curves[0]: tpr has"),
        (("curves", 0, "fpr", 0), True, "curves[0].fpr[0] should be a valid number, got True"),
        (("curves", 0, "tpr", 0), 1.5, "curves[0].tpr[0] should be less than or equal to 1, got 1.5"),
        (("histograms", 0, "member"), [1], "histograms[0]: member has 1 entries, not"),
        (("histograms", 0, "quantiles"), {"member_observed": [1]}, "member_observed has 1 entries, not 0"),
        (("estimates", 0, "delta"), "x", "estimates[0].delta should be a valid number, got 'x'"),
        (("estimates", 0, "subject"), "people", "estimates[0].subject should be 'model' or 'mechanism', got 'people'"),
        (("estimates", 0, "adjacency"), "add-remove", "is about a model and so has no adjacency"),
        (("estimates", 0, "extra"), 1, "estimates[0].extra is an unknown key"),
        (("comparisons", 0, "claim"), None, "comparisons[0].claim should be an object, got None"),
        (("claims", 0, "proven"), 1, "claims[0].proven should be a valid boolean, got 1"),
        (("checks", 0, "status"), None, "checks[0].status should be 'ok', 'warn', 'fail' or 'unknown', got None"),
        (("slices", 0, "estimates", 0, "value"), [], "slices[0].estimates[0].value should be a valid number, got []"),
        (("slices", 0, "n_member"), 10**30, "slices[0].n_member should be a valid integer, got 1e+30"),
        (("top_records", 0, "rank"), True, "top_records[0].rank should be a valid integer, got True"),
        (("verdict",), "m" * 90_000, "or 'not_evaluable', got 'mmmm"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_place(tmp_path, result, place, value, words):
    """A result whose parts have other types than a report relies on is refused with the place, not shown."""
    said = refused(written(tmp_path, spoiled(result, place, value)))
    assert "is damaged: " in said
    assert words in said


LARGE = {
    "curves": (("curves",), [{}] * 51, "there are 51 curves of the name 'None', more than 10"),
    "points": (("curves", 0, "fpr"), [0.5] * 2001, "curves[0].fpr has 2,001 entries, more than 2,000"),
    "top records": (("top_records",), [{}] * 1001, "top_records has 1,001 entries, more than 1,000"),
    "details": (("checks", 0, "details"), {"x": [0] * 20_001}, "checks[0].details.x has 20,001 entries, more than 20,000"),
    "texts": (("provenance",), {f"k{i}": "x" * 90_000 for i in range(5)}, "most of them in provenance, more than 300,000"),
    "keys": (("provenance",), {f"{i}" + "x" * 90_000: 0 for i in range(5)}, "most of them in provenance, more than 300,000"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_larger_than_any_audit_is_called_so(tmp_path, result, kind):
    """A part that no page could show is refused as too large, not as damaged, whatever is in it."""
    place, value, words = LARGE[kind]
    said = refused(written(tmp_path, spoiled(result, place, value)))
    assert "is larger than the result of an audit: " in said
    assert words in said


def test_an_audit_makes_nothing_that_is_too_large_to_read(tmp_path):
    """An audit refuses everything that reading would refuse: too many records to name, long names, groups of many letters."""
    rng = np.random.default_rng(0)
    member, nonmember = rng.normal(-2, 1, 3000), rng.normal(0, 1, 3000)
    losses = auditor.Losses(member=member, nonmember=nonmember, id=([f"a{i}" for i in range(3000)], [f"b{i}" for i in range(3000)]))  # fmt: skip
    for asked, words in (
        ({"top_records": 1001}, r"must be at most 1,000, got 1,001"),
        ({"model": "x" * 1001}, r"model must have at most 1,000 characters, got 1,001"),
        ({"strategy": "x" * 1001}, r"strategy must have at most 1,000 characters, got 1,001"),
    ):
        with pytest.raises(InputError, match=words):
            auditor.audit(losses, **asked)
    with pytest.raises(InputError, match=r"utility name must have at most 1,000 characters"):
        auditor.Utility(0.5, "x" * 1001)
    most = auditor.audit(losses, top_records=1000, model="m" * 1000, strategy="s" * 1000, source="f" * 10**6, command="c" * 10**6)  # fmt: skip
    most.to_json(tmp_path / "r.json")
    read = auditor.read_result(tmp_path / "r.json")
    assert len(read.top_records) == 1000
    assert "[990,000 characters left out]" in read.provenance["source"]
    labels = [f"{i % 50}" + "g" * 50_000 for i in range(3000)]
    long = auditor.Losses(member=member, nonmember=nonmember, group=(labels, labels))
    with pytest.raises(
        InputError, match=r"larger than one that can be read again: .* most of them in slices, more"
    ):
        auditor.audit(long)


JUNK = ("x", True, [], ["x"], {}, 10**30, None)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:20])
def test_what_is_not_of_its_kind_counts_as_missing(tmp_path, result, junk):
    """In data, provenance and details, which may grow, a value of another kind than its key's is missing, at any depth."""
    raw = result.to_dict()
    row = next(item for item in raw["estimates"] if item["name"] == "epsilon_star.gaussian")
    row["details"] |= {"noise_floor": {"q95": junk}, "fit": junk, "at": {"fpr": junk}, "own": junk}
    raw["data"] |= {"n_member": junk, "utility": {"value": junk}, "own": junk}
    raw["provenance"] |= {"config": junk}
    found = auditor.read_result(written(tmp_path, json.dumps(raw)))
    details, now = found.estimate("epsilon_star.gaussian").details, 1e30 if junk == 10**30 else junk
    number = now if now == 1e30 else None
    assert (details["noise_floor"]["q95"], details["at"]["fpr"]) == (number, number)
    assert (found.data["n_member"], found.data["utility"]) == (None, {"value": number})
    assert details["fit"] == ({} if junk == {} else None)
    assert (details["own"], found.data["own"]) == (now, now)  # nobody knows what it should be
    assert found.provenance["config"] == (
        junk if junk == "x" else None
    )  # the name of a file stands for what it set


# --- There and back -------------------------------------------------------------------------------

WORDS = st.text(max_size=20).filter(lambda text: text not in ("inf", "-inf"))
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False)
MAYBE = st.none() | NUMBERS
RATES = st.floats(0, 1)
LEVELS = st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True)
DELTAS = st.none() | st.floats(0, 1, exclude_max=True)


# Where a key of a result has a meaning, a value of another kind counts as missing; hypothesis finds these names in the code.
OPEN = {AuditResult: ["data", "provenance"], Estimate: ["details"], Check: ["details"]}
KNOWN = {
    key
    for kind, fields in OPEN.items()
    for field in fields
    for key in get_type_hints(kind, include_extras=True)[field].__metadata__[0].of.__annotations__
}


def objects(numbers):
    """Values that JSON can hold, by unknown names: nothing, truth, numbers, texts, lists and objects."""
    plain = st.none() | st.booleans() | WHOLE | numbers | WORDS
    inside = st.recursive(
        plain,
        lambda part: st.lists(part, max_size=3) | st.dictionaries(WORDS, part, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(WORDS.filter(lambda key: key not in KNOWN), inside, max_size=4)


ESTIMATES = st.builds(
    Estimate, WORDS, MAYBE, MAYBE, MAYBE, LEVELS, WORDS,
    subject=st.just(Subject.MODEL), delta=DELTAS, assumptions=st.lists(WORDS, max_size=3).map(tuple),
    details=objects(NUMBERS),
) | st.builds(
    Estimate, WORDS, MAYBE, MAYBE, MAYBE, LEVELS, WORDS,
    subject=st.just(Subject.MECHANISM), delta=DELTAS, adjacency=st.sampled_from(Adjacency),
    details=st.builds(lambda reason: {"reason": reason}, WORDS),
)  # fmt: skip
CLAIMS = st.builds(
    Claim, WORDS, MAYBE, DELTAS, st.sampled_from(Adjacency), WORDS, st.booleans(), WORDS, MAYBE, MAYBE
)
COMPARISONS = st.builds(
    Comparison, CLAIMS, WORDS, st.sampled_from(Verdict), WORDS, st.just(Subject.MECHANISM)
) | st.builds(Comparison, CLAIMS, WORDS, st.none(), WORDS, st.sampled_from(Subject))
CHECKS = st.builds(Check, WORDS, st.sampled_from(Status), WORDS, objects(NUMBERS))
COUNTS = st.integers(0, 10**9)
SLICES = st.builds(
    Slice, st.sampled_from(SliceKind), WORDS, COUNTS, COUNTS, st.just(0.95), COUNTS,
    st.lists(ESTIMATES, min_size=1, max_size=2).map(tuple),
)  # fmt: skip
CURVES = st.lists(st.tuples(RATES, RATES), max_size=5).flatmap(
    lambda pairs: st.builds(
        NamedCurve,
        st.sampled_from(["empirical", "ranks.low_members"]),
        WORDS,
        st.just(tuple(x for x, _ in pairs)),
        st.just(tuple(y for _, y in pairs)),
    )
)


@st.composite
def histograms(draw):
    """One with as many counts as bins, with or without a fit."""
    bins = draw(st.integers(1, 4))

    def some(item, size):
        return draw(st.lists(item, min_size=size, max_size=size).map(tuple))

    fitted, points = draw(st.booleans()), draw(st.integers(0, 3))
    return Histogram(
        draw(WORDS), some(FINITE, bins + 1), some(COUNTS, bins), some(COUNTS, bins),
        some(st.floats(0, 1e9), bins) if fitted else None, some(st.floats(0, 1e9), bins) if fitted else None,
        {name: some(NUMBERS, points) for name in ("probability", "member_observed")},
    )  # fmt: skip


RECORDS = st.builds(
    TopRecord, rank=st.integers(1, 10**6), id=st.text(max_size=9), group=st.none() | st.text(max_size=9),
    person=st.none() | st.text(max_size=9), odds=st.floats(0),
)  # fmt: skip


def several(item):
    """Up to two of them."""
    return st.lists(item, max_size=2).map(tuple)


RESULTS = st.builds(
    AuditResult,
    data=objects(FINITE), estimates=several(ESTIMATES), claims=several(CLAIMS), comparisons=several(COMPARISONS),
    checks=several(CHECKS), curves=several(CURVES), histograms=several(histograms()),
    verdict=st.none() | st.sampled_from(Verdict), provenance=objects(FINITE), slices=several(SLICES),
    top_records=several(RECORDS),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(RESULTS)
def test_every_result_comes_back_as_it_was(made):
    """Whatever a result holds, reading what was written gives every field back, of the same type."""
    made = dataclasses.replace(made, data={**made.data, "disclosure": "insiders"})
    with tempfile.TemporaryDirectory() as folder:
        read = auditor.read_result(made.to_json(f"{folder}/r.json"))
    for item in dataclasses.fields(AuditResult):
        before, after = getattr(made, item.name), getattr(read, item.name)
        assert after == before, item.name
        assert type(after) is type(before)
    assert read.to_json() == made.to_json()
