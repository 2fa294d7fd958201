from auditor.collectors.served.endpoint import Endpoint
from auditor.collectors.served.payload import json_payload, json_text
from auditor.collectors.served.protocols import KServeV1, KServeV2, MLflow, Template
from auditor.collectors.served.transport import Connection, Request, Transport
