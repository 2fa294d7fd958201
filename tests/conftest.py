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


# All tests run in one environment, by the README's test command. Where else a file runs is said here, and nowhere else for
# the others: pages, words, simulations and arithmetic are the same on every Python and with the same numpy and scipy.
# On the newest Python with the newest numpy, scipy, pandas, pyarrow and scikit-learn, and in the workflow with the oldest of
# each: data in and out, and an audit of each kind.
NEWEST = (
    *("collectors/sources/", "collectors/streaming/test_collect_to.py"),
    *("collectors/streaming/test_parts.py", "collectors/streaming/test_metadata.py"),
    *("collectors/streaming/test_summaries.py", "collectors/test_", "fitters/", "checks/", "scores/"),
    *("estimators/test_clopper_pearson.py", "estimators/test_curve_numbers.py", "theory/test_gaussian.py"),
    *(
        "theory/test_total_variation.py",
        "training/test_step_audit.py",
        "report/test_figures.py",
        "runs/test_audit_runs.py",
    ),
    *("runs/test_collecting.py", "runs/test_engine.py", "runs/test_fingerprint.py", "test_api.py"),
    *("test_cli.py", "test_cli_collect.py", "test_cli_help.py", "test_cli_more.py", "test_exposed.py"),
    *("test_features.py", "test_fingerprints.py", "test_first_steps.py", "test_gates.py", "test_imports.py"),
    *("test_instances.py", "test_label_audit.py", "test_persons.py", "test_pipeline.py", "test_ranking.py"),
    *("test_schema.py", "test_tradeoff.py", "test_transforms.py"),
    *("test_values.py", "test_views.py", "test_ways_to_run.py"),
)
# Beside the extras, which need an older numpy: what they bring, and the numbers. A file that needs an extra is added.
BESIDE_EXTRAS = (
    *("collectors/texts/", "collectors/streaming/test_collect_to.py"),
    *("collectors/test_", "sensitivity/", "notebooks/", "safety/test_model_", "fitters/", "scores/"),
    *("theory/test_accountant.py", "theory/test_closed_form.py", "theory/test_composition.py"),
    *("theory/test_gaussian.py", "theory/test_gdp.py", "training/"),
    *("theory/test_profile.py", "theory/test_rates.py", "theory/test_stated"),
    *("theory/test_total_variation.py", "estimators/test_clopper_pearson.py"),
    *("estimators/test_curve_numbers.py", "estimators/test_epsilon_star.py", "estimators/test_gdp.py"),
    *("estimators/test_guesses.py", "estimators/test_one_run.py", "test_accountants_in.py", "test_api.py"),
    *("test_cli.py", "test_cli_collect.py", "test_imports.py"),
    *("test_pipeline.py", "test_transforms.py"),
)


def elsewhere(path, root):
    """Return the marks that a file's tests have, by where else than in the first environment they run."""
    place = path.relative_to(root / "tests").as_posix()
    newest = place.startswith(NEWEST)
    text = path.read_text(encoding="utf-8")
    extras = place.startswith(BESIDE_EXTRAS) or "require_extra" in text or "importorskip" in text
    marks = {"once": not newest and not extras, "one_python": not newest, "one_numpy": not extras}
    return {mark for mark, there in marks.items() if there}


def pytest_ignore_collect(collection_path, config):
    """Read no file of which all tests are deselected by a mark of its own."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    marks = elsewhere(collection_path, config.rootpath)
    return True if any(f"not {mark}" in config.option.markexpr for mark in marks) else None


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
    marks = {path: elsewhere(path, config.rootpath) for path in {item.path for item in items}}
    for item in items:
        for mark in marks[item.path]:
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
