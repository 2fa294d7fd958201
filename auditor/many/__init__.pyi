from auditor.many.assumed_attacks import (
    GaussianAttack as GaussianAttack,
    PerfectAttack as PerfectAttack,
    RandomisedResponse as RandomisedResponse,
)
from auditor.many.batches import fingerprint
from auditor.many.instances import audit_instances
from auditor.many.label_audit import audit_labels, draw_labels, label_guesses, label_odds
from auditor.many.planned_audits import ModelAudit, OneRunAudit, RunsAudit, SequentialAudit
from auditor.many.planning import Plan as Plan, records_needed
from auditor.many.runs import audit_runs
from auditor.many.training_runs import Progress as Progress, Reporter
from auditor.many.whole_curve import FixedNumber, Sequential
