"""The first guesses of users work, or the error names the way."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import special
from sklearn.linear_model import LinearRegression, LogisticRegression

import auditor

MEMBER, OTHERS = np.random.default_rng(3).normal(size=(2, 300)) - [[1.0], [0.0]]
X = np.random.default_rng(5).normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)
PAIRS = {"members": (X[:60], Y[:60]), "nonmembers": (X[60:], Y[60:])}


@pytest.fixture(scope="module")
def result():
    """An audit of two arrays."""
    return auditor.audit(MEMBER, OTHERS, delta=1e-5, model="m")


def test_arrays_tables_and_paths_are_audited(result, tmp_path):
    """Two arrays, a table of columns, its file and `Losses` are the same audit."""
    losses = auditor.Losses(member=MEMBER, nonmember=OTHERS)
    frame = losses.to_frame()
    frame.to_csv(tmp_path / "losses.csv", index=False)
    for arguments in (
        losses,
        frame,
        frame.to_dict("list"),
        tmp_path / "losses.csv",
        str(tmp_path / "losses.csv"),
    ):
        again = auditor.audit(arguments, delta=1e-5)
        assert [item.value for item in again.estimates] == [item.value for item in result.estimates]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((MEMBER,), "got one ndarray"),
        ((None,), "auditor.read_losses takes other names"),
        ((auditor.Losses(member=MEMBER, nonmember=OTHERS), OTHERS), "got one Losses and another argument"),
        (
            (np.ones((9, 2)), np.ones((9, 2))),
            "shape (9, 2); probabilities and logits become losses by auditor.losses_from",
        ),
        (({"loss": [0.1, 0.2]},), "'member'"),
        (
            (auditor.Losses(member=MEMBER, nonmember=OTHERS).to_frame(),) * 2,
            "got shape (600, 2); pass the column of losses of the table",
        ),
        (
            ({"loss": [0.1, 0.2], "is_member": [1, 0]},),
            "--member-column, member_column of auditor.read_losses",
        ),
        (({"nll": [0.1, 0.2], "member": [1, 0]},), "--loss-column, loss_column of auditor.read_losses"),
        ((MEMBER, np.repeat([1, 0], 150)), "nonmember losses must be losses, got only 0 and 1"),
        ((MEMBER, np.repeat([True, False], 150)), "auditor.collectors.from_columns(loss, member=...)"),
        ((np.repeat([1, 0], 150), OTHERS), "member losses must be losses, got only 0 and 1"),
    ],
)
def test_what_could_mean_two_things_is_refused_with_the_way(arguments, words):
    """An argument that is no losses is refused with the function that accepts it, and without any loss."""
    with pytest.raises(auditor.InputError) as caught:
        auditor.audit(*arguments)
    assert words in str(caught.value)
    assert "0." not in str(caught.value).replace("0.1", "")


def test_losses_of_0_and_1_are_audited_where_they_can_be_nothing_else():
    """Errors of a classifier are losses: of both groups, of unequal groups, and wherever `Losses` says so."""
    wrong = np.repeat([1, 0], 150)
    for arguments in ((wrong[100:], wrong[50:-50]), (MEMBER[:200], wrong[50:-51])):
        assert auditor.audit(*arguments).data["records"] == [len(arguments[0]), len(arguments[1])]
    assert auditor.audit(auditor.Losses(member=MEMBER, nonmember=wrong)).data["records"] == [300, 300]


def test_a_result_prints_as_the_terminal_shows_it(result):
    """`print` says what the terminal says; `repr` is one short line; the same holds for a comparison."""
    assert str(result) == auditor.report.audit_text(result, full=False)
    assert repr(result) == "AuditResult('m': Leakage: marked)"
    other = auditor.audit(MEMBER + 1, OTHERS, delta=1e-5)
    comparison = auditor.compare([result, other])
    assert str(auditor.compare(result, other)) == str(comparison)
    assert comparison.got_worse is False
    assert repr(comparison) == "AuditsComparison(2 audits by advantage against 'm')"
    assert str(comparison) == auditor.report.comparison_text(comparison)


def test_numbers_and_pictures_by_name(result):
    """`result["auc"]` is the estimate, an error suggests the nearest name, `plot` draws the figure of the report; iteration yields the names."""
    assert result["auc"] is result.estimate("auc")
    with pytest.raises(auditor.InputError, match="did you mean 'auc'"):
        result["uac"]
    assert list(result) == [item.name for item in result.estimates]
    assert "auc" in result
    assert "uac" not in result
    assert result.plot("losses").axes
    assert result.plot().axes


@pytest.mark.parametrize("logits", [False, True])
def test_outputs_at_hand_become_losses(logits):
    """Two classes and several: the negative log-odds of the true class, against scipy; labels and ids stay aligned."""
    rng = np.random.default_rng(4)
    scores, member = rng.normal(size=(40, 3)), np.arange(40) % 2
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)  # drawn by the softmax of the scores
    rows = scores if logits else special.softmax(scores, axis=1)
    output = auditor.collectors.Output.LOGITS if logits else auditor.collectors.Output.PROBABILITIES
    names = np.array([f"r{place}" for place in range(40)])
    losses = auditor.losses_from_probabilities(rows, y, member=member, output=output, id=names)
    chosen = special.softmax(scores, axis=1)[np.arange(40), y]
    np.testing.assert_allclose(losses.member, -special.logit(chosen)[member == 1], rtol=1e-9)
    np.testing.assert_allclose(losses.nonmember, -special.logit(chosen)[member == 0], rtol=1e-9)
    assert losses.id.member.tolist() == names[member == 1].tolist()
    assert (losses.fingerprint, losses.scale) == (None, auditor.LossScale.LOG_ODDS)
    with pytest.raises(auditor.InputError, match="must have the same length: probabilities has 40, y has 39"):
        auditor.losses_from_probabilities(rows, y[1:], member=member, output=output)


def test_gates_as_an_assertion(result):
    """Nothing where no gate stops; one that is met or cannot be evaluated, and a refuted claim, are an assertion."""
    auditor.assert_gates(result, ["auc < 0.5"])
    with pytest.raises(AssertionError, match=r"^auc > 0.6: .*"):
        auditor.assert_gates(result, ["auc > 0.6", "auc < 0.5"])
    with pytest.raises(AssertionError, match=r"epsilon_bound.one_run > 1: "):
        auditor.assert_gates(result, "epsilon_bound.one_run > 1")
    claim = auditor.StatedClaim(epsilon=0.1, delta=0)
    far = auditor.audit(MEMBER - 9, OTHERS, split=auditor.RandomSplit(), claim=claim)
    with pytest.raises(AssertionError, match=r"^The claim is refuted"):
        auditor.assert_gates(far, [])


def test_results_are_logged_to_mlflow(result, tmp_path, monkeypatch):
    """The active run gets every finite number under its name, the verdict, the JSON and the page."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        result.log_to_mlflow()
    logged = mlflow.get_run(run.info.run_id).data
    assert logged.metrics["privacy.auc"] == pytest.approx(result["auc"].value)
    assert logged.metrics["privacy.auc.lower"] == pytest.approx(result["auc"].lower)
    assert "privacy.epsilon_bound.one_run" not in logged.metrics  # which has no value here
    assert logged.tags["privacy.verdict"] == "no claim"
    pages = [path.name for path in tmp_path.rglob("privacy/*")]
    assert sorted(pages) == ["report.html", "result.json"]


