"""The public results: plain documents that got the methods which show them, and stay values."""

import copy
import dataclasses
import importlib

import numpy as np
import pytest

import auditor
from auditor.core import InputError, Status

LAW = np.full((40, 2), 0.5)
KINDS = {"AuditResult": None, "InstancesResult": "instances", "RunsResult": "runs", "LabelsResult": "labels"}


@pytest.fixture
def losses(rng):
    """A leak of two hundred records."""
    return auditor.Losses(member=rng.normal(-1, 1, 200), nonmember=rng.normal(0, 1, 200))


@pytest.fixture(params=KINDS)
def made(request, losses):
    """A result of each kind, with the class that callers know it by."""
    makers = {
        "AuditResult": lambda: auditor.audit(losses),
        "InstancesResult": lambda: auditor.audit_instances(
            [losses, losses.take(**_half(losses))], delta=0.01
        ),
        "RunsResult": lambda: auditor.audit_runs(losses, delta=0.01),
        "LabelsResult": lambda: auditor.audit_labels(np.asarray, (LAW, np.arange(40) % 2), probabilities=LAW),
    }
    return makers[request.param](), getattr(auditor, request.param)


def _half(losses):
    """Every other record."""
    return {"member": slice(0, losses.n_member, 2), "nonmember": slice(0, losses.n_nonmember, 2)}


def test_results_are_of_the_public_class(made):
    """The result of a public function is of the public class, with the same methods, and has a display for notebooks."""
    result, kind = made
    assert isinstance(result, kind)
    assert callable(result.to_json)
    names = [item.name for item in result.estimates]
    assert list(result.to_frame().index) == names
    assert result.estimate(names[0]) is result.estimates[0]
    assert isinstance(result.check(result.checks[0].name).status, Status)
    with pytest.raises(InputError, match="check must be one of"):
        result.check("nothing")
    assert result.to_dict().get("kind") == KINDS[kind.__name__]
    assert result._repr_html_().lstrip().startswith("<")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, dataclasses.replace])
def test_copies_are_the_same_result(made, again):
    """A copy is of the public class and says the same; a result equals itself alone, as its arrays decide nothing."""
    result, kind = made
    other = again(result)
    assert type(other) is kind
    assert other.to_json() == result.to_json()
    assert result == result  # noqa: PLR0124
    assert other != result


def test_what_is_read_and_compared_is_public_too(losses, tmp_path):
    """A result that is read back has the showing methods, and so has a comparison."""
    first = auditor.audit(losses, model="first")
    first.to_json(tmp_path / "first.json")
    read = auditor.read_result(tmp_path / "first.json")
    assert isinstance(read, auditor.AuditResult)
    assert read.to_html() == first.to_html()
    comparison = auditor.comparison.compare_audits([read, auditor.audit(losses, model="second", seed=1)])
    assert isinstance(comparison, auditor.AuditsComparison)
    assert "first" in comparison.to_html()


ROOMS = [name for name in dir(auditor) if type(getattr(auditor, name)).__name__ == "module"]


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_every_name_of_a_public_face_is_there(room):
    """A public face has each name of its ``__all__``, documented and no module; a name at the top is the same in its room."""
    face = getattr(auditor, room) if room else auditor
    names = {name: getattr(face, name) for name in getattr(face, "__all__", ())}
    assert names or room == "canaries"
    assert all(value.__doc__ for name, value in names.items() if name != "__version__")
    assert not [name for name, value in names.items() if type(value).__name__ == "module"]
    assert all(getattr(auditor, name) is value for name, value in names.items() if name in auditor.__all__)


def test_a_name_that_stands_elsewhere_is_refused_with_its_place():
    """At most 75 names are at the top and 40 in `theory`; of another the error says where it is, or nothing."""
    assert len(auditor.__all__) <= 75
    assert len(auditor.theory.__all__) <= 40
    for package, name, place in (
        (auditor, "compare_audits", "auditor.comparison.compare_audits"),
        (auditor, "ClopperPearson", "auditor.estimators.ClopperPearson"),
        (auditor, "overview", "auditor.theory.overview"),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute {name!r}; it is {place}$"):
            getattr(package, name)
        room = importlib.import_module(place.rpartition(".")[0])
        assert getattr(room, name).__name__ == name
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        getattr(auditor, "nothing")  # noqa: B009


def test_the_arguments_of_an_audit_are_those_of_its_options(rng):
    """Losses go in by name too; a former or misspelt argument, and none at all, are refused with the name that is meant."""
    losses = auditor.Losses(member=rng.normal(-1, 1, 60), nonmember=rng.normal(0, 1, 60))
    named = auditor.audit(losses=losses, delta=1e-5, split="random:stratified", coverage="census")
    values = auditor.RandomSplit(stratified=True), auditor.Census()
    assert named.estimates == auditor.audit(losses, delta=1e-5, split=values[0], coverage=values[1]).estimates
    for arguments, words in (
        ({"members": auditor.Census()}, "is called 'coverage'"),
        ({"confidense": 0.9}, "did you mean 'confidence'"),
    ):
        with pytest.raises((TypeError, auditor.InputError), match=words):
            auditor.audit(losses, **arguments)
    with pytest.raises(auditor.InputError, match=r"losses must be auditor\.Losses.*got one NoneType"):
        auditor.audit(delta=1e-5)
    with pytest.raises(TypeError, match="got too many arguments by position; give them by name"):
        auditor.audit(losses, losses.member, losses.nonmember)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"split": "randm"}, "split must be one of .* did you mean 'random'"),
        ({"split": "bernoulli:1.5"}, r"inclusion must lie in \(0, 1\)"),
        ({"split": "random:odd=1"}, "has the fields stratified"),
        ({"coverage": "subset"}, "coverage 'subset' needs of"),
        ({"threshold": "fixed:nan"}, "threshold must be finite"),
        ({"fpr": "0.1,,0.2"}, "fpr must be a number, got ''"),
        ({"mixture": "many"}, "max_components must be a number, got 'many'"),
        ({"utility": "high"}, "utility must be a number, got 'high'"),
    ],
)
def test_a_choice_by_name_is_refused_as_one_sentence(rng, arguments, words):
    """A text that names no choice, or not with these fields, is refused before anything is computed."""
    losses = auditor.Losses(member=rng.normal(size=60), nonmember=rng.normal(size=60))
    with pytest.raises(auditor.InputError, match=words):
        auditor.audit(losses, **arguments)
