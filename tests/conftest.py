"""Shared fixtures and the switch for long simulations."""

import importlib
import os
import warnings

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow tells of every processor that it finds
# The other cores have tests of their own. Read by the libraries of linear algebra when they are imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What each optional extra must bring, by the names of its modules.
EXTRAS = {
    "torch": ("torch", "opacus"),
    "tensorflow": ("tensorflow", "tensorflow_privacy"),
    "onnx": ("onnxruntime", "skl2onnx"),
    "http": ("httpx",),
    "ray": ("ray",),
    "remote": ("fsspec", "s3fs", "aiohttp"),
    "language": ("torch", "transformers"),
    "notebooks": ("jupytext", "nbclient", "ipykernel"),
}


def pytest_addoption(parser):
    """Add ``--long``: simulations at full size."""
    parser.addoption("--long", action="store_true", default=False, help="run simulations at full size")


def pytest_collection_modifyitems(config, items):
    """Skip what is marked long unless asked for."""
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="full-size simulation; run with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


@pytest.fixture
def rng():
    """A fresh generator with a fixed seed."""
    import numpy as np

    return np.random.default_rng(20261121)


@pytest.fixture
def table(tmp_path, rng):
    """A table of losses with a clear leak, in a folder with a space and an umlaut."""
    from command_line import leaking

    folder = tmp_path / "Daten für uns"
    folder.mkdir()
    return leaking(folder / "losses.csv", rng)


@pytest.fixture(scope="session")
def require_extra():
    """Skip where an extra is missing, but fail where AUDITOR_REQUIRE_EXTRAS (names, comma-separated) says it is there."""

    def require(name):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what an extra warns of at its import is not ours
                for module in EXTRAS[name]:
                    importlib.import_module(module)
        except ImportError as error:
            if name in os.environ.get("AUDITOR_REQUIRE_EXTRAS", "").split(","):
                pytest.fail(f"the extra {name} is required here and cannot be imported: {error}")
            pytest.skip(f"needs the extra {name}: {error}")

    return require
