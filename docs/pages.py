"""Pages that are made from the repository while mkdocs builds: notebooks, command line, tables and the sample report."""

import html
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from auditor.cli import app, parsing

ROOT = Path(__file__).parents[1]
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)

_GROUPS = {"of_models": "Of one model", "of_runs": "Of many runs", "claimed": "Of a claim"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that have their source elsewhere in the repository."""
    made = {
        "reference/cli.md": _command_line(),
        "reference/numbers.md": _numbers(),
        "changelog.md": _text("CHANGELOG.md"),
        "notebooks/index.md": _text("notebooks/README.md"),
        "notebooks/results.md": _text("notebooks/RESULTS.md"),
        "explanation/tightness.md": _text("reports/benchmarks/against_jax_privacy.md"),
        "explanation/claimed.md": _text("reports/benchmarks/claimed_side.md"),
    } | {f"notebooks/{path.stem}.md": _notebook(path) for path in ROOT.glob("notebooks/*.ipynb")}
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    for name in ("adult-overfitted.html", "report.png"):
        files.append(
            File.generated(config, f"sample/{name}", abs_src_path=str(ROOT / "reports/sample" / name))
        )
    return files


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Write formulas as MathML, which browsers draw without a script: in the text, and in the headings beside it."""

    def drawn(found: re.Match[str]) -> str:
        return convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline")

    headings = list(page.toc)
    for heading in headings:
        heading.title = re.sub(
            r"\\\((.*?)\\\)", lambda found: convert(html.unescape(found[1])), heading.title
        )
        headings += heading.children
    return _FORMULA.sub(drawn, content)


def _text(path: str) -> str:
    """A text of the repository, with links to notebooks leading to their pages."""
    words = (ROOT / path).read_text(encoding="utf-8")
    return re.sub(r"\]\((\w+)\.ipynb", r"](\1.md", words).replace("](RESULTS.md", "](results.md")


def _notebook(path: Path) -> str:
    """The cells of a notebook, which holds no outputs, as a page."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return re.sub(r"\]\((\w+)\.ipynb", r"](\1.md", "\n\n".join(parts))


def _numbers() -> str:
    """Each number of an audit, as the package tells of it."""
    told = tomllib.loads((ROOT / "auditor/results/metrics.toml").read_text(encoding="utf-8"))
    parts = [
        "# Every number by name",
        "The names are those of `result[...]`, of gates and of the JSON. `*` stands for the end of a name, such as a rate.",
    ]
    for key, title in _GROUPS.items():
        parts.append(f"## {title}")
        for name, metric in told[key].items():
            words = f"**{_plain(metric['title'])}.** " if "title" in metric else ""
            if words or "sentence" in metric:
                parts.append(f"### `{name}`\n\n{words}{_plain(metric.get('sentence', ''))}")
            equations = metric.get("equations", ())
            parts += [f"> {_plain(one['text'])}\n>\n> {_plain(one['source'])}" for one in equations]
    return "\n\n".join(parts).replace("{rate}", "r").replace("{odds}", "a share r of false alarms")


def _plain(words: str) -> str:
    """Words in which nothing is Markdown."""
    return html.escape(words.strip()).replace("*", "&#42;")


def _command_line() -> str:
    """Each command as its help describes it, with the rare options."""
    parts = [
        "# Command line",
        "`auditor` alone says where to begin; `auditor help COMMAND` says what is here.",
        _block(app.overview()),
    ]
    for name in [name for group in app.COMMANDS.values() for name in group]:
        parts += [f"## auditor {name}", _block(parsing.help_text(app.command_of(name), name, rare=True))]
    return "\n\n".join(parts)


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```"
