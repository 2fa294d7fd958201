from auditor.comparison.changes import (
    Change as Change,
    Difference as Difference,
    differences as differences,
    headline,
)
from auditor.comparison.compare import AuditsComparison as AuditsComparison, compare_audits as compare_audits
from auditor.comparison.paired import (
    SameRecords,
    attack_change,
    mcnemar_interval,
    most_draws,
    same_records,
)
from auditor.comparison.runs import COMPARED, find_run, leakage, measured, read_runs, with_table
from auditor.comparison.strategies import (
    MIXED,
    is_on_frontier,
    ranked,
    why_not_ranked,
)
