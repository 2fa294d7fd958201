"""Results that are kept belong to the code that made them: what was changed since is named, and not read in silence."""

import functools
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import run_tasks

import auditor
from auditor.core import InputError
from auditor.many import fingerprint

SOURCE = '''
import kept_steps

class Net:
    layers = 2
    @staticmethod
    def width():
        return 8

def scaled(score):
    return halved(score) * Net.width()

def halved(score):
    return score / 2

def train(with_canary, seed, noise=1.0, *, power=(1, 2)):
    """A training."""
    import random
    places = {"north", "south", "west", "east"}
    def drawn():
        """Inner."""
        return random.Random(seed).gauss(0, noise)
    # A comment.
    steps = [kept_steps.step(scaled(number)) for number in (1, 2)]
    return -(with_canary + drawn()) if "north" in {"north", "south", "west"} else 0.0
'''


STEPS = "def step(score):\n    return score + 1\n"


def loaded(folder, change=("", "")):
    """The function `train` of modules of one and the same name with a change of the source."""
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    for name, text in (("kept_steps", STEPS), ("kept_task", SOURCE)):
        path = place / f"{name}.py"
        path.write_text(text.replace(*change), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.train


@pytest.fixture
def modules(tmp_path):
    """A folder for modules, beside the one for results."""
    folder = tmp_path / "modules"
    folder.mkdir()
    return folder


def collected(train, folder):
    """Four scores of a training."""
    return auditor.collect_runs(train, runs=4, workers=1, folder=folder).member.tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-(with_canary", "-(3 * with_canary"),
        ("noise=1.0", "noise=2.0"),
        ("power=(1, 2)", "power=(1, 3)"),
        ("else 0.0", "else 0.5"),
        ("gauss(0, noise)", "uniform(0, noise)"),
        ('"west"} else', '"east"} else'),
        ("noise=1.0, *, power", "noise=1.0, *more, power"),
        ("halved(score) *", "halved(score) +"),
        ("score / 2", "score / 3"),
        ("return 8", "return 9"),
        ("score + 1", "score + 2"),
    ],
)
def test_results_of_other_code_are_not_read(tmp_path, modules, old, new):
    """A changed body, default, constant, inner function, helper or class of the user is one sentence; the file stays as it is."""
    folder = tmp_path / "runs"
    collected(loaded(modules), folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert (SOURCE + STEPS).count(old) == 1
    with pytest.raises(InputError) as caught:
        collected(loaded(modules, (old, new)), folder)
    name = str(caught.value).split("'")[1]
    assert "was made by another version of the function 'train'" in str(caught.value)
    assert str(folder) in name
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('"""A training."""', '"""Another text."""'),
        ('    """A training."""\n', ""),
        ('        """Inner."""\n', ""),
        ("# A comment.", "# Another one.\n\n"),
        ("def train", "\n\n\ndef train"),
    ],
)
def test_comments_docstrings_and_lines_do_not_count(tmp_path, modules, old, new):
    """The same function loaded again, or with other comments, docstrings and lines, reads what is there."""
    folder = tmp_path / "runs"
    first = collected(loaded(modules), folder)
    assert collected(loaded(modules, (old, new)), folder) == first
    assert len(list(folder.iterdir())) == 4


def test_a_fingerprint_is_the_same_in_every_process(modules):
    """Sets of constants have another order in every process; the fingerprint has not."""
    loaded(modules)
    program = (
        f"import sys; sys.path.insert(0, {str(modules / '0')!r}); import kept_task;"
        "from auditor.many import fingerprint; print(fingerprint(kept_task.train))"
    )
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
        found.add(done.stdout)
    assert len(found) == 1


def _scaled(factor):
    def decorate(function):
        @functools.wraps(function)
        def inner(with_canary, seed):
            return factor * function(with_canary, seed)

        return inner

    return decorate


def test_a_decorated_function_is_known_by_all_its_levels():
    """The closure of the decorator counts, and so does the wrapped function."""
    noisy, broken = run_tasks.noisy_count, run_tasks.broken
    made = (_scaled(1.0)(noisy), _scaled(2.0)(noisy), _scaled(1.0)(broken), noisy)
    assert fingerprint(made[0]) == fingerprint(_scaled(1.0)(noisy))
    assert len(set(map(fingerprint, made))) == 4


def _closing(value):
    def train():
        return value

    return train


def test_what_is_closed_over_has_a_plain_form():
    """Arrays, mappings, settings and other functions are distinguished by what is in them; a cycle ends."""
    values = [
        np.arange(3), np.arange(4), {"x": 1}, {"x": 2}, [1], (1,), {1}, 1, 1.0, True, None,
        auditor.StatedClaim(1.0, 1e-5), auditor.StatedClaim(2.0, 1e-5), auditor.Adjacency.ADD_REMOVE,
        run_tasks.noisy_count, run_tasks.threads, int, len,
    ]  # fmt: skip
    assert len({fingerprint(_closing(value)) for value in values}) == len(values)
    assert fingerprint(_closing({"x": 1, "y": 2})) == fingerprint(_closing({"y": 2, "x": 1}))

    def again(number):
        return again(number - 1)

    assert fingerprint(again) == fingerprint(again)


@pytest.mark.parametrize("train", [_closing(1.0), [].append], ids=["closure", "method"])
def test_functions_that_hide_a_setting_are_not_kept(tmp_path, train):
    """Two closures, or methods of two objects, have one name: kept, the scores of the first would be read for the second."""
    with pytest.raises(InputError, match="train must be a named function when its results are kept"):
        collected(train, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_functions_of_classes_and_of_c_are_kept(tmp_path):
    """A static method has a name of its own, and so has a function of a compiled module, which has no instructions to show."""
    assert len(fingerprint(_Static.train)) == len(fingerprint(max)) == 64
    assert len(collected(_Static.train, tmp_path)) == 2


class _Static:
    @staticmethod
    def train(with_canary, seed):
        return with_canary + seed
