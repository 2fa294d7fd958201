"""A folder of results as one static site: an index, a page for each result, and the history of each model."""

import hashlib
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, NamedTuple

from auditor._version import __version__
from auditor.comparison.compare import compare_audits
from auditor.core.errors import InputError, OutputError
from auditor.core.files import sweep, unwritable, write_folder
from auditor.report import comparison
from auditor.report.decision import SIGNS
from auditor.report.html import render, rendered
from auditor.report.kinds import view_of
from auditor.report.view import View
from auditor.results.document import ALTERED, Document, made_at
from auditor.results.reading import KINDS, raw_result, result_of

_INDEX = "index.html"
_PAGE = re.compile(r"(index|comparison|[a-z0-9-]+-[0-9a-f]{16})\.html")
_OURS = "<!-- index of a site by auditor -->"  # as in its template
_STAMP = re.compile(r'href="([a-z0-9-]+\.html)" data-stamp="([0-9a-f]{64})"')  # as in its template
_LONGEST = 40  # letters of a model's name in that of its page
_FEW = 24  # pages that are drawn before other processes have started


class Site(NamedTuple):
    """A written site: the names of the pages, the index first, and a sentence for each skipped file."""

    pages: tuple[str, ...]
    skipped: tuple[str, ...]


def site(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    limited: Callable[[Document], Document] = lambda result: result,
    workers: int = 1,
) -> Site:
    """Write a folder of results as one static site, which needs no network and no server.

    A page of an earlier site stays if neither its result, its limits nor the version of auditor changed, nor the page itself.

    Args:
        folder: Folder with results (.json), also in its subfolders. Links that lead out of it are not followed.
        out: A new or empty folder, or an earlier site, which is replaced. The site is written whole or not at all.
        limited: Function that sets the limits of an audit of a model that has none of its own.
        workers: Number of processes that draw many pages. With more than one, a script that calls this function needs
            ``if __name__ == "__main__":``.

    Raises:
        InputError: There is no result in the folder.
        OutputError: The site cannot be written there, or other files are there.
    """
    earlier = _earlier(Path(out))
    entries: dict[str, dict[str, Any]] = {}
    skipped = []
    for path in _json_files(Path(folder)):
        try:
            entry = _entry(path, root=Path(folder), limited=limited)
        except InputError as error:
            skipped.append(str(error))
            continue
        if entry["page"] in entries:
            skipped.append(f"result file {str(path)!r} is the same as another one.")
        entries.setdefault(entry["page"], entry)
    if not entries:
        why = f"; of {len(skipped)} other files the first: {skipped[0]}" if skipped else "."
        raise InputError(f"folder {str(folder)!r} holds no result (.json){why}")
    newest = sorted(entries.values(), key=lambda item: (item["date"], item["page"]), reverse=True)
    texts, stamps = _drawn(_pages(newest), earlier, workers=workers)
    decisions = Counter(item["view"].decided for item in newest)
    counts = [(sign, decisions[decision]) for decision, sign in SIGNS.items() if decisions[decision]]
    index = rendered(
        "site.html.jinja",
        scripts=("sort.js", "filter.js"),
        results=[item["view"].result for item in newest],
        entries=newest,
        stamps=stamps,
        counts=counts,
    )
    if {_INDEX: index, **texts} != earlier:
        write_folder(Path(out), {_INDEX: index, **texts})
    return Site((_INDEX, *texts), tuple(skipped))


class _Page(NamedTuple):
    """A page of one result, or with a title the history of several.

    Attributes:
        results: What is drawn.
        hashes: The SHA-256 of the content of each.
        title: That of a history.
    """

    results: tuple[Any, ...]
    hashes: tuple[str, ...]
    title: str = ""

    @classmethod
    def of(cls, views: Sequence[View], title: str = "") -> "_Page":
        """Return the page of these results."""
        return cls(tuple(view.result for view in views), tuple(view.sha256 for view in views), title)

    def drawn(self) -> str | None:
        """Return the text of the page; None if the audits cannot be compared."""
        if not self.title:
            return render(self.results)
        try:
            return comparison.render(compare_audits(self.results), title=self.title)
        except InputError:
            return None

    def stamp(self, text: str) -> str:
        """Return a hash of the text, and of everything that it is drawn from."""
        return _hash("\n".join([__version__, self.title, *self.hashes, text]))


