"""The tables of a comparison are sorted by mouse and by keyboard, and no row is torn apart."""

import pytest

pytestmark = pytest.mark.browser

_ROWS = (
    "return [...document.querySelectorAll('table')].map(t => [...t.tBodies[0].rows].map(r => r.innerText))"
)
_SORTED = """
const heads = [...arguments[0].closest('tr').cells], place = heads.indexOf(arguments[0].closest('th'));
const rows = [...arguments[0].closest('table').tBodies[0].rows];
return [heads.map(h => h.getAttribute('aria-sort')), place, rows.map(r => r.cells[place].dataset.by ?? r.cells[place].textContent.trim())];
"""


@pytest.fixture
def buttons(window, pages):
    """Every sortable head of a fresh comparison."""
    window.open(pages.path("comparison"))
    found = window.all("th button")
    assert len(found) >= 5
    return found


def _order(window, button, *, down):
    states, place, keys = window.run(_SORTED, button)
    assert states[place] == ("descending" if down else "ascending")
    assert sum(state is not None for state in states) == 1
    filled = [key for key in keys if key != ""]
    assert keys == filled + [""] * (len(keys) - len(filled))  # blanks stay last
    try:
        numbers = [float(key) for key in filled]
    except ValueError:
        return  # words are in the order of the reader's language
    assert numbers == sorted(numbers, reverse=down)


def test_mouse(window, buttons):
    """A click sorts ascending, another descending; every row stays whole, and only that column is called sorted."""
    before = window.run(_ROWS)
    for button in buttons:
        for down in (False, True):
            button.click()
            _order(window, button, down=down)
    after = window.run(_ROWS)
    assert [sorted(table) for table in before] == [sorted(table) for table in after]
    assert before != after
    assert window.console() == []


@pytest.mark.parametrize("key", ["ENTER", "SPACE"])
def test_keyboard(window, buttons, key):
    """Enter and the space bar do what a click does, and the focus stays on the head."""
    from selenium.webdriver.common.keys import Keys

    button = next(
        item for item in buttons if "num" in item.find_element("xpath", "..").get_attribute("class")
    )
    window.run("arguments[0].focus()", button)
    for down in (False, True):
        window.press(getattr(Keys, key))
        _order(window, button, down=down)
        assert window.driver.switch_to.active_element == button
