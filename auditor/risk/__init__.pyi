from auditor.risk.ranking import COLUMN, NOTE, estimate, most_exposed, rank_records
from auditor.risk.slices import bands, slices_of