def _pages(newest: Sequence[Mapping[str, Any]]) -> dict[str, _Page]:
    """Return a page for each result, and one for each model with several audits; different models stay apart."""
    pages = {item["page"]: _Page.of([item["view"]]) for item in newest}
    audits = defaultdict[str, list[View]](list)
    for item in reversed(newest):  # the oldest first: of two it is the baseline
        audits[item["history"]].append(item["view"])
    audits.pop("", None)
    titles = {name: f"Audits of {ours[0].model}" for name, ours in audits.items() if ours[1:]}
    return pages | {name: _Page.of(audits[name], title) for name, title in titles.items()}


def _drawn(
    pages: Mapping[str, _Page], earlier: Mapping[str, str], *, workers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text and the stamp of each page: of an earlier site where its stamp still fits, or drawn again."""
    stamped = dict(_STAMP.findall(earlier.get(_INDEX, "")))
    texts: dict[str, str | None] = {
        name: earlier[name]
        for name, page in pages.items()
        if name in earlier and page.stamp(earlier[name]) == stamped.get(name)
    }
    missing = {name: page for name, page in pages.items() if name not in texts}
    if workers > 1 and len(missing) > _FEW:
        # New processes, and no copies of this one, whose threads may hold locks; where one is killed, this one draws the rest.
        with (
            suppress(BrokenProcessPool),
            ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
            ExitStack() as stack,
        ):
            if current_thread() is main_thread():  # new processes inherit it: Ctrl-C is for this one alone
                stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
            drawn = pool.map(_Page.drawn, missing.values())
            stack.close()
            texts |= zip(missing, drawn, strict=True)
    texts |= {name: page.drawn() for name, page in missing.items() if name not in texts}
    there = {name: text for name in pages if (text := texts[name]) is not None}
    return there, {name: pages[name].stamp(text) for name, text in there.items()}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _earlier(out: Path) -> dict[str, str]:
    """Return the pages of an earlier site; refuse a folder that holds anything else, or that cannot be made."""
    above = out.absolute().parent
    if not os.access(above, os.W_OK):
        raise OutputError(
            f"output path {str(out)!r} cannot be written: {str(above)!r} is not there or not writable; name another."
        )
    sweep(out)
    try:
        there = list(out.iterdir()) if out.exists() else []
        ours = all(_PAGE.fullmatch(path.name) and path.is_file() for path in there)
        pages = {path.name: path.read_bytes().decode("utf-8", "replace") for path in there if ours}
    except OSError as error:
        raise unwritable(out, error) from None
    if there and _OURS not in pages.get(_INDEX, ""):
        raise OutputError(
            f"output path {str(out)!r} holds other files than a site; name a new or an empty folder."
        )
    return pages


def _json_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"folder {str(folder)!r} does not exist; name one with results (.json).")
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(path for path in files if path.suffix.lower() == ".json")


def _entry(path: Path, *, root: Path, limited: Callable[[Document], Document]) -> dict[str, Any]:
    """Return the entry of a result in the index."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise InputError(f"result file {str(path)!r} is a link that leads out of the folder.")
    named, raw, content = raw_result(path)
    result = result_of(named, raw, content, kinds=KINDS)
    has_limits = result.kind is not None or result.data.get("policy") or result.data.get("gates")
    view = view_of(result if has_limits else limited(result))
    made = made_at(view.result.provenance)
    date = made.strftime("%Y-%m-%d %H:%M") if made else ""
    has_history = view.is_named and view.result.kind is None
    words = re.sub(r"[^a-z0-9]+", "-", f"{view.model[:_LONGEST].lower()} {date[:10]}").strip("-")
    return {
        "view": view,
        "date": date,
        "page": f"{words or 'result'}-{hashlib.sha256(content).hexdigest()[:16]}.html",
        "history": f"history-{_hash(view.model)[:16]}.html" if has_history else "",
        "mark": next((item.message for item in view.result.checks if item.name == ALTERED), ""),
    }
