"""Losses through real model servers on loopback, each started from its own environment (see ``tests/servers``).

The model is a logistic regression on irises, trained where the server runs. The tests know its coefficients and compute
the same losses in process, from logits. Servers answer with float64 probabilities in JSON with every digit, so a loss
may be off by the rounding of a probability, 2.2e-16 / (p (1 - p)): far less than 1e-6 here.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from servers.running import programs, running, trained
from sklearn.datasets import load_iris

import auditor
from auditor.collectors.base import Output
from auditor.collectors.served import Endpoint, KServeV1, KServeV2, MLflow

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


@pytest.mark.parametrize(
    ("kind", "path", "options"),
    [
        ("mlserver", "/v2/models/described", {}),
        ("mlserver", "/v2/models/bare", {}),
        ("mlserver", "", {"protocol": KServeV2(), "model": "described"}),
        ("mlserver", "/v2/models/bare/infer", {"max_request_records": 7}),
        ("kserve", "/v1/models/probabilities:predict", {}),
        ("kserve", "", {"protocol": KServeV1(), "model": "probabilities"}),
        ("mlflow", "/invocations", {}),
        ("mlflow", "", {"protocol": MLflow()}),
    ],
)
def test_the_losses_are_those_of_the_model_in_process(request, kind, path, options):
    """By the model's address or the server's own, in one request or in many; nothing is reported about them."""
    server = request.getfixturevalue(kind)
    losses = auditor.collect(Endpoint(server.url + path, **options), members=MEMBERS, nonmembers=NONMEMBERS)
    expected = server.expected()
    np.testing.assert_allclose(losses.member, expected.member, rtol=0, atol=1e-6)
    np.testing.assert_allclose(losses.nonmember, expected.nonmember, rtol=0, atol=1e-6)
    assert losses.scale is auditor.LossScale.LOG_ODDS
    assert len(losses.history) == 1


def test_mlserver_in_float32(mlserver):
    """Features sent as FP32 give the losses of the rounded features."""
    endpoint = Endpoint(f"{mlserver.url}/v2/models/bare", protocol=KServeV2(datatype="FP32"))
    losses = auditor.collect(endpoint, members=MEMBERS, nonmembers=NONMEMBERS)
    rounded = [(x.astype(np.float32).astype(np.float64), y) for x, y in (MEMBERS, NONMEMBERS)]
    np.testing.assert_allclose(losses.member, mlserver.expected(*rounded).member, rtol=0, atol=1e-6)
    assert np.abs(losses.member - mlserver.expected().member).max() > 1e-8


@pytest.mark.parametrize(
    ("kind", "path", "options", "fix"),
    [
        ("mlserver", "/v2/models/bare", {"output_name": "predict"}, '"predict_fn": "predict_proba"'),
        ("kserve", "/v1/models/labels", {}, "probabilities"),
        ("mlflow_labels", "/invocations", {}, "pyfunc_predict_fn"),
    ],
)
def test_labels_are_refused_or_taken_as_the_weaker_audit(request, kind, path, options, fix):
    """The fix is printed; with the classes listed, right labels are at one end of the scale and wrong ones at the other."""
    server = request.getfixturevalue(kind)
    groups = {"members": MEMBERS, "nonmembers": NONMEMBERS}
    with refused(r"predicted labels \(.*\) instead of probabilities") as caught:
        auditor.collect(Endpoint(server.url + path, **options), **groups)
    assert fix in str(caught.value)
    losses = auditor.collect(Endpoint(server.url + path, labels=(0, 1, 2), **options), **groups)
    right = server.logits(MEMBERS[0]).argmax(axis=1) == MEMBERS[1]
    assert 0 < right.sum() < right.size
    np.testing.assert_array_equal(losses.member < 0, right)
    assert np.unique(np.abs(losses.member)).size == 1
    assert any("0/1-loss audit" in step for step in losses.history)


def test_mlserver_without_that_model(mlserver):
    """A model that the server does not have is one sentence."""
    with refused("nosuch"):
        auditor.collect(Endpoint(f"{mlserver.url}/v2/models/nosuch"), members=MEMBERS, nonmembers=NONMEMBERS)


def test_mlflow_takes_a_table(mlflow):
    """A DataFrame goes with the names of its columns, and gives the same losses."""
    names = ["a", "b", "c", "d"]
    tables = [(pd.DataFrame(x, columns=names), y) for x, y in (MEMBERS, NONMEMBERS)]
    losses = auditor.collect(Endpoint(f"{mlflow.url}/invocations"), members=tables[0], nonmembers=tables[1])
    np.testing.assert_allclose(losses.member, mlflow.expected().member, rtol=0, atol=1e-6)
