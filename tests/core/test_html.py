"""Results as tables, for notebooks."""

import re

import numpy as np
import pytest
from registry import circle

from heatsketch import HeatSketch
from heatsketch._core.html import html_table


def cells(page):
    """Return the rows of a table, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]


@pytest.fixture(scope="module")
def model():
    return HeatSketch(16, power=2).fit(circle(60))


def test_text_of_a_table_stays_text():
    (_, row) = cells(html_table({"<b>": ["</td><script>"]}))
    assert row == ["&lt;/td&gt;&lt;script&gt;"]


def test_distances_are_rows_with_their_intervals(model):
    found = model.diffusion_distances([[0, 1], [0, 30]])
    head, *rows = cells(found._repr_html_())
    assert head == ["distance", "low", "high"]
    assert rows == [[f"{part[i]:.3g}" for part in found] for i in range(2)]


def test_neighbours_have_a_query_and_a_rank(model):
    found = model.diffusion_neighbors([3, 4], n_neighbors=6)
    page = found._repr_html_()
    _, *rows = cells(page)
    assert [row[:3] for row in rows[5:7]] == [
        ["0", "6", str(found.indices[0, 5])],
        ["1", "1", str(found.indices[1, 0])],
    ]
    assert "The first 10 of 12 rows." in page


def test_drift_begins_with_the_row_that_moved_most_clearly(model):
    moved = circle(60)
    moved[5] = moved[35]
    drift = model.drift(HeatSketch(16, power=2).fit(moved))
    (_, row, *_) = cells(drift._repr_html_())
    assert row[0] == str(drift.ids[np.argmin(drift.p_values)])
