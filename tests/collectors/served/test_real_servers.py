"""Losses through real model servers on loopback, each started from its own environment (see ``tests/servers``).

The model is a logistic regression on irises, trained where the server runs. The tests know its coefficients and compute
the same losses in process, from logits. Servers answer with float64 probabilities in JSON with every digit, so a loss
may be off by the rounding of a probability, 2.2e-16 / (p (1 - p)): far less than 1e-6 here.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from servers.running import programs, running, trained
from sklearn.datasets import load_iris

import auditor
from auditor.collectors.base import Classification, ModelScorer, Output, Records
from auditor.collectors.served import Endpoint, KServeV1, KServeV2
from auditor.collectors.streaming import predictor, preflight
from auditor.core import InputError

FEATURES, LABELS = load_iris(return_X_y=True)
MEMBERS, NONMEMBERS = (FEATURES[::2], LABELS[::2]), (FEATURES[1::2], LABELS[1::2])


class Server(NamedTuple):
    """A running server and the model behind it."""

    url: str
    coefficients: dict

    def logits(self, features):
        """The model in process."""
        return np.asarray(features) @ np.transpose(self.coefficients["coef"]) + self.coefficients["intercept"]

    def expected(self, members=MEMBERS, nonmembers=NONMEMBERS):
        """The losses of the model in process."""
        return auditor.collect(self.logits, members=members, nonmembers=nonmembers, output=Output.LOGITS)


def started(kind, tmp_path_factory, require_extra, model=""):
    """Train, start, and stop in the end."""
    programs(kind)  # skips before anything is done
    require_extra("http")
    folder = tmp_path_factory.mktemp(kind)
    coefficients = trained(kind, folder)
    with running(kind, folder, model=model) as url:
        yield Server(url, coefficients)


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory, require_extra):
    """MLServer with the models ``described`` and ``bare``."""
    yield from started("mlserver", tmp_path_factory, require_extra)


@pytest.fixture(scope="module")
def kserve(tmp_path_factory, require_extra):
    """KServe's model server with the models ``probabilities`` and ``labels``."""
    yield from started("kserve", tmp_path_factory, require_extra)


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory, require_extra):
    """MLflow's scoring server with a model that returns probabilities."""
    yield from started("mlflow", tmp_path_factory, require_extra, "probabilities")


@pytest.fixture(scope="module")
def mlflow_labels(tmp_path_factory, require_extra):
    """MLflow's scoring server with a model as it is saved by default."""
    yield from started("mlflow", tmp_path_factory, require_extra, "labels")


def assert_same(endpoint, server):
    """The losses through the endpoint are those of the model in process; nothing is reported about them."""
    losses = auditor.collect(endpoint, members=MEMBERS, nonmembers=NONMEMBERS)
    expected = server.expected()
    np.testing.assert_allclose(losses.member, expected.member, rtol=0, atol=1e-6)
    np.testing.assert_allclose(losses.nonmember, expected.nonmember, rtol=0, atol=1e-6)
    assert losses.scale is auditor.LossScale.LOG_ODDS
    assert len(losses.history) == 1


def assert_refuses_labels(endpoint, fix):
    """Predicted labels are named as such, with what makes the server return probabilities."""
    with pytest.raises(InputError, match=r"predicted labels \(.*\) instead of probabilities") as caught:
        auditor.collect(endpoint, members=MEMBERS, nonmembers=NONMEMBERS)
    assert fix in str(caught.value)


def assert_weaker(endpoint, server):
    """With the classes listed, labels give the 0/1 loss: right predictions at one end, wrong ones at the other."""
    losses = auditor.collect(endpoint, members=MEMBERS, nonmembers=NONMEMBERS)
    right = server.logits(MEMBERS[0]).argmax(axis=1) == MEMBERS[1]
    assert 0 < right.sum() < right.size
    np.testing.assert_array_equal(losses.member < 0, right)
    assert np.unique(np.abs(losses.member)).size == 1
    assert any("0/1-loss audit" in step for step in losses.history)


@pytest.mark.parametrize("model", ["described", "bare"])
def test_mlserver(model, mlserver):
    """KServe V2: the same losses from a model that describes its tensors and from one that does not."""
    assert_same(Endpoint(f"{mlserver.url}/v2/models/{model}"), mlserver)


def test_mlserver_by_its_root(mlserver):
    """The server's own address and the name of the model are enough: the protocol is found out."""
    assert_same(Endpoint(mlserver.url, model="described"), mlserver)


