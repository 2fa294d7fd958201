"""Each protocol as its documentation writes it: a strict server, and the losses of a model in process."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from collectors.served.scoring import in_order as collected

from auditor.collectors import GaussianLogLoss, MultiLabel, Output, SquaredError, collect
from auditor.collectors.served import Endpoint, KServeV1, KServeV2, MLflow, Template

NAMES = ["age", "hours", "gain", "loss"]


def assert_losses(endpoint, linear, tolerance=1e-12, **kwargs):
    """The losses through the endpoint are the model's."""
    losses = collected(endpoint, **{**linear.groups, **kwargs})
    np.testing.assert_allclose(losses.member, linear.losses[:35], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(losses.nonmember, linear.losses[35:], rtol=tolerance, atol=tolerance)
    return losses


def both(group):
    """One group for members and non-members."""
    return {"members": group, "nonmembers": group}


def framed(linear):
    """The groups as tables with names."""
    return {
        name: (pd.DataFrame(features, columns=NAMES), labels)
        for name, (features, labels) in linear.groups.items()
    }


# --- KServe V2 ------------------------------------------------------------------------------------


class V2:
    """A V2 server of one model, which checks each request against the protocol."""

    def __init__(self, linear, *, metadata=None, form="flat", outputs=("predict_proba",), datatype="FP64"):
        self.linear, self.form, self.outputs, self.datatype = linear, form, outputs, datatype
        self.metadata = metadata or {"name": "m", "versions": [], "platform": "", "inputs": [], "outputs": []}

    def __call__(self, method, path, body):
        """Answer metadata and inference."""
        if method == "GET":
            return self.metadata if path == "/v2/models/m" else (404, {}, {"error": "no such model"})
        assert path == "/v2/models/m/infer"
        asked = [output["name"] for output in body.get("outputs", [])]
        if set(asked) - set(self.outputs):
            return 400, {}, {"error": f"only supports {self.outputs}"}
        probabilities = self.linear.probabilities(self.features(body["inputs"]))
        return {
            "model_name": "m",
            "outputs": [self.output(name, probabilities) for name in asked or self.outputs],
        }

    def features(self, inputs):
        """Return the matrix: one tensor, or one for each column."""
        columns = []
        for tensor in inputs:
            assert set(tensor) <= {"name", "shape", "datatype", "data", "parameters"}
            data = np.asarray(tensor["data"])
            assert data.size == np.prod(tensor["shape"])
            columns.append(data.reshape(tensor["shape"]).reshape(tensor["shape"][0], -1))
        return np.concatenate(columns, axis=1)

    def output(self, name, probabilities):
        """Return an output tensor."""
        if name == "predict":
            labels = probabilities.argmax(axis=1)
            return {"name": name, "shape": [len(labels), 1], "datatype": "INT64", "data": labels.tolist()}
        data = probabilities.astype({"FP64": np.float64, "FP32": np.float32}[self.datatype])
        data = (data if self.form == "nested" else data.ravel()).tolist()
        return {"name": name, "shape": [*probabilities.shape], "datatype": self.datatype, "data": data}


def outputs(data, shape, datatype="FP64"):
    """An answer of one tensor."""
    return {"outputs": [{"name": "p", "shape": shape, "datatype": datatype, "data": data}]}


@pytest.mark.parametrize("form", ["flat", "nested"])
@pytest.mark.parametrize("path", ["/v2/models/m", "/v2/models/m/infer"])
def test_v2_with_one_matrix(serve, linear, form, path):
    """Flat or nested data give the model's losses, whatever part of the address is given."""
    server = serve(V2(linear, form=form))
    assert_losses(Endpoint(server.url + path, model=None if path else "m"), linear)
    tensor = server.posts[0]["inputs"][0]
    assert (tensor["shape"], tensor["datatype"]) == ([35, 4], "FP64")
    assert np.ndim(tensor["data"]) == 1
    assert server.posts[0]["outputs"] == [{"name": "predict_proba"}]


def test_v2_uses_what_the_metadata_says(serve, linear):
    """The name and the datatype of the input and the output of probabilities are those of the model."""
    metadata = {
        "name": "m",
        "inputs": [{"name": "features", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "label"}, {"name": "probabilities"}],
    }
    server = serve(V2(linear, metadata=metadata, outputs=("label", "probabilities")))
    assert_losses(Endpoint(f"{server.url}/v2/models/m"), linear)
    tensor = server.posts[0]["inputs"][0]
    assert (tensor["name"], tensor["datatype"]) == ("features", "FP32")
    assert server.posts[0]["outputs"] == [{"name": "probabilities"}]


def test_v2_float32_outputs_keep_their_type(serve, linear):
    """A tensor of FP32 is known to the rounding of float32, where its saturated probabilities are placed too."""
    server = serve(V2(linear, datatype="FP32"))
    p = linear.probabilities(linear.x)[np.arange(60), linear.y]
    losses = assert_losses(Endpoint(f"{server.url}/v2/models/m"), linear, tolerance=1e-4)
    bound = np.finfo(np.float32).eps / (p * (1 - p))
    assert np.all(np.abs(np.r_[losses.member, losses.nonmember] - linear.losses) <= bound)
    server.answer = lambda *_: outputs([1, 0, 1, 0], [2, 2], "FP32")
    endpoint = Endpoint(f"{server.url}/v2/models/m", protocol=KServeV2())
    losses = collected(endpoint, **both((np.zeros((2, 1)), [0, 0])))
    np.testing.assert_allclose(losses.member, np.log(np.finfo(np.float32).eps), rtol=1e-6)


def test_v2_one_tensor_for_each_column(serve, linear):
    """A model with several inputs gets them by name, in its own order and shape, from a table in another order."""
    inputs = [{"name": name, "datatype": "FP64", "shape": [-1, 1]} for name in NAMES]
    server = serve(V2(linear, metadata={"name": "m", "inputs": inputs, "outputs": []}))
    groups = {key: (table[NAMES[::-1]], labels) for key, (table, labels) in framed(linear).items()}
    assert_losses(Endpoint(f"{server.url}/v2/models/m"), linear, **groups)
    assert [tensor["name"] for tensor in server.posts[0]["inputs"]] == NAMES
    assert [tensor["shape"] for tensor in server.posts[0]["inputs"]] == [[35, 1]] * 4


def test_v2_text_goes_as_bytes(serve):
    """Columns of text and numbers become a tensor each, as MLServer's pandas codec takes them."""
    table = pd.DataFrame({"job": ["cook", "judge", "cook"], "age": [31, 45, 27], "rate": [0.5, 1.5, 2.5]})
    server = serve(lambda method, *_: outputs([0.5] * 6, [3, 2]) if method == "POST" else {})
    collected(Endpoint(f"{server.url}/v2/models/m"), **both((table, [0, 1, 1])))
    body = server.posts[0]
    assert body["parameters"] == {"content_type": "pd"}
    first, *others = body["inputs"]
    assert first.pop("parameters") == {"content_type": "str"}
    assert first == {"name": "job", "shape": [3, 1], "datatype": "BYTES", "data": ["cook", "judge", "cook"]}
    assert others == [
        {"name": "age", "shape": [3, 1], "datatype": "INT64", "data": [31, 45, 27]},
        {"name": "rate", "shape": [3, 1], "datatype": "FP64", "data": [0.5, 1.5, 2.5]},
    ]


def test_v2_texts_and_images(serve):
    """A list of texts is one tensor of BYTES; an image keeps its shape, its data row by row."""
    server = serve(lambda method, *_: outputs([0.5] * 4, [2, 2]) if method == "POST" else (404, {}, b""))
    endpoint = Endpoint(f"{server.url}/v2/models/m")
    texts, images = ["a", 'b"'], np.arange(12.0).reshape(2, 2, 3)
    collected(endpoint, **both((texts, [0, 1])))
    collected(endpoint, **both((images, [0, 1])))
    first, last = server.posts[0]["inputs"][0], server.posts[-1]["inputs"][0]
    assert (first["datatype"], first["shape"], first["data"]) == ("BYTES", [2], texts)
    assert (last["shape"], last["data"]) == ([2, 2, 3], list(range(12)))


def test_v2_asks_for_less_where_probabilities_are_unknown(serve, linear):
    """A server without predict_proba gets one more request for whatever it has, and only once in a collection."""
    server = serve(V2(linear, outputs=("confidence",)))
    assert_losses(Endpoint(f"{server.url}/v2/models/m", max_request_records=10, concurrency=1), linear)
    asked = [("outputs" in body, body["inputs"][0]["shape"][0]) for body in server.posts]
    assert asked[:2] == [(True, 10), (False, 10)]
    assert all(not outputs for outputs, _ in asked[1:])
    assert sum(count for _, count in asked[1:]) == 60


@pytest.mark.parametrize(
    ("kind", "values"), [("INT64", [1, 2]), ("BOOL", [False, True]), ("FP32", [0.25, 1e-30])]
)
def test_v2_writes_the_datatype_of_the_model(serve, kind, values):
    """Whole numbers go as integers, 0 and 1 as truth values where the model wants them, and floats with every digit."""
    metadata = {"inputs": [{"name": "x", "datatype": kind, "shape": [-1, 2]}], "outputs": []}
    server = serve(lambda method, *_: outputs([0.5] * 4, [2, 2]) if method == "POST" else metadata)
    collected(Endpoint(f"{server.url}/v2/models/m"), **both((np.array([values] * 2, float), [0, 1])))
    data = server.posts[0]["inputs"][0]["data"]
    assert data == values * 2
    assert {type(item) for item in data} == {type(values[0])}


# --- TF Serving and KServe V1 ---------------------------------------------------------------------


def v1(linear, write, **metadata):
    """A V1 server; ``write`` makes the answer from the probabilities."""

    def answer(method, path, body):
        if method == "GET":
            if path == "/v1/models/m":
                return {"model_version_status": [{"version": "1", "state": "AVAILABLE"}]}
            return metadata if metadata and path.endswith("/metadata") else (404, {}, {"error": "not found"})
        assert path == "/v1/models/m:predict"
        assert set(body) - {"signature_name"} == {"instances"}
        rows = [[row[name] for name in NAMES] if isinstance(row, dict) else row for row in body["instances"]]
        return write(linear.probabilities(rows))

    return answer


WRITINGS = {
    "rows": lambda p: {"predictions": p.tolist()},
    "objects": lambda p: {"predictions": [{"classes": [1], "probabilities": row.tolist()} for row in p]},
    "columns": lambda p: {"outputs": {"labels": p.argmax(axis=1).tolist(), "probs": p.tolist()}},
    "one column": lambda p: {"outputs": p.tolist()},
    "names": lambda p: {"predictions": [dict(zip("012", row.tolist(), strict=True)) for row in p]},
}


@pytest.mark.parametrize("write", WRITINGS.values(), ids=WRITINGS)
@pytest.mark.parametrize("path", ["/v1/models/m:predict", "/v1/models/m"])
def test_v1_in_each_form_of_answer(serve, linear, write, path):
    """Rows, objects of several outputs and columns give the model's losses."""
    server = serve(v1(linear, write))
    assert_losses(Endpoint(server.url + path, model=None if path else "m"), linear)
    assert np.shape(server.posts[0]["instances"]) == (35, 4)


def test_v1_takes_a_signature_and_by_a_template_records_by_name(serve, linear):
    """The signature is part of the request; several inputs are objects by their names in a template."""
    server = serve(v1(linear, WRITINGS["rows"]))
    signed = KServeV1(signature_name="scores")
    assert_losses(Endpoint(f"{server.url}/v1/models/m:predict", protocol=signed), linear)
    assert server.posts[-1]["signature_name"] == "scores"
    named = Template('{"instances": {{records}}}', "predictions")
    assert_losses(Endpoint(f"{server.url}/v1/models/m:predict", protocol=named), linear, **framed(linear))
    assert set(server.posts[-1]["instances"][0]) == set(NAMES)


# --- MLflow ---------------------------------------------------------------------------------------


def mlflow(linear):
    """MLflow's scoring server: a table by names, or an array."""

    def answer(method, path, body):
        assert (method, path) == ("POST", "/invocations")
        if set(body) == {"dataframe_split"}:
            assert set(body["dataframe_split"]) == {"columns", "data"}
            rows = pd.DataFrame(**body["dataframe_split"])[NAMES]
        else:
            assert set(body) == {"inputs"}
            rows = body["inputs"]
        return {"predictions": linear.probabilities(rows).tolist()}

    return answer


def test_mlflow_with_a_table_and_with_an_array(serve, linear):
    """A table goes with its names, in any order; an array goes as inputs."""
    server, path = serve(mlflow(linear)), "/invocations"
    groups = {key: (table[NAMES[::-1]], labels) for key, (table, labels) in framed(linear).items()}
    assert_losses(Endpoint(server.url + path), linear, **groups)
    assert "dataframe_split" in server.posts[-1]
    assert_losses(Endpoint(server.url + path), linear)
    assert "inputs" in server.posts[-1]


# --- Templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "path", "write"),
    [
        ('{"data": {{rows}}, "k": 1}', "results.*.p", lambda p: {"results": [{"p": row} for row in p]}),
        ('{"data": "{{ rows }}"}', "a/b.0", lambda p: {"a/b": [p]}),
        ('{"data": {{records}}}', "", lambda p: p),
        ('{"x": {{row}}}', "out.0", lambda p: {"out": [p[0]]}),
        ('{"x": {{row}}}', "$.out", lambda p: {"out": p}),
        ("[{{record}}]", "out", lambda p: {"out": [{"label": "b", "probs": p[0]}]}),
    ],
)
def test_templates(serve, linear, request_, path, write):
    """A placeholder for rows, records or one of them, and a path to the outputs, reach any server."""

    def answer(_method, at, body):
        assert at == "/score/v7"
        value = body[0] if isinstance(body, list) else body.get("data", body.get("x"))
        value = value if isinstance(value, list) and not np.isscalar(value[0]) else [value]
        rows = [[row[name] for name in NAMES] if isinstance(row, dict) else row for row in value]
        return write(linear.probabilities(rows).tolist())

    server = serve(answer)
    endpoint = Endpoint(f"{server.url}/score/v7", protocol=Template(request_, path))
    assert_losses(endpoint, linear, **framed(linear))
    assert len(server.posts) == (60 if "{{row}}" in request_ or "{{record}}" in request_ else 2)


