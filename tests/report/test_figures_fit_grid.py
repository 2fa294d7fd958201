"""The grid of p-values: what is drawn is what the audit holds."""

from dataclasses import replace

import pytest

from auditor.core import Estimate, Subject
from auditor.report.figures import fit_grids, gallery as figures, svg

SIDE = {
    "components": [1, 2, 3],
    "sample_sizes": [100, 200],
    "p_values": [[0.0004, 0.0496], [0.0504, 0.2], [0.004, 1.0]],
    "choice_p_values": [0.01, 0.3],
}


def _result(result, grid, *, name="epsilon_star.mixture", chosen=2, p=None):
    side = {"level": 0.05} if chosen is None else {"level": 0.05, "components": chosen}
    side |= {} if p is None else {"ks_p_value": p}
    details = {"fit": {"rejected": False, "member": side, "nonmember": side, "grid": grid}}
    estimate = Estimate(name, 1.0, None, None, None, "by hand", Subject.MODEL, 1e-5, details=details)
    return replace(result, estimates=(estimate,))


def _cells(axes):
    return {text.get_text(): text for text in axes.texts}


def test_cells_can_be_read(overfitted):
    """Every p-value is written so that its side of the level shows; those below it are bold, the others are not."""
    result = _result(overfitted, {"member": SIDE, "nonmember": SIDE})
    members, others = figures.figure(result, "fit-grid").axes
    assert (members.get_title(loc="left"), others.get_title(loc="left")) == ("Members", "Non-members")
    cells = _cells(members)
    # 0.0496 would be .05 with two decimals and .050 with three, on the wrong side; 0.0504 is not below 0.05 as .05.
    assert list(cells) == ["<.001", ".0496", ".05", ".20", ".004", "1", ".01", ".30"]
    bold = {words for words, text in cells.items() if text.get_fontweight() == "bold"}
    assert bold == {"<.001", ".0496", ".004", ".01"}


def test_chosen_row_is_framed(overfitted):
    """The row of the components in use is framed, and no other."""
    result = _result(overfitted, {"member": SIDE, "nonmember": SIDE}, chosen=3)
    frames = [
        patch for patch in figures.figure(result, "fit-grid").axes[0].patches if hasattr(patch, "get_xy")
    ]
    assert [frame.get_y() for frame in frames] == [2]


def test_mixture_before_normals(overfitted):
    """Without a mixture the grid of the normal curves is shown, whose one component is the one in use."""
    grid = {"member": {**SIDE, "components": [1], "p_values": [[0.3, 0.4]], "choice_p_values": []}}
    result = _result(overfitted, grid, name="epsilon_star.gaussian", chosen=None)
    found = fit_grids(result)
    assert list(found) == ["member"]
    assert found["member"].chosen == 1
    assert len(figures.figure(result, "fit-grid").axes) == 1
    both = replace(result, estimates=(*result.estimates, *_result(overfitted, {"member": SIDE}).estimates))
    assert fit_grids(both)["member"].components == (1, 2, 3)


def _apart(result):
    """The names of the columns apart, and what the line under the figure says of them."""
    axes = figures.figure(result, "fit-grid").axes
    names = [label.get_text() for label in axes[0].get_xticklabels()]
    return [name for name in names if not name.isdigit()], axes[-1].get_xlabel()


def test_the_test_that_decides_stands_apart(overfitted):
    """Where a number of components survived, the p-value that confirms it stands in its row, and the words hold it."""
    result = _result(overfitted, {"member": SIDE}, p=0.041)
    cells = _cells(figures.figure(result, "fit-grid").axes[0])
    assert list(cells)[-3:] == [".01", ".30", ".04"]
    assert cells[".04"].get_position()[1] == pytest.approx(1.52)  # the second row
    assert cells[".04"].get_fontweight() == "bold"
    names, said = _apart(result)
    assert names == ["A", "B"]
    assert "B: decides, the same test on records that did not choose" in said
    assert "where 0 of 2 reject; the test that decides has a p-value of 0.04." in figures.alt(
        result, "fit-grid"
    )


