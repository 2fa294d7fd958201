from auditor.core.errors import ExitCode
from auditor.verdicts.gates import GateOutcome, check_gates, exit_code, found, judged, known_names, parse
from auditor.verdicts.judging import judge
