"""A page can be read: in light and dark, with the keyboard alone, without scripts, by a screen reader."""

import os
from pathlib import Path

import pytest
from browser.chrome import DESKTOP, PHONE, missing

pytestmark = pytest.mark.browser

_CONTRAST = """
const rgb = c => c.match(/[0-9.]+/g).map(Number);
const light = c => { const [r, g, b] = rgb(c).map(v => { v /= 255;
  return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 }); return .2126 * r + .7152 * g + .0722 * b };
const page = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (rgb(c).length < 4 || rgb(c)[3] > 0) return c } return 'rgb(255, 255, 255)' };
// In a figure, what was painted before the text and lies behind its middle, each layer over the one before.
const behind = text => {
  let found = rgb(page(text)).slice(0, 3);
  const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  for (const e of text.ownerSVGElement.querySelectorAll('path, rect, circle, polygon')) {
    if (!(e.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || e.closest('defs, clipPath')) continue;
    const style = getComputedStyle(e);
    if (style.fill === 'none' || !e.getScreenCTM()) continue;
    if (!e.isPointInFill(new DOMPoint(x, y).matrixTransform(e.getScreenCTM().inverse()))) continue;
    const ink = rgb(style.fill), opacity = (ink[3] ?? 1) * style.fillOpacity * style.opacity;
    found = found.map((v, i) => v + (ink[i] - v) * opacity);
  }
  return `rgb(${found.join(', ')})`;
};
const ground = e => e.tagName === 'text' ? behind(e) : page(e);
const bad = [];
for (const e of document.querySelectorAll('h1,h2,h3,h4,p,th,td,dt,dd,small,span,a,li,figcaption,caption,strong,code,button,text')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('.skip')) continue;
  if (!e.checkVisibility()) continue;
  const style = getComputedStyle(e), ink = e.tagName === 'text' ? style.fill : style.color;
  const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) bad.push([e.tagName, e.textContent.trim().slice(0, 30), ink, ground(e), ratio]);
}
return bad;
"""


def test_contrast(window, page):
    """On a light screen, a dark screen and paper all text, that of figures too, stands out by 4.5 to 1 or more."""
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        window.show(page, scheme=scheme, media=media)
        assert window.run(_CONTRAST) == [], (scheme, media)


def test_without_scripts(window, page):
    """With scripts switched off the page shows every word and every figure that it shows with them, but for a filter."""
    seen = []
    for scripts in (True, False):
        window.open(page, scripts=scripts, folded=True)
        window.run(
            "document.querySelectorAll('label.filter, label.filter ~ [role=status]').forEach(e => e.remove())"
        )
        seen.append((window.text(), len(window.all("svg")), len(window.all("tr"))))
    assert seen[0] == seen[1]


_FOCUS = """
const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
const ring = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1.5;
return [e.tagName, e.className, e.getAttribute('href') || e.innerText.slice(0, 40), ring,
        box.bottom > 0 && box.top < innerHeight && box.width > 0];
"""


def test_keyboard(window, whole_page):
    """Tab goes to the skip link first, then through the page, each stop on screen with a ring to be seen."""
    from selenium.webdriver.common.keys import Keys

    window.open(whole_page)
    wanted = window.run(
        "return [...document.querySelectorAll('a[href], button, [tabindex], summary')].filter(e => e.tabIndex >= 0).length"
    )
    stops = []
    for _ in range(min(wanted, 30)):
        window.press(Keys.TAB)
        stops.append(window.run(_FOCUS))
    assert stops[0][1] == "skip"
    assert [item for item in stops if item[0] == "BODY" or not item[3] or not item[4]] == []
    links = window.run("return [...document.querySelectorAll('nav a')].map(e => e.getAttribute('href'))")
    assert [item[2] for item in stops if item[0] == "A"][1 : 1 + len(links)] == links[: len(stops) - 1]


def test_skip_link(window, pages):
    """The skip link leads past the navigation: the next stop is in the content."""
    from selenium.webdriver.common.keys import Keys

    window.open(pages.path("real"))
    window.press(Keys.TAB, Keys.ENTER, Keys.TAB)
    assert window.run("return document.activeElement.closest('main') !== null")


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, from the file that AUDITOR_AXE names."""
    path = Path(os.environ.get("AUDITOR_AXE", ""))
    if not path.is_file():
        missing("AUDITOR_AXE names no file axe.min.js", required_by="AUDITOR_REQUIRE_AXE")
    return path.read_text(encoding="utf-8")


_AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(found => done([found.testEngine.version, found.passes.length,
  found.violations.map(v => [v.impact, v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 120))])]));
"""


def test_axe(window, page, axe):
    """axe-core, with every rule it runs by default, finds no serious and no critical fault on a desk and on a phone."""
    window.open(page)
    window.run(axe)
    for width, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        window.resize(width, scheme=scheme)
        _, passes, violations = window.driver.execute_async_script(_AXE)
        assert passes > 10
        assert [item for item in violations if item[0] in {"serious", "critical"}] == [], (width, scheme)
