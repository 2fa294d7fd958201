"""A folder of results as one static site: an index, a page for each result, and the history of each model."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auditor.comparison.compare import compare_audits
from auditor.core.errors import InputError, OutputError
from auditor.core.files import sweep, unwritable, write_folder
from auditor.report import comparison
from auditor.report.decision import SIGNS
from auditor.report.html import render, rendered
from auditor.report.kinds import view_of
from auditor.results.document import ALTERED, Document, made_at
from auditor.results.reading import KINDS, raw_result, read_result

_INDEX = "index.html"
_PAGE = re.compile(r"(index|comparison|[a-z0-9-]+-[0-9a-f]{16})\.html")
_OURS = "<!-- index of a site by auditor -->"  # as in its template
_LONGEST = 40  # letters of a model's name in that of its page


class Site(NamedTuple):
    """A written site: the names of the pages, the index first, and a sentence for each skipped file."""

    pages: tuple[str, ...]
    skipped: tuple[str, ...]


def site(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    limited: Callable[[Document], Document] = lambda result: result,
) -> Site:
    """Write a folder of results as one static site, which needs no network and no server.

    Args:
        folder: Folder with results (.json), also in its subfolders. Links that lead out of it are not followed.
        out: A new or empty folder, or an earlier site, which is replaced. The site is written whole or not at all.
        limited: Function that sets the limits of an audit of a model that has none of its own.

    Raises:
        InputError: There is no result in the folder.
        OutputError: The site cannot be written there, or other files are there.
    """
    _check_free(Path(out))
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
    texts = {item["page"]: render([item["view"].result]) for item in newest}
    texts |= _histories(newest)
    decisions = Counter(item["view"].decided for item in newest)
    counts = [(sign, decisions[decision]) for decision, sign in SIGNS.items() if decisions[decision]]
    index = rendered(
        "site.html.jinja",
        scripts=("sort.js", "filter.js"),
        results=[item["view"].result for item in newest],
        entries=newest,
        counts=counts,
    )
    write_folder(Path(out), {_INDEX: index, **texts})
    return Site((_INDEX, *texts), tuple(skipped))


def _histories(newest: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return a page for each model with several audits, and link its entries to it; different models stay apart."""
    pages = {}
    for model in dict.fromkeys(item["view"].model for item in newest):
        ours = [
            item
            for item in reversed(newest)  # the oldest first: of two it is the baseline
            if item["view"].model == model and item["view"].is_named and item["view"].result.kind is None
        ]
        if not ours[1:]:
            continue
        try:
            page = comparison.render(
                compare_audits([item["view"].result for item in ours]), title=f"Audits of {model}"
            )
        except InputError:  # audits that cannot be compared
            continue
        name = f"history-{hashlib.sha256(model.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}.html"
        pages[name] = page
        for item in ours:
            item["history"] = name
    return pages


def _check_free(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier site, or that cannot be made."""
    above = out.absolute().parent
    if not os.access(above, os.W_OK):
        raise OutputError(
            f"output path {str(out)!r} cannot be written: {str(above)!r} is not there or not writable; name another."
        )
    sweep(out)
    try:
        there = list(out.iterdir()) if out.exists() else []
        ours = all(_PAGE.fullmatch(path.name) and path.is_file() for path in there)
        ours = not there or (ours and _OURS in (out / _INDEX).read_text("utf-8", "replace"))
    except OSError as error:
        raise unwritable(out, error) from None
    if not ours:
        raise OutputError(
            f"output path {str(out)!r} holds other files than a site; name a new or an empty folder."
        )


def _json_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"folder {str(folder)!r} does not exist; name one with results (.json).")
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(path for path in files if path.suffix.lower() == ".json")


def _entry(path: Path, *, root: Path, limited: Callable[[Document], Document]) -> dict[str, Any]:
    """Return the entry of a result in the index."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise InputError(f"result file {str(path)!r} is a link that leads out of the folder.")
    _, _, content = raw_result(path)
    result = read_result(path, kinds=KINDS)
    has_limits = result.kind is not None or result.data.get("policy") or result.data.get("gates")
    view = view_of(result if has_limits else limited(result))
    made = made_at(view.result.provenance)
    date = made.strftime("%Y-%m-%d %H:%M") if made else ""
    words = re.sub(r"[^a-z0-9]+", "-", f"{view.model[:_LONGEST].lower()} {date[:10]}").strip("-")
    return {
        "view": view,
        "date": date,
        "page": f"{words or 'result'}-{hashlib.sha256(content).hexdigest()[:16]}.html",
        "history": "",
        "mark": next((item.message for item in view.result.checks if item.name == ALTERED), ""),
    }
