from auditor.core.errors import ExitCode as ExitCode
from auditor.core.facts import Decision
from auditor.core.options import PrivacyUnit as PrivacyUnit
from auditor.verdicts.gates import (
    Gate as Gate,
    GateOutcome as GateOutcome,
    check_gates,
    judged,
    known_names,
    named_number,
    parse,
)
from auditor.verdicts.judging import compare, judge as judge
from auditor.verdicts.limits import decision, exit_code, outcomes, parse_policy, with_limits
from auditor.verdicts.severities import least_advantage, severity
