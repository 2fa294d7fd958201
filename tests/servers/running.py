"""Start and stop real model servers, each from its own environment, on a free port of loopback.

``AUDITOR_SERVER_MLSERVER``, ``AUDITOR_SERVER_KSERVE`` and ``AUDITOR_SERVER_MLFLOW`` name the folder of an environment's
programs (``/path/to/venv/bin``). A test of a server that is not named is skipped, unless ``AUDITOR_REQUIRE_SERVERS``
(names, comma-separated) says that it must be there.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PATIENCE = 120  # seconds until a server must be ready: the first import of MLflow is slow on a busy machine
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "OMP_NUM_THREADS": "1"}


def programs(kind):
    """The folder of that server's programs; without it the test is skipped, or fails where it is required."""
    folder = os.environ.get(f"AUDITOR_SERVER_{kind.upper()}")
    if folder:
        return Path(folder)
    if kind in os.environ.get("AUDITOR_REQUIRE_SERVERS", "").split(","):
        pytest.fail(f"the server {kind} is required here: set AUDITOR_SERVER_{kind.upper()}")
    pytest.skip(f"needs the server {kind}: set AUDITOR_SERVER_{kind.upper()} to its environment's bin folder")


def trained(kind, folder):
    """Train and save the model in the server's environment; return its coefficients."""
    command = [programs(kind) / "python", HERE / "train.py", kind, folder]
    done = subprocess.run(
        command, env=_environment(kind), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "coefficients.json").read_text(encoding="utf-8"))


@contextlib.contextmanager
def running(kind, folder, *, model=""):
    """Run the server on what was trained into the folder; yield its address once it answers.

    Args:
        kind: ``mlserver``, ``kserve`` or ``mlflow``.
        folder: Where `trained` wrote.
        model: Which of the models an MLflow server should serve; the others serve all of theirs.
    """
    port, command, ready = _COMMANDS[kind](folder, model)
    with (folder / f"{kind}{model}.log").open("wb+") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(kind), stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait(f"http://127.0.0.1:{port}{ready}", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def _mlserver(folder, model):  # noqa: ARG001 - as the others
    ports = _free_ports(2)
    settings = {"host": "127.0.0.1", "http_port": ports[0], "grpc_port": ports[1], "debug": False}
    settings |= {"metrics_endpoint": None, "parallel_workers": 0}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return ports[0], [programs("mlserver") / "mlserver", "start", folder], "/v2/health/ready"


def _kserve(folder, model):  # noqa: ARG001 - as the others
    (port,) = _free_ports(1)
    command = [programs("kserve") / "python", HERE / "kserve_models.py", folder, f"--http_port={port}"]
    return port, command, "/v1/models/probabilities"


def _mlflow(folder, model):
    (port,) = _free_ports(1)
    command = [programs("mlflow") / "mlflow", "models", "serve", "--model-uri", folder / model]
    return port, [*command, "--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)], "/ping"


_COMMANDS = {"mlserver": _mlserver, "kserve": _kserve, "mlflow": _mlflow}


def _environment(kind):
    """This environment, with the server's programs found first (MLflow starts uvicorn by name) and without credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AUDITOR_", "PYTHON"))}
    return {**kept, **QUIET, "PATH": os.pathsep.join([str(programs(kind)), os.environ.get("PATH", "")])}


def _free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _wait(address, process, log):
    """Return once the address answers 200; show the log of a server that died or took too long."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=2):  # noqa: S310 - a loopback address
                return
        except OSError:
            time.sleep(0.2)
    log.seek(0)
    pytest.fail(f"the server did not get ready: {log.read().decode(errors='replace')[-3000:]}")


def _stop(process):
    """End the server politely, then whatever it started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