def test_a_path_that_leads_nowhere_says_what_is_there(serve):
    """The sentence names the missing step and the names at that place."""
    server = serve(lambda *_: {"result": {"scores": [1]}})
    endpoint = Endpoint(server.url, protocol=Template("{{rows}}", "result.probs"))
    with refused(r"without 'probs' of the path 'result\.probs' \(there is scores\) for member rows 0 to 1"):
        collected(endpoint, **both(([[1], [2]], [0, 1])))


# --- Servers as their documentation shows them ----------------------------------------------------


def grid(text):
    """The rows of a CSV."""
    return [list(map(float, line.split(","))) for line in text.decode().splitlines()]


def triton(linear):
    """Triton with an ONNX model of two outputs, which answers in JSON because the request is JSON."""
    tensors = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}]}
    tensors["outputs"] = [{"name": "label", "datatype": "INT64", "shape": [-1]}]
    tensors["outputs"] += [{"name": "probabilities", "datatype": "FP32", "shape": [-1, 3]}]
    metadata = {"name": "m", "versions": ["1"], "platform": "onnxruntime_onnx", **tensors}
    server = V2(linear, metadata=metadata, outputs=("label", "probabilities"))

    def answer(method, path, body):
        found = server(method, path, body)
        return found if method == "GET" else {**found, "model_version": "1"}

    return answer


