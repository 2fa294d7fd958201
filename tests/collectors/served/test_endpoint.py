"""Endpoints as values: what they show, what they refuse, and how the protocol is found out."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from collectors.served.scoring import collected

import auditor
from auditor import InputError
from auditor.collectors import Output
from auditor.collectors.served import Endpoint, KServeV1, KServeV2, MLflow

URL = "https://models.example/v2/models/income"


def test_the_repr_shows_what_was_chosen():
    """Defaults are left out, and so is the query of the address."""
    shown = repr(
        Endpoint(f"{URL}?version=2", concurrency=4, protocol=KServeV1(), header_variables={"X-Key": "KEY"})
    )
    expected = (
        f"Endpoint('{URL}', concurrency=4, header_variables=(('X-Key', 'KEY'),), protocol={KServeV1()!r})"
    )
    assert shown == expected


def test_an_endpoint_is_a_value():
    """Equal options give equal endpoints, which can be pickled and hashed."""
    first, second = (
        Endpoint(URL, labels=["a", "b"], output="logits", columns=np.array(["x"])) for _ in range(2)
    )
    assert first == second == pickle.loads(pickle.dumps(first))  # noqa: S301 - its own
    assert hash(first) == hash(second)
    assert first.output is Output.LOGITS
    assert first.labels == ("a", "b")


@pytest.mark.parametrize(
    "url",
    [
        "models.example/v2",
        "ftp://models.example",
        "https://",
        7,
        "https://a b",
        "https://a:99999",
        "http://[::1",
        "",
        "https://a\n",
    ],
)
def test_what_is_no_address_is_refused_unshown(url):
    """Anything but an http address is refused, without a copy of it, for it may hold a password."""
    with pytest.raises(InputError, match=r"^url must be the address of a served model"):
        Endpoint(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pw4711@models.example",
        "https://models.example/?api_key=pw4711",
        "https://m/?a=1&Token=pw4711",
    ],
)
def test_credentials_in_the_address_are_refused_unshown(url):
    """The sentence names the better place and does not repeat the secret."""
    with pytest.raises(InputError, match=r"^url must hold no credentials.*token_variable=") as caught:
        Endpoint(url)
    assert "pw4711" not in str(caught.value)


def test_credentials_over_plain_http_need_consent():
    """A token goes over http to this machine only, unless the risk is accepted."""
    token = {"token_variable": "NAME"}
    with pytest.raises(
        InputError, match=r"^url must be https where credentials are sent.*allow_plain_http=True\.$"
    ):
        Endpoint("http://models.example", **token)
    assert Endpoint("http://models.example", allow_plain_http=True, **token)
    assert Endpoint("http://127.0.0.1:8080", **token)
    assert Endpoint("http://models.example")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"concurrency": 0}, r"concurrency must be a whole number of 1 or more, got 0"),
        ({"retries": -1}, r"retries must be a whole number of 0 or more, got -1"),
        ({"timeout": 0}, r"timeout must be above 0"),
        ({"max_request_bytes": 10}, r"max_request_bytes must be a whole number of 1000 or more"),
        ({"max_request_records": 0}, r"max_request_records must be a whole number of 1 or more"),
        ({"protocol": "grpc"}, r"protocol must be one of KServeV2\(\.\.\.\), .* got 'grpc'"),
        ({"output": "probability"}, r"output must be one of .* did you mean 'probabilities'"),
        ({"labels": ["a", "a"]}, r"labels must be a list of different names"),
        ({"labels": "ab"}, r"labels must be a list of different names"),
        ({"columns": []}, r"columns must be a list of different names"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    """Each option is checked when the endpoint is described, before anything is sent."""
    with pytest.raises(InputError, match=f"^{sentence}"):
        Endpoint(URL, **options)


def asked(serve, answer, **kwargs):
    """Collect through a server's bare address, and return the requests that the server saw."""
    server = serve(answer)
    group = (np.zeros((2, 1)), [0, 1])
    collected(Endpoint(server.url, pause=0.01, **kwargs), members=group, nonmembers=group)
    return [(method, path) for method, path, _ in server.seen]


MISSING = (404, {}, {"detail": "Not Found"})
TENSOR = {"outputs": [{"name": "p", "shape": [2, 1], "datatype": "FP64", "data": [0.5, 0.5]}]}


def site(pages, post):
    """Answer these pages by GET, and one thing to every POST."""
    return lambda method, path, _body: pages.get(path, MISSING) if method == "GET" else post


def test_v2_is_found_by_its_list_of_models(serve):
    """The only model of a server that lists it needs no name."""
    pages = {"/v2/models": {"models": ["m"]}, "/v2/models/m": {"name": "m", "inputs": [], "outputs": []}}
    assert asked(serve, site(pages, TENSOR))[-1] == ("POST", "/v2/models/m/infer")


def test_v1_is_found_by_its_status(serve):
    """A server without V2 but with the status of the model speaks V1."""
    pages = {"/v1/models/m": {"model_version_status": []}}
    assert asked(serve, site(pages, {"predictions": [0.5, 0.5]}), model="m")[-1] == (
        "POST",
        "/v1/models/m:predict",
    )


def test_mlflow_is_found_by_its_version(serve):
    """A server that only pings and has a version is MLflow's; nothing but documented addresses was asked."""
    seen = asked(serve, site({"/ping": {}, "/version": (200, {}, b"2.9.2")}, {"predictions": [0.5, 0.5]}))
    assert {path for method, path in seen if method == "GET"} <= {
        "/v2/models",
        "/v1/models",
        "/ping",
        "/version",
    }
    assert seen[-1] == ("POST", "/invocations")


