"""Who a record is: labels, persons, features and their fingerprints."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "features": "Features fingerprints pooled ranks_of table_of",
        "labels": "MIXED claim_reason codes effective_numbers mechanism_reason per_person text",
    },
)
