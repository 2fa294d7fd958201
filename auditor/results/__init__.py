"""Plain data: what an audit found, its JSON and schema, and what every number in it is called."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "document": (
            "AuditDocument Histogram NamedCurve SCHEMA_VERSION Slice SliceKind TopRecord find input_hash"
        ),
        "metrics": "METRICS STATUS VERDICT advice describe offered",
        "reading": "json_value read_result result_schema runs_schema",
        "rows": "Row at_least fit_sentences out_of_many",
        "views": "ATTACKS InstanceRates curves histograms on_common_grid rank_curves",
    },
)
