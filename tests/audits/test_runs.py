"""The audits of a comparison: how they are given, named and refused."""

from dataclasses import replace

import pytest

from auditor import InputError
from auditor.comparison import find_run, read_runs


def test_results_and_files_are_taken_in_order(six, tmp_path):
    """Results and paths can be mixed, and keep their order and their files' names."""
    folder = tmp_path / "Läufe und mehr"
    folder.mkdir()
    six[1].to_json(folder / "zwei.json")
    found = read_runs([six[0], folder / "zwei.json", six[2]])
    assert [run.number for run in found] == [1, 2, 3]
    assert [run.model for run in found] == ["private1", "plain1", "plain2"]
    assert [run.source for run in found] == [None, "zwei.json", None]
    assert found[1].utility == found[1].utility.__class__(0.8, "test accuracy")


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([], "got 0"),
        ("one", "got 1; a single one has its own report"),
        ("bare", "got one AuditResult"),
        ("result.json", "got one str"),
        ([3, 4], "result 1 must be an audit result or the path of one, got int"),
        (7, "got one int"),
    ],
)
def test_what_is_no_list_of_audits_is_refused(six, results, words):
    """Anything but two or more audits is one sentence that says what was given."""
    given = {"one": [six[0]], "bare": six[0]}.get(results, results) if isinstance(results, str) else results
    with pytest.raises(InputError, match=words):
        read_runs(given)


def test_the_same_audit_twice_is_refused(six, tmp_path):
    """One audit given twice is refused, as the same object, as a copy, and from two files."""
    for twin in (six[0], replace(six[0])):
        with pytest.raises(InputError, match=r"results 1 and 3 .* are the same audit; give each once"):
            read_runs([six[0], six[1], twin])
    for name in ("a.json", "b.json"):
        six[0].to_json(tmp_path / name)
    with pytest.raises(InputError, match=r"results 1 and 2 .*a\.json.*b\.json"):
        read_runs([tmp_path / "a.json", tmp_path / "b.json"])


def test_two_audits_of_the_same_losses_are_two_audits(audited):
    """The same losses audited at two deltas are not the same audit."""
    assert len(read_runs([audited(0.5), audited(0.5, delta=1e-3)])) == 2


@pytest.mark.parametrize(
    "data",
    [
        {"utility": {"value": float("-inf"), "name": "accuracy"}, "strategy": " ", "model": ""},
        {"utility": {"value": float("nan"), "name": "accuracy"}, "strategy": None, "model": None},
        {"utility": {"value": float("inf"), "name": "accuracy"}},
        {"utility": {"value": 0.5, "name": "  "}},
    ],
)
def test_what_is_not_of_its_kind_counts_as_not_said(audited, data):
    """A utility that is no finite number or has no name, and blank texts, count as not said."""
    run = read_runs([audited(0.1, model=None, strategy=None, utility=None), audited(0.2, **data)])[1]
    assert (run.utility, run.strategy, run.model) == (None, None, None)
    assert run.title == "Audit 2"


def test_a_result_is_named_by_file_model_number_or_itself(six, tmp_path):
    """Every way of naming a result finds it."""
    six[1].to_json(tmp_path / "two.json")
    found = read_runs([six[0], tmp_path / "two.json", six[2]])
    for key in (tmp_path / "two.json", str(tmp_path / "two.json"), "two.json", "plain1", 2, 2.0, "2", " 2 "):
        assert find_run(found, key, argument="it").number == 2
    assert find_run(found, six[2], argument="it").number == 3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("private2", "it must name one of the results, got 'private2'; did you mean 'private1'?"),
        (
            "zzz",
            "got 'zzz'; they are 'private1', 'plain1', 'plain2', 'over1', 'over2', ..., or by number 1 to 6",
        ),
        (7, "got 7"),
        (0, "got 0"),
        (True, "got True"),
        (None, "got None"),
        ("y" * 1000, "y..."),
    ],
)
def test_a_name_of_nothing_is_refused(six, key, words):
    """A name that no result has is one short sentence with the names there are."""
    with pytest.raises(InputError) as caught:
        find_run(read_runs(six), key, argument="it")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_of_two_results_is_refused(audited):
    """A model's name that two results share names neither; one that is a number comes before the number."""
    found = read_runs([audited(0.1, model="m"), audited(0.2, model="m"), audited(0.3, model="2")])
    with pytest.raises(InputError, match=r"'m' is the name of more than one result \(1 and 2\)"):
        find_run(found, "m", argument="it")
    assert find_run(found, "2", argument="it").number == 3


def test_each_result_is_looked_at_whole_once(six, monkeypatch):
    """Of 60 audits of the same losses, made in the same second, each becomes JSON once, not once for each other."""
    several = [replace(six[0], data={**six[0].data, "model": f"m{i}"}) for i in range(60)]
    whole, asked = type(six[0]).to_dict, []
    monkeypatch.setattr(type(six[0]), "to_dict", lambda self: asked.append(self) or whole(self))
    assert len(read_runs(several)) == 60
    assert len(asked) == 60
    with pytest.raises(InputError, match=r"results 4 and 61 .* are the same audit"):
        read_runs([*several, replace(several[3])])
