"""A page fits: a desk, a phone, a reader who enlarges it, and paper."""

import io
import re
import unicodedata
from dataclasses import replace

import pytest

from auditor.report import html

pytestmark = pytest.mark.browser

# Elements that stick out of the window on the right, unless an ancestor lets the reader scroll to them or shows by an
# ellipsis that a name goes on.
_OUTSIDE = """
const most = document.documentElement.clientWidth + 1;
const scrolls = e => { for (e = e.parentElement; e; e = e.parentElement) { const s = getComputedStyle(e);
  if (['auto', 'scroll'].includes(s.overflowX) || s.textOverflow === 'ellipsis') return true } return false };
const bad = [...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && box.right > most && !scrolls(e) && !e.closest('.skip, .hidden') && !e.closest('svg svg');
});
return [document.documentElement.scrollWidth, document.body.scrollWidth,
        bad.slice(0, 5).map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect().right])];
"""


def test_narrow(window, page):
    """On a phone nothing makes the page scroll sideways; 320 pixels are also a window of 1280 at 400%."""
    window.show(page, width=320)
    for width in (320, 375, 700):
        window.resize(width)
        whole, body, outside = window.run(_OUTSIDE)
        assert outside == [], width
        assert max(whole, body) <= width


# The size at which the letters of a figure are seen.
_LETTERS = """
return [...document.querySelectorAll('main svg text')].filter(e => e.textContent.trim()).map(e => {
  const m = e.getScreenCTM();
  return [parseFloat(getComputedStyle(e).fontSize) * Math.hypot(m.a, m.b), e.textContent.slice(0, 30)];
});
"""


def test_letters(window, page):
    """The letters in every figure are large enough to read, on a desk and on a phone."""
    window.show(page)
    for width, least in ((1200, 9.0), (375, 6.9)):
        window.resize(width)
        assert [item for item in window.run(_LETTERS) if item[0] < least] == [], width


_LAST_ROW = """
const boxes = [...document.querySelectorAll('.tiles div')].map(e => e.getBoundingClientRect());
const whole = document.querySelector('.tiles').getBoundingClientRect().right, last = Math.max(...boxes.map(b => b.top));
return whole - Math.max(...boxes.filter(b => b.top == last).map(b => b.right));
"""


def test_even_tiles(window, overfitted, refuted, tmp_path):
    """The tiles fill their rows: no number stands alone on a row that holds room for two."""
    trusted = [item for item in overfitted.estimates if item.name == "epsilon_star.gaussian"]
    kept = [item for item in refuted.estimates if item.name != "epsilon_star.gaussian"]
    path = tmp_path / "report.html"
    path.write_text(html.render([replace(refuted, estimates=(*kept, *trusted))]), encoding="utf-8")
    window.open(path)
    assert len(window.all(".tiles div")) == 5
    for width in (375, 800, 1200):
        window.resize(width)
        assert window.run(_LAST_ROW) < 2, width


def _words(text):
    """Letters and figures alone: line breaks, signs and ligatures are the printer's."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).lower()


def test_prints(window, page):
    """On A4 every heading is printed, on a sane number of pages, and nothing is wider than the paper."""
    from pypdf import PdfReader

    window.show(page)
    headings = [item.text for item in window.all("h1, h2, h3") if item.is_displayed()]
    audits = len(window.all("article")) or 1
    printed = window.printed()
    found = PdfReader(io.BytesIO(printed))
    text = _words(" ".join(item.extract_text() for item in found.pages))
    assert [item for item in headings if _words(item)[:60] not in text] == []
    assert [float(side) for side in found.pages[0].mediabox[2:]] == pytest.approx([595.3, 841.9], abs=1)
    assert 1 <= len(found.pages) <= 16 * audits
    assert len(printed) < 3_000_000


# What a printer might tear in two, and figures higher than a page of A4 less its margins.
_TORN = """
const most = (297 - 32) / 25.4 * 96;
return [...document.querySelectorAll('figure, tr, h2, h3')].filter(e => { const s = getComputedStyle(e);
  return e.getBoundingClientRect().height > most || (s.breakInside !== 'avoid' && !/^H/.test(e.tagName))
    || (/^H/.test(e.tagName) && s.breakAfter !== 'avoid');
}).map(e => e.outerHTML.slice(0, 80));
"""


def test_paper(window, whole_page):
    """On paper nothing is wider than the page, no figure and no row is torn, no heading stands alone at the foot."""
    width = int(178 / 25.4 * 96)  # A4 less 16 mm on each side, in pixels of 1/96 inch
    window.show(whole_page, width=width, media="print")
    whole, _, outside = window.run(_OUTSIDE)
    assert outside == []
    assert whole <= width
    assert window.run(_TORN) == []
