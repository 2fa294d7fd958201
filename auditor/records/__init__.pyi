from auditor.records.features import Features, encoded, fingerprints, pooled, ranks_of, table_of
from auditor.records.labels import (
    MIXED,
    claim_reason,
    codes,
    default_units,
    effective_numbers,
    mechanism_reason,
    per_person as per_person,
    per_record,
    text,
)
