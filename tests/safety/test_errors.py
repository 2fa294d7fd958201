"""Every failure is reported in one clean sentence, whatever the names in it."""

import json

import pytest
from safety import formats
from safety.texts import HOSTILE

import auditor
from auditor.cli import run

# No file name holds a NUL, a slash, or more than 255 bytes.
NAMES = {
    key: text.replace("\x00", "").replace("/", "_")[:100]
    for key, text in HOSTILE.items()
    if key != "surrogate"
}


def _sentence(capsys):
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    return formats.sentence(said.err)


@pytest.fixture(params=HOSTILE)
def text(request):
    """Each hostile text in turn."""
    return HOSTILE[request.param]


@pytest.mark.parametrize(
    "option", ["--fail-if", "--delta", "--split", "--loss-column", "--html", "--claim-epsilon"]
)
def test_options(text, option, capsys, tmp_path, monkeypatch):
    """An option's value that cannot be used is quoted in one line without control characters, and ends in code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losses.csv").write_text("loss,member\n0.1,1\n0.2,0\n0.3,1\n0.4,0\n", encoding="utf-8")
    value = f"missing/{text}" if option == "--html" else text
    assert run(["audit", "losses.csv", option, value]) == 2
    _sentence(capsys)


@pytest.mark.parametrize("name", NAMES)
def test_missing_files(name, capsys, tmp_path):
    """A file that is not there is named in one line without control characters."""
    for command in (["audit"], ["audit", "--members"], ["report"], ["compare"], ["audit", "--config"]):
        assert run([*command, str(tmp_path / f"{NAMES[name]}.csv")]) == 2
        _sentence(capsys)


@pytest.mark.parametrize("name", NAMES)
def test_file_names(name, capsys, tmp_path):
    """A table with a hostile name is audited; no output of it lets the name be more than a name."""
    path = tmp_path / f"{NAMES[name]}.csv"
    rows = "".join(f"{i / 7 + 0.01},{i % 2}\n" for i in range(80))
    path.write_text(f"loss,member\n{rows}", encoding="utf-8")
    made = {kind: tmp_path / f"out.{kind}" for kind in ("json", "md", "xml", "sarif")}
    names = {"json": "--json", "md": "--markdown", "xml": "--junit", "sarif": "--sarif"}
    options = [part for kind, file in made.items() for part in (names[kind], str(file))]
    assert run(["audit", str(path), *options, "--model", NAMES[name]]) == 0
    said = capsys.readouterr()
    formats.terminal(said.out)
    assert said.err == ""
    texts = {kind: file.read_text(encoding="utf-8") for kind, file in made.items()}
    json.loads(texts["json"])
    formats.markdown(texts["md"])
    formats.junit(texts["xml"])
    formats.sarif(texts["sarif"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", ["loss,member\n0.1,1\n{},0\n0.3,1\n", "{},member\n0.1,1\n0.2,0\n0.3,1\n"])
def test_cells_and_columns(name, rows, capsys, tmp_path):
    """A cell that cannot be used, and columns in place of those sought, are quoted in one clean line."""
    path = tmp_path / "losses.csv"
    quoted = '"' + NAMES[name].replace('"', '""') + '"'
    path.write_text(rows.replace("{}", quoted) + "0.4,0\n", encoding="utf-8")
    assert run(["audit", str(path)]) == 2
    _sentence(capsys)


def _damaged(text):
    """Result files from others, each wrong in another way, with a text in the wrong place."""
    yield json.dumps({"schema_version": text})
    yield json.dumps({"schema_version": "3", text: text})
    yield json.dumps(text)
    yield text.encode("utf-8", "backslashreplace").decode()
    good = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.4, 0.9] * 4)).to_dict()
    for key in ("verdict", "estimates", "checks", "curves", "data", "top_records", "slices", "provenance"):
        yield json.dumps(good | {key: text})
    yield json.dumps(good | {"checks": [{**good["checks"][0], "status": text}]})
    yield json.dumps(good | {"estimates": [{**good["estimates"][0], text: text}]})
    yield json.dumps(good | {"estimates": [{**good["estimates"][0], "subject": text}]})


def test_damaged_results(text, capsys, tmp_path):
    """A damaged result file is refused in one clean line."""
    path = tmp_path / "result.json"
    for content in _damaged(text):
        path.write_text(content, encoding="utf-8")
        assert run(["report", str(path)]) == 2
        _sentence(capsys)


def test_huge_values(capsys, tmp_path):
    """A value of a million characters is not repeated in full."""
    huge = "x" * 1_000_000
    (tmp_path / "losses.csv").write_text(f"loss,member\n0.1,1\n{huge},0\n", encoding="utf-8")
    (tmp_path / "result.json").write_text(json.dumps({"schema_version": huge}), encoding="utf-8")
    for arguments in (
        ["audit", str(tmp_path / "losses.csv")],
        ["report", str(tmp_path / "result.json")],
        ["audit", str(tmp_path / "losses.csv"), "--fail-if", huge],
    ):
        assert run(arguments) == 2
        assert len(_sentence(capsys)) < 2000, arguments[:1]
