"""Train a small scikit-learn model and save it as one server wants it: ``python train.py KIND FOLDER``.

It runs in the server's own environment, whose scikit-learn may be another than that of the tests, so the coefficients
are written as JSON beside the model: every digit of them, from which the tests rebuild the same model.
"""

import json
import sys
from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression


def for_mlserver(model, folder):
    """Two models: one that says what it takes, and one that says nothing, as most do."""
    import joblib

    inputs = {"name": "features", "datatype": "FP64", "shape": [-1, 4]}
    outputs = {"name": "predict_proba", "datatype": "FP64", "shape": [-1, 3]}
    for name, described in (("described", {"inputs": [inputs], "outputs": [outputs]}), ("bare", {})):
        place = folder / name
        place.mkdir()
        joblib.dump(model, place / "model.joblib")
        parameters = {"uri": "./model.joblib"}
        settings = {"name": name, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": parameters}
        (place / "model-settings.json").write_text(json.dumps({**settings, **described}), encoding="utf-8")


def for_kserve(model, folder):
    """One file, which ``kserve_models.py`` serves under two names."""
    import joblib

    joblib.dump(model, folder / "model.joblib")


def for_mlflow(model, folder):
    """Two models: one that returns probabilities, and one as MLflow saves it if nothing is said: with hard labels."""
    import mlflow.sklearn

    for name, function in (("probabilities", "predict_proba"), ("labels", "predict")):
        options = {"serialization_format": "skops", "skops_trusted_types": [], "pyfunc_predict_fn": function}
        mlflow.sklearn.save_model(model, folder / name, pip_requirements=["scikit-learn"], **options)


def main(kind, folder):
    """Train, write the coefficients, and save for that kind of server."""
    features, labels = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(features[::2], labels[::2])
    coefficients = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist()}
    (folder / "coefficients.json").write_text(json.dumps(coefficients), encoding="utf-8")
    {"mlserver": for_mlserver, "kserve": for_kserve, "mlflow": for_mlflow}[kind](model, folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
