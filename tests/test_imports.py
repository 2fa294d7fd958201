"""``import auditor`` is light, and the public names are there."""

import re
from pathlib import Path

import pytest
from command_line import printed

import auditor

NEVER = ("matplotlib", "pandas", "sklearn", "scipy.stats", "torch", "tensorflow")
HEAVY = (*NEVER, "scipy", "statsmodels", "pyarrow", "jinja2", "rich", "cyclopts", "dp_accounting", "opacus")


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("auditor", HEAVY),
        ("auditor.theory", NEVER),
        ("auditor.canaries", NEVER),
        ("auditor.sensitivity", NEVER),
        ("auditor.training", NEVER),
        ("auditor.collectors", NEVER),
        ("auditor.core.values", NEVER),
        ("auditor.cli.app", (*NEVER, "scipy", "pyarrow")),
    ],
)
def test_a_fresh_import_loads_nothing_heavy(module, unused):
    """No room loads before it needs them what draws, learns or holds tables; the command line begins with numpy alone."""
    assert printed(f"import sys, {module}; print([name for name in {unused} if name in sys.modules])") == "[]"


def test_a_room_among_the_names_is_there_without_importing_it():
    """``auditor.canaries`` needs no import of its own, and is the module that an import gives."""
    code = "import sys, auditor; before = 'auditor.canaries' in sys.modules; print(before, auditor.canaries.__name__)"
    assert printed(code) == "False auditor.canaries"


def test_unknown_names_are_attribute_errors():
    """A name that is not there raises AttributeError, as Python's tools expect."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = auditor.nonsense


def test_an_audit_of_a_table_loads_only_what_it_uses(tmp_path):
    """`auditor audit FILE.csv` on a thousand records loads no statistics, learning or drawing library, and no page."""
    table = tmp_path / "losses.csv"
    rows = "".join(f"{(i * 7919) % 1000 / 500 - i % 2 / 2},{i % 2}\n" for i in range(1000))
    table.write_text(f"loss,member\n{rows}")
    unused = (*NEVER, "statsmodels", "jinja2", "dp_accounting", "rich")
    code = (
        "import sys; from auditor.cli import run; code = run(['audit', sys.argv[1], '--quiet']);"
        f"print(code, [name for name in {unused} if name in sys.modules])"
    )
    assert printed(code, table) == "0 []"


def test_no_module_has_the_name_of_a_function_that_its_room_offers():
    """Importing such a module would put it in the place of the function, so that a call fails by the order of imports."""
    for stub in Path(auditor.__file__).parent.rglob("__init__.pyi"):
        for source, names in re.findall(
            r"^from auditor\.(\S+) import (\([^)]*\)|.*)$", stub.read_text(), re.MULTILINE
        ):
            offered = re.findall(r"(\w+)(?: as \w+)?(?:,|\)|$)", names.strip("()"), re.MULTILINE)
            taken = [name for name in offered if (stub.parent / f"{name}.py").exists()]
            assert taken == [] or source == stub.parent.name, (stub, taken)
