"""A page fits: a desk, a phone, a reader who enlarges it, and paper."""

import io
import re
import unicodedata

import pytest

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


@pytest.mark.parametrize("page", ["real", "several", "comparison", "hostile", "card"], indirect=True)
def test_narrow(window, page):
    """On a phone nothing makes the page scroll sideways, folded or not; 320 pixels are also a window of 1280 at 400%."""
    for folded in (False, True):
        window.show(page, width=320, folded=folded)
        for width in (320, 375, 700):
            window.resize(width)
            whole, body, outside = window.run(_OUTSIDE)
            assert outside == [], (width, folded)
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


def _words(text):
    """Letters and figures alone: line breaks, signs and ligatures are the printer's."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).lower()


@pytest.mark.parametrize("page", ["real", "comparison", "hostile"], indirect=True)
def test_prints(window, page):
    """On A4 every heading is printed, on a sane number of pages, none of them empty, also where nobody unfolds anything."""
    from pypdf import PdfReader

    window.show(page, folded=True)
    headings = [item.text for item in window.all("h1, h2, h3") if item.is_displayed()]
    audits = len(window.all("article")) or 1
    printed = window.printed()
    found = PdfReader(io.BytesIO(printed))
    texts = [_words(item.extract_text()) for item in found.pages]
    text = " ".join(texts)
    assert [number for number, item in enumerate(texts, start=1) if len(item) < 40] == []
    assert [item for item in headings if _words(item)[:60] not in text] == []
    assert [float(side) for side in found.pages[0].mediabox[2:]] == pytest.approx([595.3, 841.9], abs=1)
    assert 1 <= len(found.pages) <= 16 * audits
    assert len(printed) < 3_000_000


# What a printer might tear in two, and figures higher than a page of A4 less its margins.
_TORN = """
const most = (297 - 32) / 25.4 * 96;
return [...document.querySelectorAll('figure, tr, caption, h2, h3')].filter(e => { const s = getComputedStyle(e);
  return e.getBoundingClientRect().height > most || (s.breakInside !== 'avoid' && !/^H/.test(e.tagName))
    || (/^H|CAPTION/.test(e.tagName) && s.breakAfter !== 'avoid')
    || (e.matches('tbody > tr:first-child') && s.breakBefore !== 'avoid');
}).map(e => e.outerHTML.slice(0, 80));
"""


def test_paper(window, whole_page):
    """On paper nothing is wider than the page, no figure, caption or row is torn, no heading or caption stands alone at the foot."""
    width = int(178 / 25.4 * 96)  # A4 less 16 mm on each side, in pixels of 1/96 inch
    window.show(whole_page, width=width, media="print")
    whole, _, outside = window.run(_OUTSIDE)
    assert outside == []
    assert whole <= width
    assert window.run(_TORN) == []
