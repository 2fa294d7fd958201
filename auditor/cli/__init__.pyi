from auditor.cli.app import main, run
from auditor.cli.console import hand_out
from auditor.cli.demo import run_demo
