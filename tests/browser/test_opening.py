"""A page opens quietly, shows all its parts, and lets nothing in or out."""

import pytest

pytestmark = pytest.mark.browser

# Figures, headings and tables that take no room, or none that can be read.
_EMPTY = """
const shown = e => { const box = e.getBoundingClientRect(); return box.width > 10 && box.height > 10 };
return [...document.querySelectorAll('h1, h2, h3, h4, main svg, table, caption:not(.hidden), figcaption, nav')]
  .filter(e => !shown(e) || !e.checkVisibility({visibilityProperty: true, opacityProperty: true}))
  .map(e => e.outerHTML.slice(0, 80));
"""
_SECTIONS = """
return [...document.querySelectorAll('main section, main article')].map(e => {
  const by = document.getElementById(e.getAttribute('aria-labelledby'));
  return [e.outerHTML.slice(0, 80), by !== null && /^H[1-6]$/.test(by.tagName) && by.innerText.trim().length > 2,
          e.getBoundingClientRect().height];
});
"""
_LINKS = """
return [...document.querySelectorAll('a')].map(e => [e.getAttribute('href'),
  document.getElementById((e.getAttribute('href') || '').slice(1)) !== null]);
"""
_DRAWN = """
return [...document.querySelectorAll('main figure svg')].map(e => [e.querySelectorAll('path, use, rect, circle').length,
  e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || '']);
"""


def test_quiet(window, page):
    """The page opens without a console message and asks for nothing but itself; no script raised a dialog."""
    window.open(page)
    assert window.console() == []
    assert window.requests() == ({page.as_uri()}, set())


def test_all_there(window, whole_page):
    """Every heading, figure and table takes room, every section is named by its heading, every link leads to a part."""
    window.show(whole_page)
    assert window.run(_EMPTY) == []
    sections = window.run(_SECTIONS)
    assert len(sections) >= 3
    assert [item for item in sections if not item[1] or item[2] < 20] == []
    links = window.run(_LINKS)
    assert links
    assert [href for href, leads in links if not leads or not href.startswith("#")] == []


def test_drawn(window, whole_page):
    """Every figure has marks in it and says in words what it shows."""
    window.show(whole_page)
    figures = window.run(_DRAWN)
    assert figures
    assert [item for item in figures if item[0] < 3 or len(item[1]) < 10] == []


# Where the parts of the first screen end.
_FIRST = """
const all = ['h2', 'p', '.bar', '.people svg', 'ol.now'];
const parts = s => [...document.querySelectorAll('.verdict ' + s)].filter(e => !e.matches('.note, .hidden'));
const ends = e => e.getBoundingClientRect().bottom + window.scrollY;
return all.map(s => [s, Math.max(0, ...(s === 'p' ? parts(s).filter(
  e => e.compareDocumentPosition(document.querySelector('ol.now')) & 4) : parts(s)).map(ends))]);
"""


@pytest.mark.parametrize("name", ["overfitted", "refuted", "not_evaluable", "nothing", "group", "real"])
def test_all_of_a_decision_is_on_the_first_screen(window, pages, name):
    """On 1,100 by 900 the decision, the sentences, the size, the group, the picture and what to do end without scrolling."""
    window.show(pages.path(name), width=1100, folded=True)
    ends = dict(window.run(_FIRST))
    assert all(0 < end <= 900 for end in ends.values()), ends
    first = window.run("return document.querySelector('.verdict').innerText")
    assert ("Most exposed: oncology" in first.partition("What now")[0]) is (name == "group")


_TRIES = """
const done = arguments[0], said = [];
document.addEventListener('securitypolicyviolation', e => said.push(e.violatedDirective));
const body = document.body, put = (tag, change) => { const e = document.createElement(tag); change(e); body.append(e) };
put('script', e => { e.textContent = 'window.ran = "script"' });
put('div', e => { e.innerHTML = '<img src="data:,x" onerror="window.ran = 1">' });
put('img', e => { e.src = 'https://example.org/pixel.png' });
put('iframe', e => { e.src = 'https://example.org/' });
put('link', e => { e.rel = 'stylesheet'; e.href = 'https://example.org/style.css' });
put('object', e => { e.data = 'https://example.org/' });
put('a', e => { e.href = 'javascript:window.ran = 2'; e.id = 'tried'; e.textContent = 'here'; e.click() });
put('form', e => { e.action = 'https://example.org/'; e.id = 'form' });
document.getElementById('form').submit();
try { new WebSocket('wss://example.org/') } catch (error) { said.push('thrown') }
fetch('https://example.org/').catch(() => 0);
navigator.sendBeacon('https://example.org/', 'x');
setTimeout(() => done([window.ran === undefined, said, document.baseURI, location.href]), 400);
"""


@pytest.mark.parametrize("name", ["hostile", "real", "comparison"])
def test_policy(window, pages, name):
    """Whatever gets into the page, its policy runs no script that is not its own and lets nothing leave."""
    path = pages.path(name)
    window.open(path)
    silent, said, _, here = window.driver.execute_async_script(_TRIES)
    assert silent
    assert here == path.as_uri()
    assert {"script-src-elem", "script-src-attr", "img-src", "form-action", "connect-src"} <= set(said)
    assert {"style-src-elem", "object-src", "frame-src"} <= set(said)
    asked, stopped = window.requests()
    assert asked - stopped == {path.as_uri()}


def test_policy_is_needed(window, tmp_path):
    """Without the policy the same tries run: the test above can fail."""
    path = tmp_path / "open.html"
    path.write_text("<!doctype html><title>no policy</title><p>text", encoding="utf-8")
    window.open(path)
    stays = _TRIES.replace("document.getElementById('form').submit();", "")
    silent, said, *_ = window.driver.execute_async_script(stays)
    assert not silent
    assert said == []
    asked, stopped = window.requests()
    assert {"https://example.org/pixel.png", "https://example.org/style.css"} <= asked - stopped
