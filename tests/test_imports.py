"""``import auditor`` is light, and the public names are there."""

import subprocess
import sys

import pytest

import auditor

HEAVY = (
    "scipy",
    "matplotlib",
    "sklearn",
    "pandas",
    "statsmodels",
    "pyarrow",
    "jinja2",
    "rich",
    "typer",
    "dp_accounting",
    "torch",
    "tensorflow",
    "opacus",
)


def test_import_loads_nothing_heavy():
    """A fresh ``import auditor`` loads nothing beyond numpy and the standard library."""
    code = f"import sys, auditor; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module",
    [
        "auditor.theory",
        "auditor.canaries",
        "auditor.sensitivity",
        "auditor.collectors",
        "auditor.core.values",
        "auditor.cli.app",
    ],
)
def test_rooms_load_no_plotting_or_tables(module):
    """No room loads matplotlib, pandas, scikit-learn or scipy.stats before it needs them."""
    code = f"import sys, {module}; print([n for n in ('matplotlib', 'pandas', 'sklearn', 'scipy.stats', 'torch', 'tensorflow') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_line_begins_without_scipy():
    """Help, versions and refusals wait for numpy alone."""
    code = "import sys, auditor.cli.app; print({'scipy', 'pyarrow'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("name", auditor.__all__)
def test_public_names_exist(name):
    """Every name in ``__all__`` can be had, and has a docstring unless it is the version."""
    value = getattr(auditor, name)
    assert name == "__version__" or value.__doc__


def test_a_room_among_the_names_is_there_without_importing_it():
    """``auditor.canaries`` needs no import of its own, and is the module that an import gives."""
    code = "import sys, auditor; before = 'auditor.canaries' in sys.modules; print(before, auditor.canaries.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False auditor.canaries"


def test_unknown_names_are_attribute_errors():
    """A name that is not there raises AttributeError, as Python's tools expect."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = auditor.nonsense


def test_an_audit_of_a_table_loads_only_what_it_uses(tmp_path):
    """`auditor audit FILE.csv` on a thousand records loads no statistics, learning or drawing library, and no page."""
    table = tmp_path / "losses.csv"
    rows = "".join(f"{(i * 7919) % 1000 / 500 - i % 2 / 2},{i % 2}\n" for i in range(1000))
    table.write_text(f"loss,member\n{rows}")
    unused = (
        "scipy.stats",
        "pandas",
        "statsmodels",
        "sklearn",
        "matplotlib",
        "jinja2",
        "dp_accounting",
        "rich",
        "torch",
    )
    code = (
        "import sys; from auditor.cli import run; code = run(['audit', sys.argv[1], '--quiet']);"
        f"print(code, [name for name in {unused} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, table], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
