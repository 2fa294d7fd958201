from auditor.verdicts.gates import (
    ExitCode,
    GateOutcome,
    check_gates,
    exit_code,
    found,
    judged,
    known_names,
    parse,
)
from auditor.verdicts.judging import judge
