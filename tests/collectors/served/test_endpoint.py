"""Endpoints as values: what they show, what they refuse, and how the protocol is found out."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from collectors.common import refused
from collectors.served.scoring import collected
from command_line import printed

import auditor
from auditor.collectors import Output
from auditor.collectors.served import Endpoint, KServeV1, KServeV2

URL = "https://models.example/v2/models/income"
GROUPS = dict.fromkeys(("members", "nonmembers"), (np.zeros((2, 1)), [0, 1]))
ONES = dict.fromkeys(("members", "nonmembers"), (np.zeros((2, 1)), [1, 1]))


def test_an_endpoint_is_a_value():
    """Equal options give equal endpoints, which can be pickled and hashed; their text leaves out defaults and queries."""
    first, second = (Endpoint(URL, labels=["a", "b"], output="logits") for _ in range(2))
    assert first == second == pickle.loads(pickle.dumps(first))  # noqa: S301 - its own
    assert hash(first) == hash(second)
    assert first.output is Output.LOGITS
    assert Endpoint(URL, protocol="v1").protocol == KServeV1()  # as the command line spells it
    assert first.labels == ("a", "b")
    shown = repr(Endpoint(f"{URL}?version=2", concurrency=4, header_variables={"X-Key": "KEY"}))
    assert shown == f"Endpoint('{URL}', concurrency=4, header_variables=(('X-Key', 'KEY'),))"


NO_ADDRESS = ["models.example/v2", "ftp://models.example", "https://", 7, "https://a b"]
NO_ADDRESS += ["https://a:99999", "http://[::1", "", "https://a\n"]


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_is_refused_unshown(url):
    """Anything but an http address is refused, without a copy of it, for it may hold a password."""
    with refused(r"^url must be the address of a served model"):
        Endpoint(url)


@pytest.mark.parametrize("place", ["user:pw4711@m", "m/?api_key=pw4711", "m/?a=1&Token=pw4711"])
def test_credentials_in_the_address_are_refused_unshown(place):
    """The sentence names the better place and does not repeat the secret."""
    with refused(r"^url must hold no credentials.*token_variable=") as caught:
        Endpoint(f"https://{place}")
    assert "pw4711" not in str(caught.value)


def test_credentials_over_plain_http_need_consent():
    """A token goes over http to this machine only, unless the risk is accepted."""
    token = {"token_variable": "NAME"}
    with refused(r"^url must be https where credentials are sent.*allow_plain_http=True\.$"):
        Endpoint("http://models.example", **token)
    assert Endpoint("http://models.example", allow_plain_http=True, **token)
    assert Endpoint("http://127.0.0.1:8080", **token)
    assert Endpoint("http://models.example")


MISSING = (404, {}, {"detail": "Not Found"})
HALVES = {"predictions": [0.5, 0.5]}
TENSOR = {"outputs": [{"name": "p", "shape": [2, 1], "datatype": "FP64", "data": [0.5, 0.5]}]}


def test_a_name_cannot_leave_its_place(serve):
    """The name of a model is quoted in the path of the requests."""
    server = serve(lambda method, *_: MISSING if method == "GET" else TENSOR)
    collected(Endpoint(server.url, protocol="v2", model="../a b?"), **GROUPS)
    assert server.seen[-1][:2] == ("POST", "/v2/models/..%2Fa%20b%3F/infer")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {},
            r"does not say which protocol .* address of the model, such as 'http://127.0.0.1:\d+/v2/models/NAME', or",
        ),
        ({"model": "m"}, r"does not say which protocol .* protocol=, and the model with model=\.$"),
        ({"protocol": KServeV2()}, r"^model must name the model on a V2 server"),
        ({"protocol": KServeV1()}, r"^model must name the model on a V1 server"),
    ],
)
def test_what_the_address_does_not_say_is_asked_for(serve, options, sentence):
    """Without a protocol or a name the sentence says what to give, and no record was sent."""
    server = serve(lambda *_: MISSING)
    with refused(sentence):
        collected(Endpoint(server.url, **options), **GROUPS)
    assert server.posts == []


@pytest.mark.parametrize(
    ("names", "options", "chosen"),
    [
        (["label", "probs"], {}, "probs"),
        (["Predict_Proba", "scores"], {}, "Predict_Proba"),
        (["a", "b"], {"output_name": "b"}, "b"),
        (["only"], {}, "only"),
    ],
)
def test_one_of_several_outputs_is_chosen(serve, names, options, chosen):
    """The output called after probabilities is used, or the only one, or the one that is named; others are listed."""
    p = {name: 0.8 if name == chosen else 0.3 for name in names}
    outputs = [{"name": name, "shape": [2], "datatype": "FP64", "data": [p[name]] * 2} for name in names]
    server = serve(lambda method, *_: MISSING if method == "GET" else {"outputs": outputs})
    losses = collected(Endpoint(f"{server.url}/v2/models/m", **options), **ONES)
    np.testing.assert_allclose(losses.member, -np.log(4), rtol=1e-6)
    if len(names) > 1:  # none of the one that was named is refused
        with refused("answered with the outputs .*, not 'c' for .* with output_name="):
            collected(Endpoint(f"{server.url}/v2/models/m", output_name="c"), **ONES)


def test_collectors_load_nothing_before_it_is_needed():
    """Describing an endpoint, and the families of collectors, need neither clients, frameworks nor tables."""
    heavy = ("httpx", "pandas", "scipy", "sklearn", "pyarrow", "torch", "transformers", "tokenizers")
    code = (
        "import sys, auditor.collectors.texts.scorer; from auditor.collectors.served.endpoint import Endpoint; Endpoint('http://h');"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert printed(code) == "[]"


def test_a_missing_client_says_how_it_is_installed(monkeypatch):
    """Without httpx the sentence holds the command."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(auditor.MissingExtraError, match=r"pip install 'privacy-auditor\[http\]'\.$"):
        collected(Endpoint(URL), **GROUPS)


