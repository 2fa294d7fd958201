from auditor.risk.ranking import (
    COLUMN,
    NOTE,
    Ranking as Ranking,
    estimate,
    extractable as extractable,
    most_exposed,
    rank_records,
)
from auditor.risk.slices import bands, no_separation, policies_of, slices_of, stands_out
