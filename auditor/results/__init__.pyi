from auditor.core.options import Disclosure as Disclosure
from auditor.core.values import (
    Check as Check,
    Claim as Claim,
    Comparison as Comparison,
    Status as Status,
    Subject as Subject,
)
from auditor.results.disclosure import shared
from auditor.results.document import (
    SCHEMA_VERSION,
    AuditResult,
    Slice as Slice,
    SliceKind,
    TopRecord as TopRecord,
    find,
    input_hash,
)
from auditor.results.metrics import METRICS, describe
from auditor.results.reading import json_value, read_result, schema
