"""Answers that name their classes, in any order, give the losses of the model in process."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused

import auditor
from auditor.collectors import MultiLabel, Output, RecordTable, SquaredError
from auditor.collectors.served import Endpoint, KServeV1, KServeV2, MLflow, Template

CLASSES = ["cat", "dog", "fox"]
WEIGHTS = np.random.default_rng(1).normal(size=(4, 3))


def probabilities(x):
    """The softmax of logits that are linear in the features."""
    exponentials = np.exp(np.asarray(x, dtype=float) @ WEIGHTS)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@dataclass
class Group:
    """Records with labels drawn from the model's probabilities."""

    seed: int
    n: int = 60

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        self.x = rng.normal(size=(self.n, 4))
        self.p = probabilities(self.x)
        self.codes = np.array([rng.choice(3, p=row) for row in self.p])
        self.pair = (self.x, np.array(CLASSES)[self.codes])

    @property
    def losses(self):
        """The negative log-odds of the true class by definition."""
        own = self.p[np.arange(self.n), self.codes]
        return np.log(1 - own) - np.log(own)


MEMBERS, OTHERS = Group(2), Group(3)


def falling(row, names=CLASSES):
    """Pairs of a class and its probability, the most likely first."""
    return sorted(zip(names, row.tolist(), strict=True), key=lambda pair: -pair[1])


def listed(row):
    """Two lists, the most likely class first."""
    names, scores = zip(*falling(row), strict=True)
    return {"classes": list(names), "scores": list(scores)}


ROWS = {
    "objects": lambda row: dict(falling(row)),
    "an object among outputs": lambda row: {"output_label": "cat", "output_probability": dict(falling(row))},
    "lists": listed,
    "labels and confidences": lambda row: {
        "displayNames": listed(row)["classes"],
        "confidences": listed(row)["scores"],
        "ids": ["1", "2", "3"],
    },
    "pairs": lambda row: [{"label": name, "score": score} for name, score in falling(row)],
}


def asked(protocol, body):
    """The rows of features in a request."""
    if isinstance(protocol, KServeV2):
        [tensor] = body["inputs"]
        return np.reshape(tensor["data"], tensor["shape"])
    if isinstance(protocol, Template):
        return np.atleast_2d(body["x"])
    return body["instances" if isinstance(protocol, KServeV1) else "inputs"]


def served(serve, protocol, write, **more):
    """An endpoint whose server writes the probabilities of the requested rows."""

    def answer(method, _path, body):
        return (404, {}, {}) if method == "GET" else write(probabilities(asked(protocol, body)))

    path = "/v2/models/m" if isinstance(protocol, KServeV2) else "/m"
    path = "/v1/models/m:predict" if isinstance(protocol, KServeV1) else path
    return Endpoint(serve(answer).url + path, protocol=protocol, **more)


def collected(endpoint, *, codes=False, **more):
    """The losses of both groups, with labels of text or as numbers."""
    pairs = [(group.x, group.codes) if codes else group.pair for group in (MEMBERS, OTHERS)]
    named = {} if codes else {"classes": CLASSES}
    return auditor.collect(endpoint, members=pairs[0], nonmembers=pairs[1], **{**named, **more})


