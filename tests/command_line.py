"""The command line in a test: run it here, read its JSON, or the one sentence by which it refuses; and another process."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd

from auditor.cli import app


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return app.run([str(argument) for argument in arguments])


def answer(capsys, *arguments, code=0):
    """The JSON that a command prints on standard output."""
    capsys.readouterr()
    assert run(*arguments, "--json", "-") == code
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    """The one sentence on standard error of a command that ends with exit code 2 and prints nothing else."""
    capsys.readouterr()
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def printed(code, *arguments, **environment):
    """The output of a Python program in a process of its own, which sees these variables."""
    line = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    given = {"capture_output": True, "text": True, "timeout": 600, "env": {**os.environ, **environment}}
    return subprocess.run(line, check=True, **given).stdout.strip()


def leaking(path, rng, *, member=600, nonmember=500):
    """Write a table of losses with ids and a clear leak; return its path."""
    side = np.repeat([1, 0], [member, nonmember])
    loss = rng.normal(0, 1, side.size) - 3 * side
    pd.DataFrame({"loss": loss, "member": side, "id": np.arange(side.size)}).to_csv(path, index=False)
    return path
