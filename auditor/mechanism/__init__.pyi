from auditor.mechanism.instances import (
    audit_instances,
    bootstrap_lower,
    certified,
    instance_values,
    log_mean_exp,
    point,
)
from auditor.mechanism.label_audit import audit_labels, draw_labels, label_guesses, label_odds
from auditor.mechanism.planned_audits import (
    GaussianAttack,
    ModelAudit,
    OneRunAudit,
    PerfectAttack,
    RandomisedResponse,
    RunsAudit,
    SequentialAudit,
)
from auditor.mechanism.planning import Plan, records_needed
from auditor.mechanism.run_cases import Progress, Reporter, fingerprint, number_of_workers
from auditor.mechanism.runs import audit_runs, credible_lower, log_posterior_below
from auditor.mechanism.whole_curve import FixedNumber, Sequential