def test_a_model_and_two_groups_of_records_are_audited(tmp_path):
    """A fitted model, its path or a function, with pairs, tables or files of tables, is the audit of what `collect` makes."""
    model = LogisticRegression().fit(*PAIRS["members"])
    losses = auditor.collect(model, **PAIRS)
    wanted = [item.value or 0 for item in auditor.audit(losses).estimates]
    tables = {name: pd.DataFrame(x, columns=list("abc")).assign(y=y) for name, (x, y) in PAIRS.items()}
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
        (tmp_path / name).rename(tmp_path / f"{name}.csv")
    files = {name: tmp_path / f"{name}.csv" for name in PAIRS}
    named = LogisticRegression().fit(tables["members"][list("abc")], PAIRS["members"][1])
    skops.io.dump(named, tmp_path / "model.skops")
    for arguments, records, title in (
        ((model,), PAIRS, "LogisticRegression"),
        ((model.predict_proba,), PAIRS, "predict_proba"),
        ((), {"model": model, **PAIRS}, "LogisticRegression"),
        ((model,), {"member": PAIRS["members"], "non_member": PAIRS["nonmembers"]}, "LogisticRegression"),
        ((named,), {**tables, "label": "y"}, "LogisticRegression"),
        ((tmp_path / "model.skops",), {**files, "label": "y"}, "model.skops"),
    ):
        result = auditor.audit(*arguments, **records)
        assert [item.value or 0 for item in result.estimates] == pytest.approx(wanted, rel=1e-9)
        assert result.data["model"] == title
    assert auditor.audit(model, **PAIRS, model="mine").data["model"] == "mine"
    assert auditor.collect(model, *PAIRS.values()).member.tolist() == losses.member.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "or a model with members"),
        ({"members": X[:60], "nonmembers": X[60:]}, "members must be a pair .*; with a table give label="),
        ({"members": PAIRS["members"]}, "nonmembers must be a pair"),
        ({**PAIRS, "label": "y"}, "a table must be the path of a file .*, got tuple; convert it"),
        ({"label": "y"}, "label must go with a model, members and nonmembers"),
        ({**PAIRS, "task": "regresion"}, "task must be one of .*; did you mean 'regression'"),
        ({**PAIRS, "task": auditor.SquaredError}, r"write SquaredError\(...\)"),
    ],
)
def test_a_model_without_all_that_its_audit_needs_is_refused_with_the_way(arguments, words):
    """Missing and incompatible arguments are refused in one sentence."""
    with pytest.raises(auditor.InputError, match=words):
        auditor.audit(LogisticRegression().fit(*PAIRS["members"]), **arguments)


