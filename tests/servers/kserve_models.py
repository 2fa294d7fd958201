"""Serve ``model.joblib`` with KServe on loopback, as probabilities and as labels: ``python kserve_models.py FOLDER --http_port N``."""

import sys
from pathlib import Path

import joblib
import kserve
import numpy as np
import uvicorn


class Served(kserve.Model):
    """A scikit-learn model behind ``:predict``, answered by one of its methods."""

    def __init__(self, name, model, method):
        super().__init__(name)
        self.answer = getattr(model, method)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):  # noqa: ARG002 - KServe's signature
        """Answer the instances in order."""
        return {"predictions": self.answer(np.asarray(payload["instances"])).tolist()}


class Loopback(uvicorn.Config):
    """KServe listens on every interface and has no setting for it."""

    def __init__(self, app, **options):
        super().__init__(app, **{**options, "host": "127.0.0.1"})


if __name__ == "__main__":
    loaded = joblib.load(Path(sys.argv[1]) / "model.joblib")
    uvicorn.Config = Loopback
    server = kserve.ModelServer(workers=1, enable_grpc=False)
    server.start([Served("probabilities", loaded, "predict_proba"), Served("labels", loaded, "predict")])
