"""A folder of the package imports only folders below it: the order, held by every way of importing."""

import ast
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

import auditor

# From the ground to the roof. What stands on one floor may import each other, but not in a circle.
FLOORS = (
    "core",
    "records",
    "curves",
    "theory",
    "estimators",
    "scores",
    "checks",
    "results",
    "report.words",
    "report.rows",
    "collectors.base",
    "collectors.tables",
    "collectors.models",
    "collectors.served",
    "collectors.texts",
    "collectors.streaming",
    "verdicts",
    "risk",
    "comparison",
    "many",
    "training",
    "sensitivity",
    "canaries",
    "pipeline",
    "report.figures",
    "report",
    "api",
    "cli",
)
# The package's own face, the way in from the shell, and a number that everybody may read.
OUTSIDE = {"auditor", "auditor.__main__", "auditor._version"}
# The one exception: what is shown of a result is a method of it, which loads the report when it is called.
SHOWN = {"auditor.results.document", "auditor.comparison.compare"}
# A face loads nothing before a name is requested.
OF_FACES = {"auditor.core.lazy"}


# --- What a module imports -----------------------------------------------------------------------------


@dataclass(frozen=True)
class House:
    """The texts of a package's modules, by their dotted names.

    Attributes:
        texts: Source text of each module; that of a folder is its face.
        faces: Names of the modules that are faces.
    """

    texts: dict[str, str]
    faces: frozenset[str]

    @classmethod
    def at(cls, folder):
        """Every module below a package's folder."""
        texts, faces = {}, set()
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            if path.name == "__init__.py":
                name = name.removesuffix(".__init__")
                faces.add(name)
            texts[name] = path.read_text(encoding="utf-8")
            stub = path.with_suffix(".pyi")
            if stub.exists():
                listed = textwrap.indent(stub.read_text(encoding="utf-8"), "    ")
                texts[name] += f"if TYPE_CHECKING:\n{listed}"
        return cls(texts, frozenset(faces))

    @cached_property
    def arrows(self):
        """Each module with those of the package that it imports: anywhere in its text, and by name as a string."""
        found = {}
        for name, text in self.texts.items():
            nodes = list(ast.walk(ast.parse(text)))
            imported = {target for node in nodes for target in self._imported(node, name)}
            found[name] = imported | self._named(nodes)
        return found

    @cached_property
    def loaded(self):
        """The arrows without those by which the methods of a result load the report when they are called."""
        report = {name for name in self.texts if f"{name}.".startswith("auditor.report.")}
        return {name: found - report if name in SHOWN else found for name, found in self.arrows.items()}

    def _imported(self, node, name):
        """The modules of the package that one statement of a module imports; of a name, where it stands."""
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                parts = parts[: len(parts) - node.level + (name in self.faces)]
                base = ".".join([*parts, *([base] if base else [])])
            both = [f"{base}.{alias.name}" for alias in node.names]
            found = [long if long in self.texts else base for long in both]
        else:
            return set()
        return {target for target in found if target in self.texts}

    def _named(self, nodes):
        """The modules that a text gives to ``import_module``.

        Where the argument is put together, every string of the text counts that makes a module of it.
        """
        calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
        named = (call for call in calls if _called(call) in ("import_module", "__import__"))
        heads = {head for call in named for head in _heads(call)}
        if not heads:
            return set()
        words = [
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        return {head + word for head in heads for word in words} & self.texts.keys()


def _called(call):
    return ast.unparse(call.func).rpartition(".")[2]


def _heads(call):
    """The visible start of the module's name; empty if all of it is a variable or a string."""
    first = call.args[0]
    if isinstance(first, ast.JoinedStr) and isinstance(first.values[0], ast.Constant):
        return {first.values[0].value}
    if isinstance(first, ast.BinOp) and isinstance(first.left, ast.Constant):
        return {str(first.left.value)}
    return {""}


# --- What is not allowed -------------------------------------------------------------------------------


def floor(module, floors=FLOORS):
    """The height of a module; of the face of a folder with floors of its own the highest of them; none if unknown."""
    inside = [room for room in floors if f"{module}.".startswith(f"auditor.{room}.")]
    if inside:
        return floors.index(max(inside, key=len))
    below = [place for place, room in enumerate(floors) if f"auditor.{room}".startswith(f"{module}.")]
    return max(below, default=None) if module not in OUTSIDE else None


def homeless(house):
    """Modules that stand on no floor."""
    return [name for name in house.texts if name not in OUTSIDE and floor(name) is None]


def upward(house):
    """Arrows to a higher floor."""
    return [
        f"{name} -> {target}"
        for name, targets in house.loaded.items()
        for target in sorted(targets)
        if None not in (floor(name), floor(target)) and floor(target) > floor(name)
    ]


def through_faces(house):
    """Imports of the package itself, and of the face of a folder by what stands in it."""
    return [
        f"{name} -> {target}"
        for name, targets in house.arrows.items()
        for target in sorted(targets)
        if target in house.faces and name.startswith(f"{target}.") and name not in OUTSIDE
    ]


def eager(house):
    """The modules that faces load before a name is requested; imports for typing alone are not loaded."""
    found = []
    for name in sorted(house.faces):
        tree = ast.parse(house.texts[name])
        for typing_only in [node for node in tree.body if isinstance(node, ast.If)]:
            if ast.unparse(typing_only.test) == "TYPE_CHECKING":
                tree.body.remove(typing_only)
        for node in ast.walk(tree):
            loaded = {node.module} if isinstance(node, ast.ImportFrom) else set()
            loaded |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            found += [f"{name} -> {module}" for module in sorted(loaded - OF_FACES)]
    return found


def circles(house):
    """Groups of modules that reach each other, each sorted."""
    arrows = house.loaded
    reached = {}
    for name in arrows:
        seen, waiting = set(), [name]
        while waiting:
            for target in arrows[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        reached[name] = seen
    groups = {
        tuple(sorted({name} | {other for other in seen if name in reached[other]}))
        for name, seen in reached.items()
        if name in seen
    }
    return sorted(groups)


# --- The house as it stands ----------------------------------------------------------------------------


HOUSE = House.at(Path(auditor.__file__).parent)


@pytest.mark.parametrize(
    "fault", [homeless, upward, through_faces, eager, circles], ids=lambda fault: fault.__name__
)
def test_the_house_stands(fault):
    """Every module has a floor, no import runs up, in a circle or through a face of its own, and faces are lazy."""
    assert fault(HOUSE) == []


def test_every_floor_is_there():
    """A name in the list that no module has is a floor that has moved."""
    assert [room for room in FLOORS if f"auditor.{room}" not in HOUSE.texts] == []


# --- The tests above can fail --------------------------------------------------------------------------


def made_up(**more):
    """A small house: two rooms, their lazy faces, and the modules that are given, ``__`` standing for a dot."""
    lazy = "from auditor.core.lazy import face\nface(__name__, __file__)"
    faces = dict.fromkeys(
        ("auditor", "auditor.core", "auditor.api", "auditor.cli", "auditor.collectors"), lazy
    )
    given = {f"auditor.{name.replace('__', '.')}": textwrap.dedent(text) for name, text in more.items()}
    return House(
        {"auditor.core.lazy": "", **faces, "auditor.core.values": "", "auditor.cli.app": "", **given},
        frozenset(faces),
    )


@pytest.mark.parametrize(
    "text",
    [
        "from auditor.cli.app import main",
        "from auditor.cli import app",
        "import auditor.cli.app",
        "from ..cli import app",
        "def run():\n    from auditor.cli.app import main",
        "if TYPE_CHECKING:\n    from auditor.cli.app import main",
        "importlib.import_module('auditor.cli.app')",
        "import_module(f'auditor.{name}')\nNAMES = ('cli.app',)",
        "import_module('auditor.cli.' + name)\nNAMES = {'app': 1}",
        "import_module(name)\nNAMES = ['auditor.cli.app']",
    ],
)
def test_an_arrow_up_is_found(text):
    """An import from a higher floor is found in a function, for typing, and by a name put together from strings."""
    assert upward(made_up(core__files=text)) == ["auditor.core.files -> auditor.cli.app"]
    assert upward(made_up(cli__more="from auditor.core.values import Losses")) == []


def test_an_arrow_to_a_higher_face_is_found():
    """A face counts as the highest floor of its folder."""
    text = "from auditor.collectors import collect"
    assert upward(made_up(collectors__base__tasks=text, mechanism__plans=text)) == [
        "auditor.collectors.base.tasks -> auditor.collectors"
    ]


@pytest.mark.parametrize(
    "text", ["from auditor import audit", "import auditor", "from auditor.core import Losses"]
)
def test_a_module_through_its_own_face_is_found(text):
    """The package itself, and a folder's face from inside it, are for those who stand outside."""
    assert len(through_faces(made_up(core__files=text))) == 1
    assert through_faces(made_up(core__files="from auditor.core.values import Losses")) == []


def test_a_face_that_loads_is_found():
    """A face may import what it needs for typing, and nothing else."""
    loads = "from auditor.core.values import Losses"
    assert eager(made_up(core=loads)) == ["auditor.core -> auditor.core.values"]
    assert eager(made_up(core=f"def f():\n    {loads}")) == ["auditor.core -> auditor.core.values"]
    assert eager(made_up(core=f"if TYPE_CHECKING:\n    {loads}")) == []


def test_a_circle_is_found():
    """Modules that import each other are named together, by imports in functions and through a face's stub too."""
    there = "from auditor.core.values import Losses"
    back = "def run():\n    from auditor.core.files import whole"
    assert circles(made_up(core__files=there, core__values=back)) == [
        ("auditor.core.files", "auditor.core.values")
    ]
    stub = "if TYPE_CHECKING:\n    from auditor.core.values import Losses"
    assert circles(made_up(core=stub, core__values="from auditor.core import Losses")) == [
        ("auditor.core", "auditor.core.values")
    ]
    assert circles(made_up(core__files=there)) == []


def test_a_folder_that_is_not_in_the_list_is_found():
    """A new room has to say where it stands."""
    assert homeless(made_up(attic__chest="")) == ["auditor.attic.chest"]
    assert homeless(made_up()) == []
