from auditor.core.errors import ExitCode as ExitCode
from auditor.core.options import PrivacyUnit as PrivacyUnit
from auditor.verdicts.gates import (
    Gate as Gate,
    GateOutcome as GateOutcome,
    check_gates,
    exit_code,
    found,
    judged,
    known_names,
    parse,
)
from auditor.verdicts.judging import judge as judge