def names_of(row):
    """An answer as AutoML writes it, the most likely class first."""
    order = np.argsort(-row)
    return {"classes": order.astype(str).tolist(), "scores": row[order].tolist()}


def vertex(p, model="4711"):
    """An answer of Vertex AI."""
    where = {"model": "projects/1/locations/eu/models/7", "modelDisplayName": "m", "modelVersionId": "1"}
    return {"predictions": [names_of(row) for row in p], "deployedModelId": model, **where}


def envelope(p):
    """An answer as objects of several outputs."""
    return {"predictions": [{"score": row.tolist(), "predicted_label": int(row.argmax())} for row in p]}


# By the name in the table of the documentation: address, options, the rows of a request, and the answer to them.
SERVERS = {
    "TorchServe": ("/predictions/m/1.0", {}, lambda body: [body], lambda p: p[0].tolist()),
    "TorchServe, JSON envelope": (
        "/predictions/m",
        {"protocol": Template('{"instances": {{rows}}}')},
        lambda body: body["instances"],
        lambda p: {"predictions": p.tolist()},
    ),
    "Vertex AI": (
        "/v1/projects/1/locations/eu/endpoints/2:predict",
        {},
        lambda body: body["instances"],
        vertex,
    ),
    "SageMaker containers": ("/invocations", {"protocol": "sagemaker"}, lambda body: body, np.ndarray.tolist),
    "SageMaker containers, CSV": (
        "/invocations",
        {"protocol": "sagemaker-csv", "output_name": "score"},
        grid,
        envelope,
    ),
    "BentoML": (
        "/classify",
        {"protocol": Template('{"input_series": {{rows}}}')},
        lambda body: body["input_series"],
        np.ndarray.tolist,
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_read_as_it_answers(serve, linear, name):
    """Requests and answers in the documented form of each server give the losses of the model."""
    path, options, rows, write = SERVERS[name]

    def answer(method, at, body):
        assert (method, at) == ("POST", path)
        return write(linear.probabilities(rows(body)))

    server = serve(answer)
    assert_losses(Endpoint(server.url + path, **options), linear)
    assert len(server.posts) == (60 if name == "TorchServe" else 2)
    media = "text/csv" if name.endswith("CSV") else "application/json"
    assert {headers["Content-Type"] for headers in server.headers} == {media}


def test_the_documentation_has_a_line_for_each_server():
    """The table names every server that is tested here."""
    page = Path(__file__).parents[3] / "docs" / "how-to" / "collect.md"
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    for name in SERVERS:
        assert any(line.startswith(f"| {name.partition(',')[0]} ") for line in lines)


def test_triton_needs_no_binary_data(serve, linear):
    """The output of probabilities is requested of an ONNX model of two, with the datatypes of the model, all in JSON."""
    server = serve(triton(linear))
    assert_losses(Endpoint(f"{server.url}/v2/models/m"), linear)
    tensor, requested = server.posts[0]["inputs"][0], server.posts[0]["outputs"]
    assert (tensor["name"], tensor["datatype"], requested) == ("X", "FP32", [{"name": "probabilities"}])
    assert not [name for headers in server.headers for name in headers if "Inference-Header" in name]


@pytest.mark.parametrize("kind", ["UINT8", "INT16", "UINT64", "FP16", "BF16", "FP64", "BOOL", "BYTES"])
def test_v2_knows_each_datatype_of_numbers(serve, kind):
    """Cells go as the kind of JSON value that the model's datatype has."""
    metadata = {"inputs": [{"name": "x", "datatype": kind, "shape": [-1, 1]}], "outputs": []}
    server = serve(lambda method, *_: outputs([0.5] * 2, [2, 1]) if method == "POST" else metadata)
    collected(Endpoint(f"{server.url}/v2/models/m"), **both((np.array([[0.0], [1.0]]), [0, 1])))
    tensor = server.posts[0]["inputs"][0]
    floats = {"BOOL": [False, True], "BYTES": ["0.0", "1.0"]}
    assert tensor == {"name": "x", "shape": [2, 1], "datatype": kind, "data": floats.get(kind, [0, 1])}


def test_an_endpoint_that_divides_its_traffic_is_refused(serve, linear):
    """Answers of two models of one Vertex AI endpoint are not one model's losses."""
    models = iter("ab")
    path = SERVERS["Vertex AI"][0]
    server = serve(lambda _m, _p, body: vertex(linear.probabilities(body["instances"]), next(models)))
    with refused(r"answered with several models \(a, b\) for nonmember rows 0 to 24, .*; direct all of its"):
        collected(Endpoint(server.url + path), **linear.groups)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("path", ["/v1/models/m", "/v1/models/m:predict"])
def test_tf_serving_takes_several_inputs_by_name(serve, linear, dims, path):
    """TF Serving's metadata say that rows are objects, and whether a cell is a number or a list of one."""
    sides = [{"size": "-1", "name": ""}, {"size": "1", "name": ""}][:dims]
    facts = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": sides, "unknown_rank": False}, "name": "x:0"}
    signature = {"signature_def": {"serving_default": {"inputs": dict.fromkeys(NAMES, facts), "outputs": {}}}}
    server = serve(v1(linear, WRITINGS["rows"], metadata={"signature_def": signature}))
    assert_losses(Endpoint(server.url + path), linear, **framed(linear))
    row = server.posts[0]["instances"][0]
    cells = linear.x[0].tolist()
    assert row == dict(zip(NAMES, cells if dims == 1 else [[cell] for cell in cells], strict=True))


def test_csv_stands_alone_and_holds_single_values(serve):
    """A placeholder for CSV within JSON, and images in CSV, are refused with the fix."""
    with refused(r"^request_template must be \{\{csv\}\} alone or JSON, got both; use \{\{rows\}\}"):
        Template('{"data": {{csv}}}')
    with refused(r"^X must have one value in each column .* got several; use \{\{rows\}\}"):
        endpoint = Endpoint(serve(lambda *_: []).url, protocol="sagemaker-csv")
        collected(endpoint, **both((np.zeros((2, 2, 2)), [0, 1])))


# --- Other tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "numbers", "expected"),
    [
        (SquaredError(), [1.5, -1.0], [0.25, 4.0]),
        (SquaredError(), [[1.5], [-1.0]], [0.25, 4.0]),
        (SquaredError(), [2, -1], [1.0, 4.0]),
        (GaussianLogLoss(2.0), [1.5, -1.0], np.array([0.25, 4.0]) / 8 + np.log(2) + np.log(2 * np.pi) / 2),
    ],
)
def test_regression(serve, task, numbers, expected):
    """Plain numbers, whole ones too, are predictions of a regression, and nothing but them is requested."""
    server = serve(lambda *_: outputs(numbers, list(np.shape(numbers))))
    group = (np.zeros((2, 3)), [1.0, 1.0])
    endpoint = Endpoint(f"{server.url}/v2/models/m", protocol=KServeV2())
    losses = collected(endpoint, **both(group), task=task)
    np.testing.assert_allclose(losses.member, expected, rtol=1e-12)
    assert all("outputs" not in body for body in server.posts)


def test_several_labels_and_logits(serve):
    """Columns of logits for several labels give the sum of their losses."""
    logits = np.array([[2.0, -1.0], [0.5, 3.0]])
    server = serve(lambda *_: {"predictions": logits.tolist()})
    endpoint = Endpoint(server.url, protocol=MLflow(), output=Output.LOGITS)
    group = (np.zeros((2, 3)), [[1, 0], [0, 1]])
    losses = collected(endpoint, **both(group), task=MultiLabel())
    np.testing.assert_allclose(losses.member, [-2.0 - 1.0, 0.5 - 3.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("write", "eps"),
    [
        (lambda values: [float(value) for value in values], "float32"),
        (lambda values: [float(f"{value:.9g}") for value in values], "float32"),
        (lambda values: [float(str(value)) for value in values], "float32"),
        (lambda values: [0.1, *(float(str(value)) for value in values[1:])], "float32"),
        (lambda values: [float(np.float64(value) * (1 + 1e-12)) for value in values], "float64"),
        (lambda values: [float(values[0]), float(values[1]) + 1e-12, float(values[2])], "float64"),
        (lambda _: [0.1, 0.35, 0.7], "float64"),
        (lambda _: [0.123456, 0.000123456, 0.99], "float64"),
    ],
)
def test_saturated_answers_are_placed_by_the_digits_of_the_others(serve, write, eps):
    """Where JSON does not say the type, the digits tell float32 from float64, and so where a probability of 1 belongs."""
    p = np.array([1 / 9, 0.7123456, 1 / 3], dtype=np.float32)
    server = serve(lambda *_: {"predictions": [*write(p), 1.0]})
    group = (np.zeros((4, 1)), [1, 1, 0, 1])
    losses = collected(Endpoint(server.url, protocol=MLflow()), **both(group))
    np.testing.assert_allclose(losses.member[3], np.log(np.finfo(eps).eps), rtol=1e-6)


# --- Missing values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "protocol", [KServeV1(), MLflow(), Template('{"rows": {{rows}}}')], ids=lambda item: type(item).__name__
)
@pytest.mark.parametrize("table", [True, False])
def test_missing_values_reach_the_model(serve, linear, protocol, table):
    """NaN of a table or an array goes as null, and the losses are those of the model that fills it in by itself."""

    def answer(_method, _path, body):
        rows = body.get("instances", body.get("inputs", body.get("rows")))
        rows = body["dataframe_split"]["data"] if rows is None else rows
        rows = [list(row.values()) if isinstance(row, dict) else row for row in rows]
        found = linear.probabilities(np.nan_to_num(np.array(rows, dtype=float))).tolist()
        return found if isinstance(protocol, Template) else {"predictions": found}

    x = linear.x.copy()
    x[[3, 40], [2, 0]] = np.nan
    filled = np.nan_to_num(x)
    parts = [slice(35), slice(35, None)]
    groups, truth = (
        [(pd.DataFrame(data[part], columns=NAMES) if table else data[part], linear.y[part]) for part in parts]
        for data in (x, filled)
    )
    endpoint = Endpoint(f"{serve(answer).url}/v1/models/m:predict", protocol=protocol)
    found = collected(endpoint, members=groups[0], nonmembers=groups[1])
    expected = collect(
        lambda features: linear.probabilities(np.asarray(features)), members=truth[0], nonmembers=truth[1]
    )
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-12)
    np.testing.assert_allclose(found.nonmember, expected.nonmember, rtol=1e-12)


def test_a_tensor_has_no_missing_values(serve, linear):
    """V2 alone refuses them in one sentence, and takes the values filled in as it advises."""
    endpoint = Endpoint(serve(V2(linear)).url, protocol="v2", model="m")
    x = linear.x[:35].copy()
    x[3, 2] = np.nan
    words = r"values than None of X for its input 'input-0' \(FP64\) for member rows 0 to 34, .*; fill in missing values"
    with refused(words):
        collected(endpoint, members=(x, linear.y[:35]), nonmembers=linear.groups["nonmembers"])
    x[3, 2] = linear.x[3, 2]
    assert_losses(endpoint, linear, members=(x, linear.y[:35]))