def test_a_regression_is_audited_by_the_name_of_its_task():
    """``task="regression"`` is `SquaredError`, in `audit` and in `collect`."""
    model = LinearRegression().fit(X[:60], X[:60, 1])
    records = {"members": (X[:60], X[:60, 1]), "nonmembers": (X[60:], X[60:, 1])}
    by_value = auditor.collect(model, **records, task=auditor.SquaredError())
    assert auditor.collect(model, **records, task="regression").member.tolist() == by_value.member.tolist()
    assert auditor.audit(model, **records, task="regression").data["history"] == list(by_value.history)


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: auditor.DPSGD(1.0, 0.1, 9, sampling="shuffled").sampling, auditor.ShuffledBatches()),
        (lambda: auditor.RankGrid(interval="melded").interval, auditor.Melded()),
        (lambda: auditor.RankGrid(interval="clopper-pearson").interval, auditor.estimators.ClopperPearson()),
        (lambda: auditor.StatedClaim(1, 0, "replace-one").adjacency, auditor.Adjacency.REPLACE_ONE),
        (lambda: auditor.Sequential(adjacency="replace-one").adjacency, auditor.Adjacency.REPLACE_ONE),
        (
            lambda: auditor.collectors.text_scorer(lambda _: 0, score="median"),
            "'mean', 'sum', 'min-k', 'zlib'",
        ),
        (lambda: auditor.DPSGD(1.0, 0.1, 9, sampling="poison"), "did you mean 'poisson'"),
        (lambda: auditor.RankGrid(interval="wald"), "'calibrated', 'clopper-pearson', 'melded'"),
        (lambda: auditor.audit_runs(MEMBER, OTHERS), "too many arguments by position"),
        (lambda: auditor.audit_runs(members=MEMBER), r"losses=auditor.Losses\(member=..., nonmember=...\)"),
    ],
)
def test_choices_have_names(made, value):
    """A text stands for a choice without required fields; an unknown one names the choices."""
    if not isinstance(value, str) or isinstance(value, auditor.Adjacency):
        assert made() == value
        return
    with pytest.raises((auditor.InputError, TypeError), match=value):
        made()


def test_what_stands_for_a_value_is_taken_as_it(result):
    """A number is a utility and a rate, a dictionary a context, and a pair of arrays features."""
    losses = auditor.Losses(MEMBER, OTHERS)
    more = {"features": (MEMBER[:, None], OTHERS[:, None]), "context": {"release": "API"}, "utility": 0.9}
    declared = auditor.audit(losses, delta=1e-5, fpr=0.1, **more)
    assert declared["auc"] == result["auc"]
    assert [name for name in declared if name.startswith("tpr")] == ["tpr_at_fpr.0.1"]
    assert (declared.data["context"]["release"], declared.data["utility"]["value"]) == ("API", 0.9)
    assert declared.check("shift").status != result.check("shift").status


