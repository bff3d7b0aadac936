"""Charts: where lines stand, and that they are whole files."""

import re
from xml.etree import ElementTree

import pytest

from orbitpool.report.charts import Chart, Line


def points(svg, rank):
    lines = re.findall(rf'class="rank-{rank}" points="([^"]*)"', svg)
    return [tuple(map(float, pair.split(","))) for pair in lines[1].split()]  # the first is in the legend


def test_lines_stand_where_their_values_are():
    chart = Chart("c.svg", "c", "degrees", "a < b", [Line("RBM", [0, 90, 180], [1.0, 0.25, 0.5])], (0, 1), 45)
    (x0, y0), (x1, y1), (x2, y2) = points(chart.svg, 0)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.1)
    assert (y1 - y0) / (y2 - y0) == pytest.approx(0.75 / 0.5, abs=0.01)
    ticks = re.findall(r'middle">([^<]*)<', chart.svg)
    assert ticks[:5] == ["0", "45", "90", "135", "180"]
    assert re.findall(r'end">([^<]*)<', chart.svg) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_what_comes_first_stands_on_the_left():
    chart = Chart("c.svg", "c", "times the size", "similarity", [Line("RBM", [1.0, 0.7, 0.4], [1.0, 0.5, 0.1])])
    xs = [x for x, _ in points(chart.svg, 0)]
    assert xs == sorted(xs)


def test_a_chart_is_a_file_of_its_own_that_says_what_it_shows():
    lines = [Line("A & B", [1, 2], [0.001, 0.003]), Line("level", [1, 2], [0.002, 0.002], 1, dashed=True)]
    chart = Chart("c.svg", "caption", "epoch", "error", lines)
    root = ElementTree.fromstring(chart.files["c.svg"])
    assert root.get("aria-label") == (
        "Lines of error against epoch, 1 to 2: A & B from 0.001 to 0.003, lowest 0.001; level 0.002 throughout"
    )


def test_a_line_that_does_not_change_is_drawn():
    svg = Chart("c.svg", "", "x", "y", [Line("flat", [1.0], [0.5])]).svg
    width, height = map(float, ElementTree.fromstring(svg).get("viewBox").split()[2:])
    ((x, y),) = points(svg, 0)
    assert 0 < x < width
    assert 0 < y < height
