from auditor.many.instances import (
    audit_instances,
    bootstrap_lower,
    certified,
    instance_values,
    log_mean_exp,
    point,
)
from auditor.many.label_audit import audit_labels, draw_labels, label_guesses, label_odds
from auditor.many.planned_audits import (
    GaussianAttack as GaussianAttack,
    ModelAudit,
    OneRunAudit,
    PerfectAttack as PerfectAttack,
    RandomisedResponse as RandomisedResponse,
    RunsAudit,
    SequentialAudit,
)
from auditor.many.planning import Plan as Plan, records_needed
from auditor.many.run_cases import Progress as Progress, Reporter, fingerprint, number_of_workers
from auditor.many.runs import audit_runs, credible_lower, log_posterior_below
from auditor.many.whole_curve import FixedNumber, Sequential
