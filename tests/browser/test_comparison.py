"""A comparison on a phone: its tables are read without scrolling sideways, and no word is torn."""

import pytest

pytestmark = pytest.mark.browser

# What sticks out of a region that scrolls, other than the figure; and captions that are wider than the window.
_CUT = """
const wide = [...document.querySelectorAll('.scroll')].filter(e => e.querySelector('table') && e.scrollWidth > e.clientWidth);
const captions = [...document.querySelectorAll('caption:not(.hidden) > div')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.left < 0 || box.right > document.documentElement.clientWidth + 1;
});
return [wide.map(e => e.getAttribute('aria-label')), captions.map(e => e.textContent.slice(0, 40))];
"""
# Plain words (letters alone, not the endless ones) that stand on two lines.
_TORN = """
const torn = [];
for (const cell of document.querySelectorAll('table th, table td')) {
  if (cell.closest('thead')?.getBoundingClientRect().width <= 1) continue;  // read by a screen reader alone
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const word of node.data.matchAll(/[A-Za-z]{2,15}/g)) {
      if (node.data.length > 200 || cell.querySelector('code')) continue;
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) torn.push(word[0]);
    }
}
return torn;
"""


@pytest.mark.parametrize("width", [320, 360, 700])
def test_phone(window, pages, width):
    """On a phone the rows are stacked: nothing is cut inside a region that scrolls, and no word is torn in two."""
    window.show(pages.path("comparison"), width=width)
    assert window.run(_CUT) == [[], []]
    assert window.run(_TORN) == []


@pytest.mark.parametrize("width", [720, 850])
def test_captions_stay(window, pages, width):
    """Where a table is wider than the window its caption is not: it can be read wherever the reader scrolled to."""
    window.show(pages.path("comparison"), width=width)
    assert window.run(_CUT)[1] == []
    window.run("document.querySelectorAll('.scroll').forEach(e => { e.scrollLeft = e.scrollWidth })")
    wide, captions = window.run(_CUT)
    assert wide  # else this test shows nothing
    assert captions == []