def test_an_estimate_is_an_attribute_and_a_number(result):
    """`result.auc` is the estimate, which is a number where it has a value; a name that several begin with names them."""
    assert result.auc is result["auc"]
    assert float(result.auc) == result.auc.value
    assert f"{result.auc:.3f}" == format(result.auc.value, ".3f")
    several = "'epsilon_bound.clopper_pearson', .*'epsilon_star.gaussian'"
    with pytest.raises(auditor.InputError, match=f"estimate 'epsilon' could be {several}"):
        result["epsilon"]
    with pytest.raises(AttributeError, match=f"it could be {several}.*, as in result"):
        _ = result.epsilon
    with pytest.raises(AttributeError, match=r"has no attribute 'to_htm'; did you mean 'to_html'\?"):
        _ = result.to_htm
    with pytest.raises(
        auditor.InputError, match=r"estimate 'epsilon_bound.one_run' has no value: it was not"
    ):
        float(result["epsilon_bound.one_run"])
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own
    assert copy.deepcopy(result).auc == again.auc == result.auc


def test_files_are_written_by_their_ending(result, tmp_path):
    """`save` writes what the ending names, and each method that writes a file returns its path."""
    for ending, text in {"json": result.to_json, "html": result.to_html, "md": result.to_markdown}.items():
        path = tmp_path / f"r.{ending}"
        assert result.save(path) == str(path) == text(path)
        assert len(text()) == len(path.read_text(encoding="utf-8"))
    assert "<testsuites" in Path(result.save(tmp_path / "r.xml", gates="auc > 0.9")).read_text()
    assert Path(result.save(tmp_path / "r.sarif")).exists()
    with pytest.raises(auditor.InputError, match=r"must end in .json, .html, .md, .xml, .sarif, got 'r.pdf'"):
        result.save("r.pdf")
    pair = auditor.compare(result, auditor.audit(MEMBER, OTHERS, seed=1))
    assert Path(pair.save(tmp_path / "c.html")).exists()
    with pytest.raises(auditor.InputError, match=r"must end in .json, .html, got"):
        pair.save("c.md")


def test_tensors_that_require_gradients_are_arrays():
    """Losses, tables, outputs and labels may be tensors of a training step, alone or in a list."""
    torch = pytest.importorskip("torch")
    member, other = (torch.tensor(group, requires_grad=True) for group in (MEMBER, OTHERS))
    plain = auditor.Losses(MEMBER, OTHERS)
    for losses in (
        auditor.Losses(member, other),
        auditor.Losses(list(member), list(other)),
        auditor.collectors.from_columns(torch.cat([member, other]), members=torch.arange(600) < 300),
    ):
        assert losses.member.tolist() == plain.member.tolist()
    assert auditor.audit(member, other).auc == auditor.audit(plain).auc
    rows = torch.softmax(torch.tensor(X[:, :1] * [-1, 1], requires_grad=True), 1)
    kinds = {"probabilities": rows, "y": torch.tensor(Y), "member": torch.arange(120) < 60}
    arrays = {name: value.detach().numpy() for name, value in kinds.items()}
    expected = auditor.losses_from_probabilities(**arrays).member.tolist()
    assert auditor.losses_from_probabilities(**kinds).member.tolist() == expected
    two = auditor.collect(
        lambda x: torch.softmax(torch.tensor(x[:, :1] * [-1, 1], requires_grad=True), 1), **PAIRS
    )
    assert two.member.tolist() == expected
    assert auditor.Losses(member.bfloat16(), other.bfloat16()).n_member == 300


def test_member_and_members_are_one_name():
    """Every function that takes the two groups takes them in the singular and in the plural, and once."""
    for names in (("members", "nonmembers"), ("member", "non_member"), ("members", "nonmember")):
        groups = dict(zip(names, (MEMBER, OTHERS), strict=True))
        assert auditor.Losses(**groups).n_member == 300
        assert auditor.audit(**groups).data["records"] == [300, 300]
        assert auditor.scores.References(**groups).models == 1
        assert auditor.Features(**{name: group[:, None] for name, group in groups.items()}).n_member == 300
        records = dict(zip(names, PAIRS.values(), strict=True))
        assert auditor.collect(lambda x: np.full(len(x), 0.5), **records).n_member == 60
    with pytest.raises(TypeError, match="got one argument twice"):
        auditor.Losses(MEMBER, OTHERS, member=MEMBER, members=MEMBER)
    assert auditor.collectors.from_columns(MEMBER, members=np.arange(300) % 2).n_member == 150
