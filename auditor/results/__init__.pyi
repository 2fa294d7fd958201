from auditor.results.disclosure import as_shared, shared
from auditor.results.document import (
    SCHEMA_VERSION,
    AuditDocument,
    Histogram,
    NamedCurve,
    Slice,
    SliceKind,
    TopRecord,
    find,
    input_hash,
)
from auditor.results.metrics import METRICS, STATUS, VERDICT, advice, describe
from auditor.results.partition import Partition
from auditor.results.reading import json_value, read_result, schema
from auditor.results.rows import Row, at_least, fit_sentences, out_of_many
from auditor.results.views import (
    ATTACKS,
    InstanceRates,
    claimed_line,
    fitted,
    histograms,
    measured,
    on_common_grid,
    rank_curves,
)
