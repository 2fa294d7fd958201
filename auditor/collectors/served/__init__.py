"""Family: models that are served over HTTP, whatever protocol they speak."""

from auditor.collectors.served.connection import Connection
from auditor.collectors.served.endpoint import PROTOCOLS, Endpoint
from auditor.collectors.served.mlflow import MLflow
from auditor.collectors.served.template import Template
from auditor.collectors.served.v1 import KServeV1
from auditor.collectors.served.v2 import KServeV2

__all__ = ["PROTOCOLS", "Connection", "Endpoint", "KServeV1", "KServeV2", "MLflow", "Template"]