def test_labels_are_audited_through_an_endpoint(serve, linear):
    """The numbers are those of the same model at hand."""
    server = serve(lambda _m, _p, body: {"predictions": linear.probabilities(body["instances"]).tolist()})
    endpoint = Endpoint(f"{server.url}/v1/models/m:predict", protocol="v1")
    law = {"probabilities": np.full((60, 3), 1 / 3)}
    served, at_hand = (
        auditor.audit_labels(model, (linear.x, linear.y), **law) for model in (endpoint, linear.probabilities)
    )
    assert served.data["of_model"] == pytest.approx(at_hand.data["of_model"])
    assert served["epsilon_bound.labels"].details["tried"] == at_hand["epsilon_bound.labels"].details["tried"]


def test_answers_of_the_likeliest_class_alone_are_scored_once_the_classes_are_named(serve):
    """The sentence requests all classes, and with them what is left of 1 belongs to the other class; labels alone work too."""

    def answer(_method, _path, body):
        return {"predictions": [{"label": "ab"[row[0] > 0], "score": 0.75} for row in body["inputs"]]}

    x = np.array([[1.0], [-1.0]])
    groups = {"members": (x, ["b", "a"]), "nonmembers": (x, ["b", "b"])}
    endpoint = Endpoint(serve(answer).url, protocol="mlflow")
    with refused(r"outputs must name every class.*all in classes= \(--classes\)"):
        collected(endpoint, **groups)
    scored = auditor.collect(endpoint, classes=["a", "b"], **groups)
    np.testing.assert_allclose(scored.member, -np.log(3))
    np.testing.assert_allclose(scored.nonmember, [-np.log(3), np.log(3)])
    found = collected(replace(endpoint, output_name="label", labels=["a", "b"]), **groups)
    assert (found.member < 0).tolist() == [True, True]
    assert (found.nonmember < 0).tolist() == [True, False]
