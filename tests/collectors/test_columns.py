"""Columns of outputs at hand: their order, their names, their digits, and what they are."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import log_softmax, softmax

import auditor
from auditor.collectors import Output, OutputColumns, RecordTable
from tests.collectors.common import from_logits, refused

N = 400
ORDER = "the labels look as if the output columns were in another order of the classes"
LOGITS = np.random.default_rng(3).normal(size=(N, 3)) * 2
P = softmax(LOGITS, axis=1)
Y = np.array([np.random.default_rng(row).choice(3, p=p) for row, p in enumerate(P)])
WAS = np.arange(N) < N // 2
CLASSES = np.array(["cat", "dog", "fox"])
TRUE = from_logits(LOGITS, Y)


def at_hand(outputs, y=Y, **more):
    """The losses of outputs at hand, of which the first half are members'."""
    return auditor.losses_from_probabilities(outputs, y, member=WAS[: len(y)], **more)


def whole(losses):
    """Both groups."""
    return np.concatenate([losses.member, losses.nonmember])


def assert_true(losses):
    """They are those of the model by definition, and nothing is noticed."""
    np.testing.assert_allclose(whole(losses), TRUE, rtol=1e-7)
    assert losses.notes == ()


# --- The order of the columns -------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
def test_another_order_is_in_the_losses_and_the_audit(order):
    """Columns in another order warn, stand in the losses and in a check."""
    with pytest.warns(UserWarning, match=ORDER):
        wrong = at_hand(P[:, order])
    [note] = wrong.notes
    assert note in wrong.history
    check = next(item for item in auditor.audit(wrong, delta=1e-5).checks if item.name == "collection")
    assert (str(check.status), "another order of the classes" in check.message) == ("warn", True)
    assert_true(at_hand(P[:, order], classes=order))


def test_functions_are_looked_at_without_batches():
    """A function that gets each group whole is called once for each, and its columns are looked at."""
    sizes = []

    def swapped(x):
        sizes.append(len(x))
        return softmax(x, axis=1)[:, [1, 0, 2]]

    groups = {"members": (LOGITS[WAS], Y[WAS]), "nonmembers": (LOGITS[~WAS], Y[~WAS])}
    with pytest.warns(UserWarning, match=ORDER):
        losses = auditor.collect(swapped, **groups)
    assert sizes == [N // 2, N // 2]
    assert len(losses.notes) == 1
    with pytest.warns(UserWarning, match=ORDER):
        assert auditor.collect(lambda x: x[:, [1, 0, 2]], **groups, output=Output.LOGITS).notes
    with pytest.warns(UserWarning, match=ORDER):
        auditor.collect(
            lambda x: 1 / (1 + np.exp(3 * x[:, 0])),
            members=(LOGITS, LOGITS[:, 0] > 0),
            nonmembers=(LOGITS[~WAS], LOGITS[~WAS, 0] > 0),
        )


def test_an_audit_of_labels_looks_too():
    """The check of the collection warns where the labels are audited by columns in another order."""
    found = auditor.audit_labels(np.asarray, (P[:, [2, 0, 1]], Y), probabilities=np.full((N, 3), 1 / 3))
    check = next(item for item in found.checks if item.name == "collection")
    assert "another order of the classes" in check.message
    right = auditor.audit_labels(np.asarray, (P, Y), probabilities=np.full((N, 3), 1 / 3))
    assert "collection" not in [item.name for item in right.checks]


# --- Their names --------------------------------------------------------------------------------------


def frames(names, order):
    """Frames of every kind with the columns in that order."""
    columns = {str(names[place]): P[:, place] for place in order}
    return [pd.DataFrame(columns), pa.table(columns)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [2, 1, 0]])
def test_names_of_columns_are_the_classes(order):
    """Whatever their order, columns named after the labels give the losses of the model."""
    assert_true(at_hand(pd.DataFrame(P, columns=[0, 1, 2])[order]))
    for frame in frames("012", order):
        assert_true(at_hand(frame))
    for frame in frames(CLASSES, order):
        assert_true(at_hand(frame, CLASSES[Y]))
        assert_true(at_hand(frame, CLASSES[Y], classes=["dog", "cat", "fox"]))
    shifted = pd.DataFrame(P, columns=[1, 2, 3])[[place + 1 for place in order]]
    assert_true(at_hand(shifted, Y + 1))


def test_polars_names_are_the_classes():
    """A polars frame names its columns as any other."""
    polars = pytest.importorskip("polars")
    assert_true(at_hand(polars.DataFrame({str(place): P[:, place] for place in (2, 0, 1)})))


