"""A window of headless Chromium that remembers what a page says and asks for."""

import base64
import json
import os
import shutil
from contextlib import contextmanager

import pytest

_BARE = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-dev-shm-usage"
FLAGS = tuple(_BARE.split())
DESKTOP, PHONE = 1200, 375
A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True, "printBackground": True}


def missing(reason, *, required_by="AUDITOR_REQUIRE_BROWSER"):
    """Skip the test, or fail it where the environment says that nothing may be missing."""
    if os.environ.get(required_by) == "1":
        pytest.fail(f"{required_by}=1, but {reason}")
    pytest.skip(reason)


def _found(*names):
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def chromium(profile):
    """A fresh Chromium with its profile in that folder."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing("selenium is not installed")
    binary, driver = _found("chromium", "chromium-browser", "google-chrome"), _found("chromedriver")
    if binary is None or driver is None:
        missing("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Window(chrome)
    finally:
        chrome.quit()


class Window:
    """One browser window; every page is opened from a file."""

    def __init__(self, driver):
        self.driver = driver
        self._shown = None

    def open(
        self, path, *, width=DESKTOP, height=900, scheme="light", media="screen", scripts=True, folded=False
    ):
        """Open a page in a window of that size, for a reader who prefers that scheme and unfolds what is folded, or not."""
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.resize(width, height=height, scheme=scheme, media=media)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # what earlier pages left behind
        self.driver.get(path.as_uri())
        if not folded:
            self.run("document.querySelectorAll('details').forEach(e => { e.open = true })")
        self._shown = (path, folded) if scripts else None

    def show(self, path, *, width=DESKTOP, height=900, scheme="light", media="screen", folded=False):
        """Open a page unless it is open and nobody has touched it, and change the window to that size and scheme."""
        if self._shown != (path, folded):
            self.open(path, width=width, height=height, scheme=scheme, media=media, folded=folded)
        else:
            self.resize(width, height=height, scheme=scheme, media=media)

    def resize(self, width, *, height=900, scheme="light", media="screen"):
        """Change the window under an open page."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width <= PHONE}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        preference = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=preference)

    def command(self, name, **arguments):
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script, *arguments):
        """Return the result of a script that the page itself could not run."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        """The elements that a selector finds."""
        return self.driver.find_elements("css selector", selector)

    def text(self):
        """The text that is to be seen."""
        return self.run("return document.body.innerText")

    def console(self):
        """Return the messages on the console since the page was opened, with violations of its policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return the addresses requested since the page was opened, and those that its policy stopped."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        by_method = {"Network.requestWillBeSent": [], "Network.loadingFailed": []}
        for item in messages:
            by_method.get(item["method"], []).append(item["params"])
        asked, failed = by_method.values()
        stopped = {item["requestId"] for item in failed if item.get("blockedReason") == "csp"}
        pairs = [(item["request"]["url"], item["requestId"] in stopped) for item in asked]
        pairs = [(url, was_stopped) for url, was_stopped in pairs if not url.startswith("data:")]
        return {url for url, _ in pairs}, {url for url, was_stopped in pairs if was_stopped}

    def press(self, *keys):
        """Press keys where the focus is."""
        from selenium.webdriver import ActionChains

        self._shown = None
        ActionChains(self.driver).send_keys(*keys).perform()

    def printed(self):
        """The page as a PDF on A4, as a reader would print it."""
        self.command("Emulation.clearDeviceMetricsOverride")
        self.command("Emulation.setEmulatedMedia", media="", features=[])
        return base64.b64decode(self.command("Page.printToPDF", **A4)["data"])
