"""The generated text of the documentation: reference pages, from ``python docs/pages.py``, and hooks of mkdocs.

The committed pages are readable on a code host; a test compares them with the code.
"""

import ast
import html
import importlib
import inspect
import json
import posixpath
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli import app, parsing

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Home"]

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)
# A table of public names; the site shows the docstrings instead.
ROW = re.compile(r"^\| \[`(auditor\.[\w.]+)`\]\([^)]*\) \| .* \|$", re.MULTILINE)
_TABLE = re.compile(rf"^\| name \| summary \|\n\| --- \| --- \|\n((?:{ROW.pattern}\n?)+)", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(?=[)#])")

_GROUPS = {
    "of_models": "Of one model",
    "of_runs": "Of many runs",
    "of_steps": "Of the steps of one training",
    "claimed": "Of a claim",
}

# Files outside docs/ that are pages of the site.
SITE = {
    "CHANGELOG.md": "changelog.md",
    "notebooks/README.md": "notebooks/index.md",
    "notebooks/RESULTS.md": "notebooks/results.md",
    "reports/benchmarks/against_jax_privacy.md": "explanation/tightness.md",
    "reports/benchmarks/claimed_side.md": "explanation/claimed.md",
    "reports/benchmarks/own_feature.md": "explanation/canaries.md",
    "reports/benchmarks/speed.md": "explanation/speed.md",
    "reports/league/league.md": "explanation/league.md",
    "reports/league/tightness.png": "explanation/tightness.png",
    "reports/league/violations.png": "explanation/violations.png",
    "reports/sample/adult-overfitted.html": "sample/adult-overfitted.html",
    "reports/sample/report.png": "sample/report.png",
} | {f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in ROOT.glob("notebooks/*.ipynb")}


# --- Committed pages ---


def generated() -> dict[Path, str]:
    """Return the expected text of every generated page."""
    result = {DOCS / "reference/cli.md": _command_line(), DOCS / "reference/numbers.md": _numbers()}
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if ROW.search(text):
            result[path] = ROW.sub(partial(_row, path), text)
    return result


def _row(page: Path, row: re.Match[str]) -> str:
    """Return a public name with a link to its source and the first paragraph of its docstring."""
    name = row[1]
    folder, _, last = name.rpartition(".")
    try:
        value = importlib.import_module(name)
    except ModuleNotFoundError:
        value = getattr(importlib.import_module(folder), last)
    if inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value):
        module = value.__name__ if inspect.ismodule(value) else value.__module__
        source, words = Path(str(sys.modules[module].__file__)), inspect.getdoc(value) or ""
    else:
        room = Path(str(importlib.import_module(folder).__file__))
        places = room.parent.glob("*.py") if room.stem == "__init__" else [room, *_imported(room)]
        source, words = next(match for path in places for match in _assigned(path, last))
    summary = " ".join(words.split("\n\n")[0].split()).replace("|", "\\|")
    place = posixpath.relpath(source.relative_to(ROOT).as_posix(), page.parent.relative_to(ROOT).as_posix())
    return f"| [`{name}`]({place}) | {summary} |"


def _imported(path: Path) -> list[Path]:
    """Return the files of the package's modules that a module imports names from."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [line.module for line in body if isinstance(line, ast.ImportFrom) and line.module]
    return [ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("auditor.")]


def _assigned(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the file and the docstring of a name that a module assigns."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for line, after in zip(body, [*body[1:], None], strict=True):
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield path, str(after.value.value) if documented else f"`{ast.unparse(line.value)}`"


def _numbers() -> str:
    """Return the page of the numbers of an audit, from the registry of metrics."""
    metrics = tomllib.loads((ROOT / "auditor/results/metrics.toml").read_text(encoding="utf-8"))
    parts = [
        "# Every number by name",
        "These names are the keys of `result[...]`, of gates and of the JSON. `*` stands for the end of a name, such as a rate.",
    ]
    for key, title in _GROUPS.items():
        parts.append(f"## {title}")
        for name, metric in metrics[key].items():
            words = f"**{_plain(metric['title'])}.** " if "title" in metric else ""
            if words or "sentence" in metric:
                parts.append(f"### `{name}`\n\n{words}{_plain(metric.get('sentence', ''))}".rstrip())
            equations = metric.get("equations", ())
            parts += [f"> {_plain(one['text'])}\n>\n> {_plain(one['source'])}" for one in equations]
    text = "\n\n".join(parts).replace("{rate}", "r").replace("{odds}", "a false positive rate r")
    return f"{text}\n"


def _plain(words: str) -> str:
    """Return the text with Markdown escaped."""
    return html.escape(words.strip(), quote=False).replace("*", "&#42;")


def _command_line() -> str:
    """Return the page of the commands: their help, with the rare options."""
    parts = [
        "# Command line",
        "`auditor` alone lists the commands; `auditor COMMAND --help-all` prints the text of this page.",
        _block(app.overview()),
    ]
    for name in [name for group in app.COMMANDS.values() for name in group]:
        parts += [f"## auditor {name}", _block(parsing.help_text(app.command_of(name), name, rare=True))]
    return "\n\n".join(parts) + "\n"


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```"


# --- The site ---


def on_files(files: "Files", config: Any) -> "Files":
    """Add the pages whose source is elsewhere in the repository."""
    from mkdocs.structure.files import File

    for source, page in SITE.items():
        path = ROOT / source
        if page.endswith(".md"):
            text = _notebook(path) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=text))
        else:
            files.append(File.generated(config, page, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace tables of names by docstrings, and resolve links to pages of the site."""
    here = page.file.src_uri
    source = {place: name for name, place in SITE.items()}.get(here, f"docs/{here}")

    def documented(table: re.Match[str]) -> str:
        return "\n\n".join(map(_directive, ROW.findall(table[1]))) + "\n"

    def led(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        if place in SITE or place.startswith("docs/"):
            return posixpath.relpath(SITE.get(place, place.removeprefix("docs/")), posixpath.dirname(here))
        return f"{HOME}/blob/main/{place}" if (ROOT / place).exists() else link[1]

    return _LINK.sub(led, _TABLE.sub(documented, markdown))


def _directive(name: str) -> str:
    """Return the directive of mkdocstrings for a name; for a module, of its own docstring only."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return f"::: {name}"
    return (
        f"::: {name}\n    options: {{ members: false, show_root_heading: false, show_root_toc_entry: false }}"
    )


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Convert formulas in the text and in headings to MathML, which browsers render without a script."""
    from latex2mathml.converter import convert

    def drawn(match: re.Match[str]) -> str:
        return convert(html.unescape(match[2]), display="block" if match[1] == "div" else "inline")

    headings = list(page.toc)
    for heading in headings:
        heading.title = re.sub(
            r"\\\((.*?)\\\)", lambda match: convert(html.unescape(match[1])), heading.title
        )
        headings += heading.children
    return _FORMULA.sub(drawn, content)


def _notebook(path: Path) -> str:
    """Return the cells of a notebook, which has no outputs, as a page."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(parts)


if __name__ == "__main__":
    for written, content in generated().items():
        written.write_text(content, encoding="utf-8")