@pytest.mark.parametrize("more", [{}, {"batch_size": 70}, {"repeats": 2}])
def test_functions_that_return_frames(more):
    """The names come with each batch, with classes= or without."""

    def predict(x):
        return pd.DataFrame(softmax(x, axis=1), columns=CLASSES)[["fox", "cat", "dog"]]

    pairs = [(LOGITS[part], CLASSES[Y[part]]) for part in (WAS, ~WAS)]
    for classes in (None, CLASSES.tolist()):
        assert_true(auditor.collect(predict, members=pairs[0], nonmembers=pairs[1], classes=classes, **more))


def test_functions_that_return_frames_into_a_file(tmp_path):
    """A collection into a file reads the names too."""

    def predict(table):
        return pd.DataFrame(softmax(table.to_numpy(), axis=1), columns=CLASSES)[["dog", "fox", "cat"]]

    tables = [
        RecordTable(pd.DataFrame(LOGITS[part], columns=list("abc")).assign(y=CLASSES[Y[part]]), label="y")
        for part in (WAS, ~WAS)
    ]
    auditor.collect_to(
        tmp_path / "losses.parquet", predict, members=tables[0], nonmembers=tables[1], batch_size=64
    )
    assert_true(auditor.read_losses(tmp_path / "losses.parquet"))


def test_names_that_are_no_classes_change_nothing():
    """Other names, and those that pandas counts, leave the columns in their order; a mixture is refused."""
    assert_true(at_hand(pd.DataFrame(P)))
    assert_true(at_hand(pd.DataFrame(P, columns=["p0", "p1", "p2"])))
    assert_true(at_hand(pd.DataFrame(P), CLASSES[Y], classes=CLASSES))
    assert_true(at_hand(pd.DataFrame(P[:, [2, 0, 1]]), classes=[2, 0, 1]))
    with refused(
        r"^member outputs must be named after the classes 'cat', 'dog', 'fox', got 'wolf' \(first at row 0"
    ):
        at_hand(pd.DataFrame(P, columns=["cat", "dog", "wolf"]), CLASSES[Y], classes=CLASSES)
    with refused("member outputs must name every class"):
        at_hand(pd.DataFrame(P[:, :2], columns=["cat", "dog"]), CLASSES[Y], classes=CLASSES)


# --- Tables that hold the outputs: a column for each class -----------------------------------------------


def outputs(names, y=Y, order=(2, 0, 1), **more):
    """A table of outputs in another order, with columns besides them."""
    columns = {names[place]: P[:, place] for place in order}
    return pd.DataFrame({"note": "text", **columns, **more, "y": y, "member": WAS.astype(int)})


