"""Write each notebook from its script, without outputs, or say which ones are out of date.

Usage: python notebooks/pair.py [--check] [NAME ...]

The script (``NAME.py``, cells after ``# %%``) is what is edited and reviewed; ``NAME.ipynb`` is made from it.
"""

import argparse
import sys
from pathlib import Path

import jupytext
import nbformat

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def scripts() -> list[Path]:
    """Return the scripts that are notebooks: those with cells."""
    return [path for path in sorted(HERE.glob("*.py")) if "\n# %%" in "\n" + path.read_text(encoding="utf-8")]


def notebook_text(script: Path) -> str:
    """Return the notebook of a script as text: the same text for the same script, and no outputs."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(
        {
            "jupytext": {"formats": "ipynb,py:percent"},
            "kernelspec": KERNEL,
            "language_info": {"name": "python"},
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number:03d}"
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def main() -> int:
    """Write the notebooks, or compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="which notebooks, without ending; all by default")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail where a notebook is out of date"
    )
    asked = parser.parse_args()
    named = [script.stem for script in scripts()]
    unknown = sorted(set(asked.names) - set(named))
    if unknown:
        parser.error(f"no script with cells is called {unknown[0]!r}; there are {', '.join(named)}")
    late = [path.name for path in sorted(HERE.glob("*.ipynb")) if path.stem not in named]
    if late and not asked.check:
        parser.error(f"{late[0]} has no script; delete it, or write {Path(late[0]).stem}.py")
    for script in scripts():
        if asked.names and script.stem not in asked.names:
            continue
        text, path = notebook_text(script), script.with_suffix(".ipynb")
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        late.append(path.name)
        if not asked.check:
            path.write_text(text, encoding="utf-8")
    if late:
        print("out of date:" if asked.check else "written:", ", ".join(late))
    return 1 if late and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