def test_mlserver_in_many_requests(mlserver):
    """Requests of seven records, eight at once, come back in the order of the records."""
    assert_same(Endpoint(f"{mlserver.url}/v2/models/bare/infer", max_request_records=7), mlserver)


def test_mlserver_in_float32(mlserver):
    """Features sent as FP32 give the losses of the rounded features."""
    endpoint = Endpoint(f"{mlserver.url}/v2/models/bare", protocol=KServeV2(datatype="FP32"))
    losses = auditor.collect(endpoint, members=MEMBERS, nonmembers=NONMEMBERS)
    rounded = [(x.astype(np.float32).astype(np.float64), y) for x, y in (MEMBERS, NONMEMBERS)]
    np.testing.assert_allclose(losses.member, mlserver.expected(*rounded).member, rtol=0, atol=1e-6)
    assert np.abs(losses.member - mlserver.expected().member).max() > 1e-8


def test_mlserver_with_labels(mlserver):
    """Its default output is the predicted label; asked for that, the fix is printed."""
    assert_refuses_labels(
        Endpoint(f"{mlserver.url}/v2/models/bare", output_name="predict"), '"predict_fn": "predict_proba"'
    )
    assert_weaker(
        Endpoint(f"{mlserver.url}/v2/models/bare", output_name="predict", labels=(0, 1, 2)), mlserver
    )


def test_mlserver_before_a_long_collection(mlserver):
    """The trial on a few records finds nothing to warn of, and a permuted order of the classes where there is one."""
    task = Classification()
    model = predictor(Endpoint(f"{mlserver.url}/v2/models/bare"), task=task)
    found = preflight(ModelScorer(model, task=task), [Records("member", *MEMBERS)])
    assert (found.deterministic, found.same_alone, found.sums_to_one, found.hard_labels) == (
        True,
        True,
        True,
        False,
    )
    assert found.warnings == ()
    permuted = preflight(ModelScorer(model, task=task, classes=(2, 0, 1)), [Records("member", *MEMBERS)])
    assert permuted.suggested_classes == (0, 1, 2)


def test_mlserver_without_that_model(mlserver):
    """A model that the server does not have is one sentence."""
    with pytest.raises(InputError, match="nosuch"):
        auditor.collect(Endpoint(f"{mlserver.url}/v2/models/nosuch"), members=MEMBERS, nonmembers=NONMEMBERS)


def test_kserve(kserve):
    """KServe V1 ``:predict``: the same losses."""
    assert_same(Endpoint(f"{kserve.url}/v1/models/probabilities:predict"), kserve)


def test_kserve_by_its_root(kserve):
    """With the protocol and the model named, the server's own address is enough."""
    assert_same(Endpoint(kserve.url, protocol=KServeV1(), model="probabilities"), kserve)


def test_kserve_with_labels(kserve):
    """A model that answers with labels is refused, or taken as the weaker audit that it is."""
    assert_refuses_labels(Endpoint(f"{kserve.url}/v1/models/labels"), "probabilities")
    assert_weaker(Endpoint(f"{kserve.url}/v1/models/labels", labels=(0, 1, 2)), kserve)


@pytest.mark.parametrize("path", ["/invocations", ""])
def test_mlflow(path, mlflow):
    """MLflow ``/invocations``: the same losses, by that address or by the server's own."""
    assert_same(Endpoint(f"{mlflow.url}{path}"), mlflow)


def test_mlflow_takes_a_table(mlflow):
    """A DataFrame goes with the names of its columns, and gives the same losses."""
    names = ["a", "b", "c", "d"]
    tables = [(pd.DataFrame(x, columns=names), y) for x, y in (MEMBERS, NONMEMBERS)]
    losses = auditor.collect(Endpoint(f"{mlflow.url}/invocations"), members=tables[0], nonmembers=tables[1])
    np.testing.assert_allclose(losses.member, mlflow.expected().member, rtol=0, atol=1e-6)


def test_mlflow_with_labels(mlflow_labels):
    """A model saved with nothing said returns labels; the fix is printed."""
    assert_refuses_labels(Endpoint(f"{mlflow_labels.url}/invocations"), "pyfunc_predict_fn")
    assert_weaker(Endpoint(f"{mlflow_labels.url}/invocations", labels=(0, 1, 2)), mlflow_labels)