AUGMENTED = {".pred_class": CLASSES[Y], "age": np.arange(N) / 7}  # as tidymodels writes them beside
TABLES = {
    "tidymodels": outputs([".pred_cat", ".pred_dog", ".pred_fox"], CLASSES[Y], **AUGMENTED),
    "caret": outputs(["cat", "dog", "fox"], CLASSES[Y]),
    "numbers": outputs(["p.0", "p.1", "p.2"], **{"p.class": Y}),
    "text of numbers": outputs(["P_10", "P_11", "P_12"], np.array(["10", "11", "12"])[Y]),
    "no record of a class": outputs(["q1", "q2", "q3"], Y + 1)[Y != 1],
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_the_columns_of_a_table_are_the_outputs(tmp_path, name, kind):
    """Found by the classes behind a common prefix, they give the losses by definition, from one table and from two."""
    table, true = TABLES[name], TRUE[Y != 1] if name.startswith("no") else TRUE

    def saved(part, place):
        if kind != "frame":
            getattr(part, f"to_{kind}")(tmp_path / f"{place}.{kind}", index=False)
        return part if kind == "frame" else tmp_path / f"{place}.{kind}"

    both = auditor.collect(OutputColumns(), records=saved(table, "both"), label="y", policies="label")
    pair = [saved(table[table.member == one], f"of {one}") for one in (1, 0)]
    two = auditor.collect(OutputColumns(), members=pair[0], nonmembers=pair[1], label="y")
    for losses in (both, two):
        np.testing.assert_allclose(whole(losses), true, rtol=1e-7)
        assert (losses.notes, losses.fingerprint) == ((), None)  # outputs are no features
    assert (whole(both.policies["label"]) == (P.argmax(axis=1) != Y)[np.isin(TRUE, true)]).all()


def test_columns_are_named_or_are_one():
    """Named classes, features in the order of the classes, and one column for the second class give the same losses."""
    table = outputs(["a", "b", "c"], CLASSES[Y], age=1.0)
    named = OutputColumns(dict(zip("abc", CLASSES, strict=True)))
    assert_true(auditor.collect(named, records=table, label="y"))
    features = RecordTable(table, label="y", features=list("abc"))
    assert_true(auditor.collect(OutputColumns(), records=features, classes=CLASSES))
    two = pd.DataFrame({"p": P[:, 2], "y": Y == 2, "member": WAS})
    p = np.where(two.y, two.p, 1 - two.p)
    losses = auditor.collect(OutputColumns(), records=two, label="y")
    np.testing.assert_allclose(whole(losses), np.log1p(-p) - np.log(p), rtol=1e-7)
    squares = pd.DataFrame({".pred": P[:, 0], "y": P[:, 1], "member": WAS})
    losses = auditor.collect(OutputColumns(), records=squares, label="y", task="regression")
    np.testing.assert_allclose(whole(losses), (P[:, 0] - P[:, 1]) ** 2)


def test_a_table_of_outputs_is_complete_or_refused_if_it_changed(tmp_path):
    """A second call scores nothing; one changed probability, far from the first rows, is another collection."""
    table, path = TABLES["caret"].copy(), tmp_path / "losses.parquet"
    assert auditor.collect_to(path, OutputColumns(), records=table, label="y").scored_now == N
    assert auditor.collect_to(path, OutputColumns(), records=table, label="y").scored_now == 0
    table.loc[N - 5, ["cat", "dog", "fox"]] = [0.2, 0.3, 0.5]
    with refused("holds other losses"):
        auditor.collect_to(path, OutputColumns(), records=table, label="y")


def test_swapped_columns_of_a_table_warn():
    """Probabilities under the names of other classes are noticed."""
    swapped = TABLES["caret"].rename(columns={"cat": "dog", "dog": "cat"})
    with pytest.warns(UserWarning, match=ORDER):
        losses = auditor.collect(OutputColumns(), records=swapped, label="y")
    assert ORDER in losses.notes[0]


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        (TABLES["caret"].drop(columns="dog"), {}, "got none for 'dog' among 'fox', 'cat'; name the columns"),
        (TABLES["caret"], {"classes": ["cat", "dog", "fox", "wolf"]}, "got none for 'wolf' among"),
        (outputs(["p_0", "p_00", "p_1"], Y % 2), {}, "got several for one class among 'p_1', 'p_0', 'p_00'"),
        (outputs(["a", "b", "c"], CLASSES[Y]), {}, "got none for .*'cat'.* or give the model if these are"),
        (TABLES["caret"].assign(age=1), {}, "no columns that match no class, got 'age'; name the"),
        (outputs(["p0", "p1", "q"], Y % 2, x0=0.5, x1=0.5), {}, "got several: .*'p0'.*'x1'.*features"),
        (TABLES["tidymodels"].assign(**{".pred_fox": 0.5}), {}, "probabilities that sum to 1 in each row"),
    ],
)
def test_tables_without_a_column_for_each_class_are_refused(table, more, words):
    """The sentence names the classes without a column, or the columns without a class."""
    with refused(words):
        auditor.collect(OutputColumns(), records=table, label="y", **more)


def test_scores_that_are_sorted_are_refused():
    """Rows that always fall are refused without names; with names they may be in order."""
    falling = -np.sort(-P, axis=1)
    with refused(
        "must be in the order of the classes, got scores that look sorted.* name the class of each score"
    ):
        at_hand(falling)
    right = at_hand(
        pd.DataFrame(falling, columns=[0, 1, 2]), np.zeros(N, dtype=int) + (np.arange(N) % 9 == 0)
    )
    assert right.n_member == N // 2
    assert at_hand(falling, np.zeros(N, dtype=int)).n_member == N // 2  # one class: nothing to mistake


# --- Their digits -------------------------------------------------------------------------------------


def by_digits(digits):
    """The losses of rounded probabilities by definition: in units, a zero as a quarter of one."""
    units = np.round(P, digits) * 10**digits
    own = units[np.arange(N), Y]
    return np.log(np.maximum(units.sum(axis=1) - own, 0.25)) - np.log(np.maximum(own, 0.25))


