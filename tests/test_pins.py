"""Everything that the workflows, the action, the image, the template and the examples run and install is named by its hash."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT = [
    *sorted((ROOT / ".github/workflows").glob("*.yml")),
    *sorted((ROOT / "templates").iterdir()),
    *(ROOT / name for name in ("action.yml", "Dockerfile", ".ci/install")),
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LOWEST = ROOT / ".ci/lowest/tests.lock.txt"
LOCKS = [ROOT / "requirements.lock.txt", ROOT / ".ci/build.lock.txt", ROOT / ".ci/tests.lock.txt", LOWEST]
USED = re.compile(r"^\s*(?:- )?uses: *(?!\./)(.*)$", re.MULTILINE)
IMAGE = re.compile(r"^(?:\s*(?:image|container): *|FROM )(\S+)", re.MULTILINE)
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+")
DIGEST = re.compile(r"[\w./-]+(:[\w.-]+)@sha256:[0-9a-f]{64}")


def found(pattern, path):
    """Every place of a file that the pattern finds."""
    return pattern.findall(path.read_text(encoding="utf-8"))


def relative(path):
    """The name of a parameter: a path in the repository."""
    return str(path.relative_to(ROOT))


def test_there_is_something_to_look_at():
    """The patterns find the actions and the images that are known to be there."""
    used = {name.split("@")[0] for path in [*BUILT, *PAGES] for name in found(USED, path)}
    assert {"actions/checkout", "pypa/gh-action-pypi-publish", "github/codeql-action/upload-sarif"} <= used
    images = {name.split("@")[0] for path in [*BUILT, *PAGES] for name in found(IMAGE, path)}
    assert images == {"python:3.11-bookworm", "python:3.12-slim-bookworm", "python:3.12"}


@pytest.mark.parametrize("path", [*BUILT, *PAGES], ids=relative)
def test_actions_and_images_are_pinned(path):
    """Each action is named by the hash of a commit with its version beside it, each image by tag and digest."""
    assert [name for name in found(USED, path) if not PINNED.fullmatch(name.strip())] == []
    assert [name for name in found(IMAGE, path) if not DIGEST.fullmatch(name)] == []


def test_one_version_of_each_is_used():
    """Every file names the same commit of an action and the same digest of an image."""
    names = [
        name.split(" #")[0] for path in [*BUILT, *PAGES] for name in (*found(USED, path), *found(IMAGE, path))
    ]
    assert len({name.split("@")[0] for name in names}) == len(set(names))


@pytest.mark.parametrize("path", BUILT, ids=relative)
def test_what_is_installed_has_its_hash_in_a_lock(path):
    """Every installation takes a lock with hashes, or one file that was built here, without what it depends on."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    installs = [line for line in lines if re.search(r"\bpip\"? install\b", line)]
    assert [line for line in installs if "--require-hashes" not in line and "--no-deps" not in line] == []


@pytest.mark.parametrize("lock", LOCKS, ids=relative)
def test_a_lock_names_one_version_with_its_hashes(lock):
    """Each entry of a lock is one version, with the hash of each of its files; what the package needs is among them."""
    text = "".join(
        line for line in lock.read_text(encoding="utf-8").splitlines(keepends=True) if line[0] != "#"
    )
    entries = text.replace("\\\n", " ").splitlines()
    assert len(entries) > 20
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; [^;]*?)?( +--hash=sha256:[0-9a-f]{64})+ *", entry), entry[
            :90
        ]
    if lock.name != "build.lock.txt":
        assert {"numpy", "scipy", "pyarrow", "cyclopts"} <= {entry.split("==")[0] for entry in entries}


def test_the_lowest_versions_are_those_that_are_declared():
    """The lock of the lowest versions holds each floor of the package, its build, its tests and the extras named there."""
    text = LOWEST.read_text(encoding="utf-8")
    made = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*made["build-system"]["requires"], *made["project"]["dependencies"]]
    for extra in re.findall(r"--extra (\w+)", text):
        declared += made["project"]["optional-dependencies"][extra]
    floors = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", item).groups() for item in declared]
    assert len(floors) > 25
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE))
    assert [
        (name, floor, locked[name])
        for name, floor in floors
        if not f"{locked[name]}.".startswith(f"{floor}.")
    ] == []