def test_without_a_survivor_nothing_confirms(overfitted):
    """Where every number of components was rejected the choosing test is the last word: none stands beside it."""
    side = {**SIDE, "choice_p_values": [0.01, 0.03, 0.02]}
    result = _result(overfitted, {"member": side}, p=0.03)
    names, said = _apart(result)
    assert names == ["A"]
    assert "decides" not in said + figures.alt(result, "fit-grid")


def test_normals_have_nothing_to_choose(overfitted):
    """Of a single component nothing is chosen: the one p-value apart is of the test that decides, on all held-out records."""
    side = {"components": [1], "sample_sizes": [100], "p_values": [[0.3]], "choice_p_values": [0.2]}
    for p, words in ((0.2, ".20"), (None, ".20")):  # an older result may hold it in the grid alone
        result = _result(overfitted, {"member": side}, name="epsilon_star.gaussian", chosen=None, p=p)
        assert list(_cells(figures.figure(result, "fit-grid").axes[0])) == [".30", words]
        names, said = _apart(result)
        assert names == ["A"]
        assert "A: decides, the fitted curve against all held-out records" in said


@pytest.mark.parametrize("p", ["text", -1, 2, float("nan")])
def test_what_is_no_p_value_decides_nothing(overfitted, p):
    """A p-value of somebody else's making that is none is left out."""
    assert _apart(_result(overfitted, {"member": SIDE}, p=p))[0] == ["A"]


def test_words_count_rejections(overfitted):
    """The words count the tests that reject, in all and for the components in use, by the counts of this grid."""
    words = figures.alt(_result(overfitted, {"member": SIDE, "nonmember": SIDE}), "fit-grid")
    # Below 0.05 of six: 0.0004, 0.0496 and 0.004; none of the two of two components.
    assert (
        "Members: 3 of 6 tests reject at 0.05, for 1 to 3 components and 100 to 200 records."
        " Used: 2 components, where 0 of 2 reject."
    ) in words


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "text",
        {},
        {**SIDE, "p_values": [[0.1, 0.2]]},
        {**SIDE, "p_values": [[0.1], [0.2], [0.3]]},
        {**SIDE, "components": []},
        {**SIDE, "sample_sizes": 7},
    ],
)
def test_no_grid_no_figure(overfitted, broken):
    """A grid that is missing or does not fit together gives no figure."""
    assert figures.figure(_result(overfitted, {"member": broken}), "fit-grid") is None
    assert figures.figure(_result(overfitted, broken), "fit-grid") is None


def test_odd_p_values(overfitted):
    """What is no p-value is a question mark, neither rejected nor not."""
    odd = {**SIDE, "p_values": [[None, float("nan")], ["inf", -0.1], [2, 0.5]]}
    axes = figures.figure(_result(overfitted, {"member": odd}), "fit-grid").axes[0]
    assert [text.get_text() for text in axes.texts[:6]] == ["?", "?", "?", "?", "?", ".50"]
    assert "0 of 1 tests reject" in figures.alt(_result(overfitted, {"member": odd}), "fit-grid")


def test_published_size_stays_small(overfitted):
    """Twenty numbers of components by ten sample sizes for both groups take less than 110 kB."""
    side = {
        "components": list(range(1, 21)),
        "sample_sizes": list(range(100, 1001, 100)),
        "p_values": [[0.123] * 10] * 20,
        "choice_p_values": [0.01, 0.3],
    }
    result = _result(overfitted, {"member": side, "nonmember": side})
    assert len(svg(figures.figure(result, "fit-grid"), alt="a")) < 110_000


def test_endless_grid_is_cut(overfitted):
    """A grid that someone made enormous is drawn in part."""
    side = {
        "components": list(range(1, 500)),
        "sample_sizes": list(range(500)),
        "p_values": [[0.5] * 500] * 499,
        "choice_p_values": [0.5] * 499,
    }
    figure = figures.figure(_result(overfitted, {"member": side}), "fit-grid")
    assert len(figure.axes[0].texts) <= 30 * 13