@pytest.mark.parametrize("digits", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore:the probabilities of a record sum")
def test_rounded_probabilities_are_scored_as_the_policy_is(digits, kind):
    """Probabilities of so many digits give the losses of the policy on the unrounded ones."""
    losses = at_hand(P.round(digits).astype(kind))
    np.testing.assert_allclose(whole(losses), by_digits(digits), rtol=1e-4)
    policy = at_hand(P, policies=f"digits={digits}").policies[f"digits={digits}"]
    np.testing.assert_allclose(losses.member, policy.member, rtol=1e-4)
    units = np.rint(P * 10**digits)
    own = units[np.arange(N), Y]
    assert sum(losses.saturated) == ((own == 0) | (units.sum(axis=1) == own)).sum()
    assert all("rounded" in note for note in losses.notes)


@pytest.mark.filterwarnings("ignore:the probabilities of a record sum")
def test_zeros_of_rounded_probabilities_are_placed_by_all_batches():
    """A zero in a batch whose rows sum to 1 exactly lies where it does in the others."""
    outputs = P.round(2)
    pairs = [(outputs[part], Y[part]) for part in (WAS, ~WAS)]
    for size in (None, 64, 3):
        losses = auditor.collect(lambda x: x, members=pairs[0], nonmembers=pairs[1], batch_size=size)
        np.testing.assert_allclose(whole(losses), by_digits(2), rtol=0, atol=0.015)


def test_the_tolerance_is_half_a_unit_of_each_class():
    """Three classes of two digits may sum to 1 within 0.015, and no further; whole numbers are no digits."""
    good = np.tile([[0.52, 0.30, 0.18]], (N, 1))
    y = np.zeros(N, dtype=int)
    for total, fits in ((0.99, True), (1.01, True), (0.98, False), (1.02, False)):
        rows = good.copy()
        rows[7, 0] += total - 1
        if fits:
            with pytest.warns(UserWarning, match="sum to one only within"):
                at_hand(rows, y)
        else:
            with refused(rf"sum to 1 in each row, got {total} \(first at row 7"):
                at_hand(rows, y)
    for row in ([1, 1, 0], [0, 0, 0]):
        rows = np.tile([[1.0, 0.0, 0.0]], (N, 1))
        rows[7] = row
        with refused(rf"sum to 1 in each row, got {sum(row)} \(first at row 7"):
            at_hand(rows, y)


@pytest.mark.parametrize("digits", [2, 3])
def test_rounded_log_probabilities_are_taken(digits):
    """Their exponentials are off by half a unit of the last digit as a share."""
    logs = log_softmax(LOGITS, axis=1).round(digits)
    losses = at_hand(logs, output=Output.LOG_PROBABILITIES)
    np.testing.assert_allclose(whole(losses), from_logits(logs, Y), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:the labels look as if")
def test_exact_short_decimals_stay_exact():
    """Probabilities of a hundred trees have two digits and sum to 1: a zero lies at the end of the scale of doubles."""
    votes = np.random.default_rng(5).multinomial(100, [0.9, 0.07, 0.03], size=N) / 100
    losses = at_hand(votes, np.random.default_rng(6).integers(0, 3, N))
    zero = votes[np.arange(N), np.random.default_rng(6).integers(0, 3, N)] == 0
    assert zero.any()
    np.testing.assert_allclose(whole(losses)[zero], np.log(2.0**52), rtol=1e-6)


# --- Logits that are none -----------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [None, 3])
def test_probabilities_are_no_logits(digits):
    """Rows in [0, 1] that sum to 1 are refused as logits, and the fix gives the losses."""
    outputs = P if digits is None else P.round(digits)
    with refused(
        r"^member outputs must be logits, not rows in \[0, 1\] that sum to 1, .*output=Output.PROBABILITIES"
    ):
        at_hand(outputs, output="logits")
    if digits is None:
        assert_true(at_hand(outputs, output=Output.PROBABILITIES))
    assert_true(at_hand(LOGITS, output="logits"))
    inside = (LOGITS - LOGITS.min()) / np.ptp(LOGITS)  # in [0, 1], and they do not sum to 1
    np.testing.assert_allclose(whole(at_hand(inside, output="logits")), from_logits(inside, Y), rtol=1e-9)


def test_infinite_logits_are_looked_at_too():
    """Certain classes at infinity stand in the order of the columns as any other."""
    outputs = np.where(P > 0.9, np.inf, LOGITS)
    losses = at_hand(outputs, output="logits")
    assert losses.notes == ()
    assert sum(losses.saturated) == (P > 0.9).any(axis=1).sum()
    with pytest.warns(UserWarning, match=ORDER):
        at_hand(outputs[:, [1, 2, 0]], output="logits")


@pytest.mark.parametrize("classes", ["p_", ["a", "b"]])
def test_classes_of_columns_are_a_mapping(classes):
    """A prefix or a list in place of a mapping is one sentence."""
    with refused("classes must be a mapping of names of columns to classes, got"):
        OutputColumns(classes)
