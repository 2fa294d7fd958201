from auditor.cli.app import main, run
from auditor.cli.console import hand_out
from auditor.cli.project import run_demo
from auditor.cli.sentences import with_options
