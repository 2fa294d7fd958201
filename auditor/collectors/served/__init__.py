"""Models that are served over HTTP, whatever protocol they speak."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "endpoint": "Endpoint",
        "payload": "json_payload json_text",
        "protocols": "KServeV1 KServeV2 MLflow Template",
        "transport": "Connection Request Transport printable",
    },
)
