from auditor.results.disclosure import as_shared, shared
from auditor.results.document import (
    SCHEMA_VERSION,
    AuditResult,
    Slice,
    SliceKind,
    TopRecord,
    find,
    input_hash,
)
from auditor.results.metrics import METRICS, describe
from auditor.results.reading import json_value, read_result, schema
