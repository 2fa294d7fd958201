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


# What is the same on every Python and with the same numpy and scipy: pages, simulations, timings and arithmetic. It runs in
# one environment, by the README's test command; in the others CI leaves it out (-m "not once").
ONCE = (
    *(
        "statistical/",
        "benchmarks/test_speed.py",
        "benchmarks/test_theory_speed.py",
        "browser/",
        "report/",
        "audits/",
    ),
    "fuzz/test_fuzz.py",
    *(
        "safety/test_drawings.py",
        "safety/test_edited_results.py",
        "safety/test_errors.py",
        "safety/test_handed_out.py",
    ),
    *(
        "safety/test_losses.py",
        "safety/test_nothing_lost.py",
        "safety/test_outputs.py",
        "safety/test_report_attack.py",
    ),
    *(
        "safety/test_sizes.py",
        "test_calibration.py",
        "test_cli_folder.py",
        "test_cli_report.py",
        "test_cli_terminal.py",
    ),
    *("test_docs.py", "test_pipeline_example.py", "test_planning.py", "test_reading.py"),
)
# What no other Python changes, but another numpy or scipy might: it runs beside the extras too.
ONE_PYTHON = (
    *(
        "papers/",
        "notebooks/",
        "benchmarks/",
        "theory/",
        "estimators/",
        "fitters/",
        "checks/",
        "scores/",
        "fuzz/",
        "safety/",
    ),
    *("runs/test_opacus_bugs.py", "runs/test_audit_runs.py", "runs/test_bayesian.py"),
    *("test_label_audit.py", "test_policies.py"),
)
# What the core alone shows on newer versions of both: the longest arithmetic, help and settings.
ONE_NUMPY = (
    *(
        "theory/test_vectors.py",
        "theory/test_privacy_loss.py",
        "theory/test_renyi.py",
        "theory/test_fixed_size.py",
    ),
    *("estimators/test_gaussian_supremum.py", "estimators/test_mixture_supremum.py"),
    *(
        "estimators/test_mixture_epsilon_star.py",
        "estimators/test_joint_test.py",
        "estimators/test_exact_test.py",
    ),
    *("estimators/test_betting.py", "papers/test_epsilon_star.py", "papers/test_membership_bounds.py"),
    *(
        "test_cli_help.py",
        "test_cli_config.py",
        "test_cli_verify.py",
        "test_cli_compare.py",
        "test_cli_more.py",
    ),
)


# Where drawings are looked at. Elsewhere those of a page are empty: drawing takes nearly all of the time of a page.
DRAWN = (
    *("browser/", "benchmarks/", "notebooks/", "test_docs.py", "test_views.py"),
    *("report/test_figures", "report/test_html.py", "report/test_beyond", "report/test_training_pages.py"),
    *("audits/test_landscape.py", "audits/test_page.py"),
    *("safety/test_drawings.py", "safety/test_outputs.py", "safety/test_report_attack.py"),
)


def pytest_addoption(parser):
    """Add ``--long``: simulations at full size."""
    parser.addoption("--long", action="store_true", default=False, help="run simulations at full size")


def pytest_collection_modifyitems(config, items):
    """Mark where tests run, and skip what is marked long unless it is wanted."""
    for item in items:
        place = item.path.relative_to(config.rootpath / "tests").as_posix()
        for mark, places in (("once", ONCE), ("one_python", ONE_PYTHON), ("one_numpy", ONE_NUMPY)):
            if place.startswith(places):
                item.add_marker(getattr(pytest.mark, mark))
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="full-size simulation; run with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def drawings(request, monkeypatch):
    """Leave the drawings of pages empty but in the places where they are looked at."""
    if not request.path.relative_to(request.config.rootpath / "tests").as_posix().startswith(DRAWN):
        from markupsafe import escape

        from auditor.report.figures import canvas

        monkeypatch.setattr(canvas, "svg", lambda _, *, alt, **__: f"<svg><title>{escape(alt)}</title></svg>")


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