def assert_true(losses, tolerance=1e-9):
    """They are those of the model by definition."""
    np.testing.assert_allclose(losses.member, MEMBERS.losses, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(losses.nonmember, OTHERS.losses, rtol=tolerance, atol=tolerance)
    assert losses.notes == ()


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize(
    ("protocol", "sizes"),
    [(KServeV1(), [5, 500]), (MLflow(), [30]), (Template('{"x": {{rows}}}', "predictions"), [17])],
    ids=["v1", "mlflow", "rows"],
)
def test_names_are_matched_row_by_row(serve, protocol, form, sizes):
    """Classes sorted by score, in each form and protocol, give the same losses whatever the size of a request."""

    def write(p):
        return {"predictions": [ROWS[form](row) for row in p]}

    for most in sizes:
        assert_true(collected(served(serve, protocol, write, max_request_records=most)))


@pytest.mark.parametrize("form", ROWS)
def test_a_confidence_needs_no_names_in_advance(serve, form):
    """Without labels or `classes`, answers in any order give the score; where an answer leaves out a class, `classes` are needed."""
    groups = {"members": (MEMBERS.x, None), "nonmembers": (OTHERS.x, None), "task": "confidence:entropy"}
    endpoint = served(serve, KServeV1(), lambda p: {"predictions": [ROWS[form](row) for row in p]})
    losses = auditor.collect(endpoint, **groups)
    np.testing.assert_allclose(losses.member, -(MEMBERS.p * np.log(MEMBERS.p)).sum(axis=1), rtol=1e-9)
    short = served(serve, KServeV1(), lambda p: {"predictions": [dict(falling(row)[:2]) for row in p]})
    with refused(r"outputs must be named after the labels, or after classes="):
        auditor.collect(short, **groups)
    assert auditor.collect(short, classes=CLASSES, **groups).member.shape == (60,)


@pytest.mark.parametrize("form", ROWS)
def test_one_record_a_request_may_come_without_a_list(serve, form):
    """A template of one record reads its classes from the answer itself."""
    protocol = Template('{"x": {{row}}}', "out")
    turn = itertools.count()  # with a list around it, and without

    def write(p):
        row = ROWS[form](p[0])
        return {"out": [row] if next(turn) % 2 else row}

    assert_true(collected(served(serve, protocol, write)))


def test_columns_of_classes_and_scores_are_paired(serve):
    """TF Serving's columns, and V2 tensors of classes and of scores, are matched record by record."""

    def columns(p):
        rows = [listed(row) for row in p]
        return {name: [row[name] for row in rows] for name in ("classes", "scores")}

    def tensors(p):
        found = columns(p)
        kinds = {"classes": "BYTES", "scores": "FP64"}
        return {
            "outputs": [
                {
                    "name": name,
                    "shape": list(p.shape),
                    "datatype": kind,
                    "data": np.ravel(found[name]).tolist(),
                }
                for name, kind in kinds.items()
            ]
        }

    assert_true(collected(served(serve, KServeV1(), lambda p: {"outputs": columns(p)})))
    assert_true(collected(served(serve, KServeV2(), tensors)))


@pytest.mark.parametrize("most", [1, 500])
def test_whole_numbers_spelled_as_text_need_no_classes(serve, most):
    """Keys "2", "0", "1" are the labels 2, 0 and 1."""

    def write(p):
        return {"predictions": [dict(falling(row, "012")) for row in p]}

    assert_true(collected(served(serve, KServeV1(), write, max_request_records=most), codes=True))


def test_names_that_are_no_classes_are_refused(serve):
    """The key and its row are named, and labels written as the server writes them are the fix."""
    names = ["LABEL_0", "LABEL_1", "LABEL_2"]
    endpoint = served(serve, KServeV1(), lambda p: {"predictions": [dict(falling(r, names)) for r in p]})
    for codes in (False, True):
        with refused(
            r"^member outputs must be named after .*, got 'LABEL_\d' \(first at row 0, .*write labels and"
        ):
            collected(endpoint, codes=codes)
    pairs = [(group.x, np.array(names)[group.codes]) for group in (MEMBERS, OTHERS)]
    assert_true(auditor.collect(endpoint, members=pairs[0], nonmembers=pairs[1], classes=names))

    def once(p):
        rows = [dict(falling(row)) for row in p]
        return {
            "predictions": [
                {**row, "wolf": 0.0} if len(rows) > 20 and i == 5 else row for i, row in enumerate(rows)
            ]
        }

    with refused(r"got 'wolf' \(first at row 5, counting from 0\)"):
        collected(served(serve, KServeV1(), once))


def test_a_class_that_stands_twice_is_refused(serve):
    """Two scores of one class are no answer."""

    def write(p):
        return {
            "predictions": [{"classes": ["cat", "cat", "fox"], "scores": row.tolist()} for row in p[:-1]]
            + [listed(p[-1])]
        }

    with refused("answered with two scores of one class"):
        collected(served(serve, KServeV1(), write))


@pytest.mark.parametrize(
    ("name", "score"), [("class", "prob"), ("label", "probability"), ("displayName", "confidence")]
)
def test_pairs_of_other_words_are_read(serve, name, score):
    """Lists of a class and its score by whatever words give the losses of the model."""

    def write(p):
        return {"predictions": [[{name: c, score: s} for c, s in falling(row)] for row in p]}

    assert_true(collected(served(serve, KServeV1(), write)))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("form", ["objects", "lists", "pairs"])
def test_the_most_likely_classes_are_scored_as_the_policy_is(serve, form, k, tmp_path):
    """Answers of the top classes give the losses of the policy, and say so in memory, in a file and in an audit."""
    write = {
        "objects": lambda row: dict(falling(row)[:k]),
        "lists": lambda row: {name: cells[:k] for name, cells in listed(row).items()},
        "pairs": lambda row: ROWS["pairs"](row)[:k],
    }[form]
    here = collected(probabilities, policies=f"top{k}").policies[f"top{k}"]
    tables = {
        name: RecordTable(pd.DataFrame(group.x, columns=list("abcd")).assign(y=group.pair[1]), label="y")
        for name, group in (("members", MEMBERS), ("nonmembers", OTHERS))
    }
    for most in (10, 500):
        endpoint = served(
            serve, MLflow(), lambda p: {"predictions": [write(row) for row in p]}, max_request_records=most
        )
        found = [collected(endpoint)]
        if most > 10:
            path = tmp_path / "losses.parquet"
            as_rows = served(serve, Template('{"x": {{rows}}}'), lambda p: [write(row) for row in p])
            auditor.collect_to(path, as_rows, **tables, classes=CLASSES)
            found.append(auditor.read_losses(path))
        for losses in found:
            np.testing.assert_allclose(losses.member, here.member, rtol=1e-9)
            np.testing.assert_allclose(losses.nonmember, here.nonmember, rtol=1e-9)
            [note] = losses.notes
            assert f"scored as under the policy top{k}" in note
            assert note in losses.history
    check = next(item for item in auditor.audit(found[0], delta=1e-5).checks if item.name == "collection")
    assert (str(check.status), f"policy top{k}" in check.message) == ("warn", True)


def test_fewer_classes_need_all_names_and_probabilities(serve):
    """Without classes= nobody knows how many there are, and of logits nothing is known of the rest."""

    def write(p):
        return {"predictions": [dict(falling(row, "012")[:2]) for row in p]}

    fix = r"outputs must name every class, .* got 2 \(first at row 0, counting from 0\); .* classes= \(--classes\)"
    with refused(fix):
        collected(served(serve, KServeV1(), write), codes=True)
    with refused(fix):
        collected(served(serve, KServeV1(), write), codes=True, output=Output.LOGITS, classes=[0, 1, 2])
    assert collected(served(serve, KServeV1(), write), codes=True, classes=[0, 1, 2]).notes
    with refused("outputs must name every class, .* got 0 "):
        collected(served(serve, KServeV1(), lambda p: {"predictions": [{"cat": 0.5}, {}] * (len(p) // 2)}))


@pytest.mark.parametrize("order", list(itertools.permutations("012")))
def test_one_order_of_names_is_no_matter(serve, order):
    """Objects in any fixed order are put right, and a null among them is refused by its row."""

    def write(p):
        return {"predictions": [{name: row[int(name)] for name in order} for row in p.tolist()]}

    assert_true(collected(served(serve, KServeV1(), write), codes=True))
    empty = served(serve, KServeV1(), lambda p: {"predictions": [dict.fromkeys(order)] * len(p)})
    with refused(r"^member outputs must be numbers, got nan \(first at row 0"):
        collected(empty, codes=True)


def test_scores_sorted_without_names_are_refused(serve):
    """Lists that always fall from left to right are refused, and each of the fixes gives the model's losses."""
    endpoint = served(serve, KServeV1(), lambda p: {"predictions": (-np.sort(-p)).tolist()})
    with refused(
        r"must be in the order of the classes, got scores that look sorted.* name the class of each score"
    ):
        collected(endpoint)
    top = served(serve, KServeV1(), lambda p: {"predictions": (-np.sort(-p))[:, :2].tolist()})
    with refused("classes must name each of the model's 2 output columns, got 3"):
        collected(top)
    wider = served(serve, KServeV1(), lambda p: {"predictions": (-np.sort(-np.c_[p, p] / 2))[:, :4].tolist()})
    with refused(r"got 3 names; name the class of each score: .* \{class: score\}"):
        collected(wider)
    assert_true(collected(lambda x: pd.DataFrame(probabilities(x)[:, ::-1], columns=CLASSES[::-1])))


WINNERS = {
    "sorted": lambda row: sorted(row.tolist()),
    "largest": lambda row: float(row.max()),
    "label and probability": lambda row: {"label": int(row.argmax()), "probability": float(row.max())},
    "prediction and probability": lambda row: {
        "prediction": int(row.argmax()),
        "probability": float(row.max()),
    },
}


@pytest.mark.parametrize("form", WINNERS)
def test_the_larger_of_two_probabilities_is_refused(serve, form):
    """Of two classes the larger probability alone, or last, says nothing of a class; with names it is believed."""
    first, second = (np.c_[1 - group.p[:, 1], group.p[:, 1]] for group in (MEMBERS, OTHERS))
    tables = {
        "members": (MEMBERS.x, (MEMBERS.codes == 1).astype(int)),
        "nonmembers": (OTHERS.x, (OTHERS.codes == 1).astype(int)),
    }

    def endpoint(write):
        return served(serve, KServeV1(), lambda p: {"predictions": [write(np.r_[1 - q, q]) for q in p[:, 1]]})

    with refused("those of the predicted classes alone, .* name the class of each score"):
        auditor.collect(endpoint(WINNERS[form]), **tables)
    named = auditor.collect(endpoint(lambda row: {"1": row[1], "0": row[0]}), **tables)
    own = first[np.arange(MEMBERS.n), tables["members"][1]]
    np.testing.assert_allclose(named.member, np.log(1 / own - 1), rtol=1e-9)
    assert named.nonmember.size == len(second)


def test_a_rare_class_is_no_sorted_score():
    """A weak model of a rare class, which it never predicts, is believed: its probabilities say how rare the class is."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 1))
    p = 0.2 + 0.05 * np.tanh(x[:, 0])
    y = (rng.random(600) < p).astype(int)
    found = auditor.collect(
        lambda x: 0.2 + 0.05 * np.tanh(x[:, 0]), members=(x[:300], y[:300]), nonmembers=(x[300:], y[300:])
    )
    assert (found.n_member, found.notes) == (300, ())


def test_names_of_other_tasks_keep_one_order(serve):
    """Numbers to predict by name stand in their order, which must be one; labels are matched with classes=."""
    rng = np.random.default_rng(8)
    y = [rng.normal(size=(60, 2)) for _ in range(2)]

    def write(p, *, turned=False):
        rows = [{"height": float(row[0]), "width": float(row[1])} for row in p]
        return {
            "predictions": [
                dict(reversed(row.items())) if turned and i % 2 else row for i, row in enumerate(rows)
            ]
        }

    groups = {"members": (MEMBERS.x, y[0]), "nonmembers": (OTHERS.x, y[1])}
    losses = auditor.collect(served(serve, KServeV1(), write), **groups, task=SquaredError())
    np.testing.assert_allclose(losses.member, ((MEMBERS.p[:, :2] - y[0]) ** 2).sum(axis=1), rtol=1e-9)
    with refused("outputs must be named after"):
        auditor.collect(
            served(serve, KServeV1(), lambda p: write(p, turned=True)), **groups, task=SquaredError()
        )
    labels = [(group.p[:, :2] > 0.4).astype(int) for group in (MEMBERS, OTHERS)]
    several = served(serve, KServeV1(), lambda p: write(p, turned=True))
    losses = auditor.collect(
        several,
        members=(MEMBERS.x, labels[0]),
        nonmembers=(OTHERS.x, labels[1]),
        task=MultiLabel(),
        classes=["height", "width"],
    )
    own = np.where(labels[1], OTHERS.p[:, :2], 1 - OTHERS.p[:, :2])
    np.testing.assert_allclose(losses.nonmember, (np.log(1 - own) - np.log(own)).sum(axis=1), rtol=1e-9)


def test_a_single_number_by_name_is_an_output_like_any_other(serve):
    """``{"prediction": 0.8}`` is the probability of class 1 of two."""
    endpoint = served(
        serve, KServeV1(), lambda p: {"predictions": [{"prediction": row[0]} for row in p.tolist()]}
    )
    pairs = [(group.x, (group.codes == 0).astype(int)) for group in (MEMBERS, OTHERS)]
    losses = auditor.collect(endpoint, members=pairs[0], nonmembers=pairs[1])
    own = np.where(pairs[0][1], MEMBERS.p[:, 0], 1 - MEMBERS.p[:, 0])
    np.testing.assert_allclose(losses.member, np.log(1 - own) - np.log(own), rtol=1e-9)
