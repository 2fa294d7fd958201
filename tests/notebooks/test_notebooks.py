"""The notebooks: each is its script, holds no outputs, and runs from top to bottom with small settings."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
# Only this one trains with TensorFlow Privacy.
NEEDS = {"epsilon_star": ("notebooks", "tensorflow")}
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def pair():
    """The script that writes notebooks, as a module."""
    spec = importlib.util.spec_from_file_location("pair", NOTEBOOKS / "pair.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_notebook_is_made_from_its_script(require_extra):
    """A notebook is exactly what its script makes, so that a review of the script is a review of the notebook."""
    require_extra("notebooks")
    module = pair()
    scripts = module.scripts()
    assert [script.stem for script in scripts] == NAMES
    for script in scripts:
        assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == module.notebook_text(script)


@pytest.mark.parametrize("name", NAMES)
def test_no_outputs_in_the_repository(name):
    """A notebook in the repository holds no outputs and no execution counts."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("name", NAMES)
def test_public_api_only(name):
    """A notebook uses no private name of the package."""
    text = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    assert "auditor._" not in text
    assert "from auditor import _" not in text


@pytest.mark.parametrize("name", NAMES)
def test_runs_from_top_to_bottom(name, require_extra, monkeypatch, tmp_path):
    """A notebook runs with small settings and without data, and every cell of it ends without an error."""
    for extra in NEEDS.get(name, ("notebooks",)):
        require_extra(extra)
    import nbformat
    from nbclient import NotebookClient

    for variable in ("FULL", "ADULT", "LOCATION30", "PURCHASE100"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("RUNS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(NOTEBOOKS), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is not None for cell in code)
