"""The page in a real browser: headless Chromium, from a file."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from auditor.report import html

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


def _missing(reason):
    if os.environ.get("AUDITOR_REQUIRE_BROWSER") == "1":
        pytest.fail(f"AUDITOR_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)


def _found(*names):
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A fresh Chromium that records its console and every request."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        _missing("selenium is not installed")
    binary, driver = _found("chromium", "chromium-browser", "google-chrome"), _found("chromedriver")
    if binary is None or driver is None:
        _missing("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


def _open(browser, text, path, *, width=1200, scheme="light"):
    path.write_text(text, encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preference = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": preference})
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what earlier pages left behind
    browser.get(path.as_uri())


def _requests(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        item["params"]["request"]["url"] for item in messages if item["method"] == "Network.requestWillBeSent"
    ]


@pytest.fixture(params=["overfitted", "refuted", "nothing", "hostile", "several"])
def page(request):
    """Each page in turn, the last one with several audits."""
    if request.param == "several":
        names = ("overfitted", "refuted", "not_evaluable", "hostile")
        return html.render([request.getfixturevalue(name) for name in names])
    return html.render([request.getfixturevalue(request.param)])


def test_loads_quietly(browser, page, tmp_path):
    """The page opens without a console message, requests nothing but itself, and shows its headings and figures."""
    path = tmp_path / "report.html"
    _open(browser, page, path)
    assert browser.get_log("browser") == []
    assert {url for url in _requests(browser) if not url.startswith("data:")} == {path.as_uri()}
    for kind in ("h1", "h2", "svg", "table"):
        shown = browser.find_elements("css selector", kind)
        assert shown
        assert all(item.is_displayed() and item.size["height"] > 10 for item in shown)


@pytest.mark.parametrize("width", [320, 375, 700])
def test_narrow(browser, page, tmp_path, width):
    """At phone width nothing makes the page scroll sideways."""
    _open(browser, page, tmp_path / "report.html", width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.body.scrollWidth") <= width


_CONTRAST = """
const rgb = c => c.match(/[0-9.]+/g).map(Number);
const light = c => { const [r, g, b] = rgb(c).map(v => { v /= 255;
  return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 }); return .2126 * r + .7152 * g + .0722 * b };
const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (rgb(c).length < 4 || rgb(c)[3] > 0) return c } return 'rgb(255, 255, 255)' };
const bad = [];
for (const e of document.querySelectorAll('h1,h2,h3,p,th,td,dt,dd,small,span,a,li,figcaption,strong,code,text')) {
  if (!e.textContent.trim()) continue;
  const style = getComputedStyle(e), ink = e.tagName === 'text' ? style.fill : style.color;
  const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) bad.push([e.tagName, e.textContent.trim().slice(0, 30), ink, ground(e), ratio]);
}
return bad;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser, refuted, tmp_path, scheme):
    """In light and in dark mode all text, that of the figures too, stands out by 4.5 to 1 or more."""
    _open(browser, html.render([refuted]), tmp_path / "report.html", scheme=scheme)
    assert browser.execute_script(_CONTRAST) == []


@pytest.mark.parametrize("width", [375, 800, 1200])
def test_even_tiles(browser, overfitted, refuted, tmp_path, width):
    """The tiles fill their rows: no number stands alone on a row that holds room for two."""
    trusted = [item for item in overfitted.estimates if item.name == "epsilon_star.gaussian"]
    kept = [item for item in refuted.estimates if item.name != "epsilon_star.gaussian"]
    five = replace(refuted, estimates=(*kept, *trusted))
    _open(browser, html.render([five]), tmp_path / "report.html", width=width)
    script = (
        "const boxes = [...document.querySelectorAll('.tiles div')].map(e => e.getBoundingClientRect());"
        "const whole = document.querySelector('.tiles').getBoundingClientRect().right;"
        "const last = Math.max(...boxes.map(b => b.top));"
        "return whole - Math.max(...boxes.filter(b => b.top == last).map(b => b.right));"
    )
    assert len(browser.find_elements("css selector", ".tiles div")) == 5
    assert browser.execute_script(script) < 2


def test_dark(browser, overfitted, tmp_path):
    """A reader who prefers dark pages gets one."""
    grounds = []
    for scheme in ("light", "dark"):
        _open(browser, html.render([overfitted]), tmp_path / "report.html", scheme=scheme)
        grounds.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_prints(browser, refuted, tmp_path):
    """The page prints."""
    _open(browser, html.render([refuted]), tmp_path / "report.html")
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