def test_a_name_with_signs_is_quoted(serve):
    """A model's name cannot leave its place in the path."""
    server = serve(site({}, TENSOR))
    group = (np.zeros((2, 1)), [0, 1])
    endpoint = Endpoint(server.url, protocol=KServeV2(), model="../a b?")
    collected(endpoint, members=group, nonmembers=group)
    assert server.seen[-1][1] == "/v2/models/..%2Fa%20b%3F/infer"


@pytest.mark.parametrize(
    ("pages", "options", "sentence"),
    [
        ({}, {}, r"does not say which protocol it speaks: .* protocol=, and the model with model=\.$"),
        ({}, {"model": "m"}, r"does not say which protocol it speaks for the model 'm'"),
        ({"/v2/models": {"models": ["a", "b"]}}, {}, r"^model must name one of the models .* has 'a', 'b'"),
        ({}, {"protocol": KServeV2()}, r"^model must name the model on a V2 server"),
        ({}, {"protocol": KServeV1()}, r"^model must name the model on a V1 server"),
        ({"/ping": {}, "/version": {"v": 1}}, {}, r"does not say which protocol"),
    ],
)
def test_what_cannot_be_found_out_is_asked_for(serve, pages, options, sentence):
    """Without a protocol or a name the sentence says what to give, and no record was sent."""
    server = serve(site(pages, {}))
    group = (np.zeros((2, 1)), [0, 1])
    with pytest.raises(InputError, match=sentence):
        collected(Endpoint(server.url, **options), members=group, nonmembers=group)
    assert server.posts == []


def test_a_completions_address_is_sent_to_its_own_kind(require_extra):
    """Texts have an endpoint of their own."""
    require_extra("http")
    group = (np.zeros((2, 1)), [0, 1])
    with pytest.raises(InputError, match=r"use CompletionsEndpoint for texts"):
        collected(Endpoint("http://127.0.0.1:1/v1/completions"), members=group, nonmembers=group)


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
    """The output called after probabilities is used, or the only one, or the one that is named."""
    p = {name: 0.8 if name == chosen else 0.3 for name in names}
    outputs = [{"name": name, "shape": [2], "datatype": "FP64", "data": [p[name]] * 2} for name in names]
    server = serve(site({}, {"outputs": outputs}))
    group = (np.zeros((2, 1)), [1, 1])
    losses = collected(Endpoint(f"{server.url}/v2/models/m", **options), members=group, nonmembers=group)
    np.testing.assert_allclose(losses.member, -np.log(4), rtol=1e-6)


def test_outputs_that_cannot_be_told_apart_are_listed(serve):
    """Two outputs of any name, or none of the one that was named, are listed in the sentence."""
    outputs = [{"name": name, "shape": [2], "datatype": "FP64", "data": [0.5] * 2} for name in "ab"]
    server = serve(site({}, {"outputs": outputs}))
    group = (np.zeros((2, 1)), [1, 1])
    for options, words in (({}, "'a', 'b' for"), ({"output_name": "c"}, "'a', 'b', not 'c' for")):
        with pytest.raises(InputError, match=f"answered with the outputs {words} .* with output_name="):
            collected(
                Endpoint(f"{server.url}/v2/models/m", protocol=KServeV2(), **options),
                members=group,
                nonmembers=group,
            )


def test_the_history_names_the_endpoint_and_no_secret(serve, monkeypatch):
    """What is written down is the address without its query, the protocol and what was returned."""
    monkeypatch.setenv("ENDPOINT_TOKEN", "tok-91c2")
    server = serve(lambda *_: {"predictions": [0.5, 0.25]})
    group = (np.zeros((2, 1)), [0, 1])
    token = {"token_variable": "ENDPOINT_TOKEN"}
    endpoint = Endpoint(f"{server.url}/invocations?stage=2", protocol=MLflow(), **token)
    history = collected(endpoint, members=group, nonmembers=group).history
    assert history[0].endswith(
        f"from the probabilities that endpoint '{server.url}/invocations' returned (MLflow)"
    )
    assert not [step for step in history if "tok-91c2" in step or "stage" in step]


def test_importing_endpoints_loads_no_client():
    """Describing an endpoint needs neither httpx nor tables."""
    code = (
        "import sys; from auditor.collectors.served import Endpoint; Endpoint('http://h');"
        "print([n for n in ('httpx', 'pandas', 'scipy', 'sklearn', 'pyarrow') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_missing_client_says_how_it_is_installed(monkeypatch):
    """Without httpx the sentence holds the command."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    group = (np.zeros((2, 1)), [0, 1])
    with pytest.raises(auditor.MissingExtraError, match=r"pip install 'privacy-auditor\[http\]'\.$"):
        collected(Endpoint(URL), members=group, nonmembers=group)


def test_collect_takes_an_endpoint(serve, linear):
    """`auditor.collect` takes the endpoint like any model, and warns of nothing."""
    server = serve(lambda _m, _p, body: {"predictions": linear.probabilities(body["inputs"]).tolist()})
    losses = auditor.collect(Endpoint(f"{server.url}/invocations"), **linear.groups)
    np.testing.assert_allclose(losses.member, linear.losses[:35], rtol=1e-12)
    np.testing.assert_allclose(losses.nonmember, linear.losses[35:], rtol=1e-12)
    assert len(losses.history) == 1
