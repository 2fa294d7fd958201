"""The pages whose code needs more than the core do what they say, in the environments that have it."""

import pytest
import test_docs
from collectors.server import Server
from collectors.texts import completions_server

PAGES = [name for name, text in test_docs.PAGES.items() if test_docs.needs(text)]


def answered(_method, path, request):
    """A completions server with one model: its list of models, or log-probabilities."""
    return {"data": [{"id": "tiny"}]} if path == "/v1/models" else completions_server.answered(request)


@pytest.mark.filterwarnings("ignore")  # what an extra warns of is not ours
@pytest.mark.parametrize("name", PAGES)
def test_the_recipe_runs(name, tmp_path, monkeypatch, capsys):
    """Each page whose extras are installed runs in order; a server that it names is here on loopback."""
    for module in test_docs.needs(test_docs.PAGES[name]):
        pytest.importorskip(module)
    if "localhost:8000" in test_docs.PAGES[name]:
        pytest.importorskip("transformers")
        server = Server(answered)
        page = test_docs.PAGES[name].replace("http://localhost:8000", server.url)
        monkeypatch.setitem(test_docs.PAGES, name, page)
    test_docs.run(name, tmp_path, monkeypatch, capsys)
