"""One browser for all tests, and every page that they open."""

import os

import pytest
from browser.chrome import chromium
from browser.pages import KINDS, Pages
from report.conftest import hostile, not_evaluable, nothing, overfitted, refuted

__all__ = ["hostile", "not_evaluable", "nothing", "overfitted", "refuted"]


@pytest.fixture(scope="session")
def window(tmp_path_factory):
    """The browser's window."""
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="session")
def pages(tmp_path_factory, request):
    """Every page by its name."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # all processes share it
    folder = shared / "pages"
    folder.mkdir(exist_ok=True)
    return Pages(folder, request.getfixturevalue)


@pytest.fixture(scope="session", params=KINDS)
def page(request, pages):
    """Each kind of page in turn."""
    return pages.path(request.param)


@pytest.fixture(scope="session", params=[kind for kind in KINDS if kind not in {"card", "site"}])
def whole_page(request, pages):
    """Each kind of page of a result that is ours from its first line to its last."""
    return pages.path(request.param)
