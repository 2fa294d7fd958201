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
    ["auditor.theory", "auditor.sensitivity", "auditor.collectors", "auditor.core.values", "auditor.cli.app"],
)
def test_rooms_load_no_plotting_or_tables(module):
    """No room loads matplotlib, pandas, scikit-learn or scipy.stats before it needs them."""
    code = f"import sys, {module}; print([n for n in ('matplotlib', 'pandas', 'sklearn', 'scipy.stats', 'torch', 'tensorflow') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", auditor.__all__)
def test_public_names_exist(name):
    """Every name in ``__all__`` can be had, and has a docstring unless it is the version."""
    value = getattr(auditor, name)
    assert name == "__version__" or value.__doc__


def test_unknown_names_are_attribute_errors():
    """A name that is not there raises AttributeError, as Python's tools expect."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = auditor.nonsense
