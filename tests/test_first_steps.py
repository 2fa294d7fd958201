"""What people type first works, or says how."""

import numpy as np
import pytest
from scipy import special

import auditor

MEMBER, OTHERS = np.random.default_rng(3).normal(size=(2, 300)) - [[1.0], [0.0]]


@pytest.fixture(scope="module")
def result():
    """An audit of two arrays."""
    return auditor.audit(MEMBER, OTHERS, delta=1e-5, model="m")


def test_arrays_tables_and_paths_are_audited(result, tmp_path):
    """Two arrays, a table of columns, its file and `Losses` are the same audit."""
    losses = auditor.Losses(member=MEMBER, nonmember=OTHERS)
    frame = losses.to_frame()
    frame.to_csv(tmp_path / "losses.csv", index=False)
    for given in (
        losses,
        frame,
        frame.to_dict("list"),
        tmp_path / "losses.csv",
        str(tmp_path / "losses.csv"),
    ):
        again = auditor.audit(given, delta=1e-5)
        assert [item.value for item in again.estimates] == [item.value for item in result.estimates]


@pytest.mark.parametrize(
    ("given", "words"),
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
            "got shape (600, 2); of a table give its column of losses",
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
def test_what_could_mean_two_things_is_refused_with_the_way(given, words):
    """What is no losses is one sentence that names what takes it, and shows nobody's loss."""
    with pytest.raises(auditor.InputError) as caught:
        auditor.audit(*given)
    assert words in str(caught.value)
    assert "0." not in str(caught.value).replace("0.1", "")


def test_losses_of_0_and_1_are_audited_where_they_can_be_nothing_else():
    """Errors of a classifier are losses: of both groups, of unequal groups, and wherever `Losses` says so."""
    wrong = np.repeat([1, 0], 150)
    for given in ((wrong[100:], wrong[50:-50]), (MEMBER[:200], wrong[50:-51])):
        assert auditor.audit(*given).data["records"] == [len(given[0]), len(given[1])]
    assert auditor.audit(auditor.Losses(member=MEMBER, nonmember=wrong)).data["records"] == [300, 300]


def test_a_result_prints_as_the_terminal_shows_it(result):
    """`print` says what the terminal says; `repr` is one short line; a comparison likewise."""
    assert str(result) == auditor.report.audit_text(result)
    assert repr(result) == "AuditResult('m': Leakage found)"
    other = auditor.audit(MEMBER + 1, OTHERS, delta=1e-5)
    found = auditor.compare([result, other])
    assert str(auditor.compare(result, other)) == str(found)
    assert found.got_worse is False
    assert repr(found) == "AuditsComparison(2 audits by advantage against 'm')"
    assert str(found) == auditor.report.comparison_text(found)


def test_numbers_and_pictures_by_name(result):
    """`result["auc"]` is the estimate, a wrong name is told the nearest, `plot` draws the figure of the report; names are gone through."""
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
    found = auditor.losses_from_probabilities(rows, y, member=member, output=output, id=names)
    chosen = special.softmax(scores, axis=1)[np.arange(40), y]
    np.testing.assert_allclose(found.member, -special.logit(chosen)[member == 1], rtol=1e-9)
    np.testing.assert_allclose(found.nonmember, -special.logit(chosen)[member == 0], rtol=1e-9)
    assert found.id.member.tolist() == names[member == 1].tolist()
    assert (found.fingerprint, found.scale) == (None, auditor.LossScale.LOG_ODDS)
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
