"""The page as a reader meets it, in a real Chromium: turned by mouse and keys, on a phone, in the dark, offline."""

import json
from math import pi
from pathlib import Path

import numpy as np
import pytest
from browser import Browser

from orbitpool import transforms
from orbitpool.datasets import move_digits
from orbitpool.experiments.drawing import file_of
from orbitpool.experiments.invariance import EXPLORED, MOVES, STEP, Study, learn
from orbitpool.pictures import png
from orbitpool.report import Page, report, write
from orbitpool.report.figures import invariance

RESULTS = Path(__file__).parents[2] / "results"
LARGEST = 5_000_000  # bytes of a page
TILES = """[...document.querySelectorAll('.machine')].map(machine => [machine.dataset.name,
  [...machine.querySelectorAll('.filter')].map(tile => [tile.getAttribute('aria-label'),
    Number(tile.style.getPropertyValue('--column')), Number(tile.style.getPropertyValue('--level'))])])"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def studied(turned_digits, tmp_path_factory):
    """Two small models, the digits that they are shown, what the library says of them, and the page of it."""
    X, y = turned_digits.X_test, turned_digits.y_test
    turns = transforms.rotations(16, count=16, step=pi / 8)
    options = {"n_components": 40, "n_iter": 3, "batch_size": 20, "device": "cpu"}
    models = learn(turned_digits.X_train, turns, "digits", lambda what: None, **options)
    digits = X[[np.flatnonzero(y == label)[0] for label in EXPLORED]]
    study = Study()
    study.measure("turned", MOVES["turned"], models, X, y)
    study.explore(models, digits, EXPLORED)
    study.sample("TIRBM", models["TIRBM"], digits)
    contents = {title: (file_of("small", title), png(picture)) for title, picture in study.pictures.items()}
    sections = invariance(study.numbers, contents, "small")
    return models, digits, study, write(Page("Small", "", sections), tmp_path_factory.mktemp("page"))


def expected(studied, which, angle):
    """What each machine's tiles shall say of a digit at an angle, and show: the library's features and poses."""
    models, digits, study, _ = studied
    image = move_digits("rot", digits[which : which + 1], np.array([angle * pi / 180]))
    said = []
    for name, model in models.items():
        orbits = study.numbers["orbits"][study.numbers["explorer"]["machines"][name]["filters"]]
        numbers, poses = orbits["filters"], orbits["poses"]
        on = np.round(100 * model.transform(image)[0, numbers]).astype(int)
        likeliest = model.posterior(image)[0, numbers].argmax(-1)
        certain = model.pose(image)[0, numbers]
        assert ((certain == -1) | (certain == likeliest)).all()
        ends = [f", {poses[s]}" if len(poses) > 1 else "" for s in likeliest]
        words = [f"filter {n}: {p} % on{end}" for n, p, end in zip(numbers, on, ends, strict=True)]
        tiles = [[word, int(s), p / 100] for word, s, p in zip(words, likeliest, on, strict=True)]
        said.append([name, tiles])
    return said


def test_dragging_the_slider_turns_the_digit_and_shows_what_the_library_says(browser, studied):
    browser.look(1100, 900)
    browser.open(studied[-1])
    assert browser.tell(TILES) == expected(studied, 0, 0)
    x, y, width, height = browser.place(".turn input")
    middle = y + height / 2
    browser.drag((x + 8, middle), (x + width / 4, middle), (x + width / 2, middle))
    angle = int(browser.tell("document.querySelector('.turn input').value"))
    assert 150 < angle < 210
    assert browser.tell("document.querySelector('output').textContent") == f"{angle}°"
    seen = browser.tell(TILES)
    assert seen == expected(studied, 0, angle)
    before = expected(studied, 0, 0)
    assert all(now != then for (_, now), (_, then) in zip(seen, before, strict=True))
    poses = [[tile[1] for tile in tiles] for _, tiles in seen], [[tile[1] for tile in tiles] for _, tiles in before]
    assert poses[0][0] == poses[1][0]  # the RBM has one pose
    assert poses[0][1] != poses[1][1]
    assert browser.tell("document.querySelector('.digit').getAttribute('aria-label')") == (
        f"digit {EXPLORED[0]}, turned by {angle}°"
    )


def test_the_page_says_how_similar_the_features_are(browser, studied):
    """The similarity that is written beside the filters is that of all features."""
    models, digits, _, path = studied
    browser.open(path)
    browser.tell("document.querySelector('.turn input').focus()")
    for _ in range(9):
        browser.key("ArrowRight", 39)
    assert browser.tell("document.querySelector('.turn input').value") == str(9 * STEP)
    turned = move_digits("rot", digits[:1].repeat(2, 0), np.array([0, 9 * STEP * pi / 180]))
    for name, model in models.items():
        a, b = model.transform(turned)
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        said = browser.tell(f"document.querySelector('.machine[data-name={name}] .tally').textContent")
        assert float(said.split()[-1].rstrip(".")) == pytest.approx(cosine, abs=0.00501)


def test_another_digit_is_chosen_by_keyboard(browser, studied):
    browser.open(studied[-1])
    browser.tell("document.querySelector('.choices input').focus()")
    for _ in range(2):
        browser.key("ArrowRight", 39)
    assert browser.tell(TILES) == expected(studied, 2, 0)


def test_the_digit_that_is_seen_is_the_one_that_was_encoded(browser, studied):
    """The tile of the sheet that the page points at is the image, in 16 greys."""
    _, digits, study, path = studied
    browser.open(path)
    browser.tell("document.querySelector('.turn input').focus()")
    for _ in range(5):
        browser.key("ArrowRight", 39)
    row, column = browser.tell(
        "['--row', '--column'].map(p => Number(document.querySelector('.digit').style.getPropertyValue(p)))"
    )
    tile = study.pictures["turned digits"][row * 16 : row * 16 + 16, column * 16 : column * 16 + 16]
    image = move_digits("rot", digits[:1], np.array([5 * STEP * pi / 180]))[0]
    np.testing.assert_allclose(tile / 255, image / digits[0].max(), atol=0.05)


SHOWN = "document.querySelector('.machine[data-name=TIRBM] .orbit {}').{}"


def test_the_orbit_of_a_filter_is_shown_by_pointing_by_clicking_and_by_keys(browser, studied):
    orbits = studied[2].numbers["orbits"]["filters of the TIRBM on turned digits"]
    browser.open(studied[-1])

    def shown():
        row = browser.tell(SHOWN.format(".pose .tile", "style.getPropertyValue('--row')"))
        labels = browser.tell(
            "[...document.querySelectorAll('.machine[data-name=TIRBM] .pose')].map(p => p.textContent)"
        )
        assert labels == orbits["poses"]
        return browser.tell(SHOWN.format("p", "textContent")).split(":")[0], int(row)

    tile = ".machine[data-name=TIRBM] .filter:nth-child({})"
    x, y, width, height = browser.place(tile.format(3))
    browser.mouse("Moved", x + width / 2, y + height / 2)
    assert shown() == (f"filter {orbits['filters'][2]}", 2)
    x, y, width, height = browser.place(tile.format(9))
    browser.drag((x + width / 2, y + height / 2), (x + width / 2, y + height / 2))
    assert shown() == (f"filter {orbits['filters'][8]}", 8)
    browser.mouse("Moved", 1, 1)
    browser.key("ArrowDown", 40)
    browser.key("ArrowRight", 39)
    assert shown() == (f"filter {orbits['filters'][15]}", 15)
    browser.key("End", 35)
    assert shown()[1] == len(orbits["filters"]) - 1
    tabs = "[...document.querySelectorAll('.machine[data-name=TIRBM] .filter')].filter(f => f.tabIndex === 0).length"
    assert browser.tell(tabs) == 1
    chosen = browser.tell("document.querySelector('.machine[data-name=TIRBM] .chosen').textContent")
    assert chosen in browser.tell(SHOWN.format("p", "textContent"))


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory):
    """The report of the results that come with the project."""
    return write(report(RESULTS), tmp_path_factory.mktemp("report"))


def test_the_report_needs_no_network_and_complains_of_nothing(browser, whole_report):
    assert whole_report.stat().st_size < LARGEST
    browser.look(1100, 900)
    browser.open(whole_report)
    assert browser.tell("document.querySelectorAll('.explorer').length") == 1
    assert {url for url in browser.requests if not url.startswith("data:")} == {whole_report.as_uri()}
    assert browser.complaints == []
    browser.tell("fetch('https://example.org/').catch(() => 0)")  # and the page itself forbids any
    assert "Content Security Policy" in json.dumps(browser.complaints)


@pytest.mark.parametrize("width", [320, 360, 768])
def test_the_report_is_as_wide_as_the_screen(browser, whole_report, width):
    browser.look(width, 740, phone=True)
    browser.open(whole_report)
    assert browser.tell("document.documentElement.scrollWidth") == width


def test_every_picture_says_what_it_shows(browser, whole_report):
    browser.open(whole_report)
    unsaid = """[...document.querySelectorAll('img, svg, canvas, [role=img], button, input, .grid')].filter(e =>
      !(e.alt || e.getAttribute('aria-label') || (e.labels && e.labels.length))).map(e => e.outerHTML.slice(0, 200))"""
    assert browser.tell(unsaid) == []
    assert browser.tell("document.querySelectorAll('img, svg, canvas, [role=img]').length") > 30


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_lines_stand_out_by_day_and_by_night(browser, whole_report, dark):
    """Contrast as the Web Content Accessibility Guidelines have it: 4.5 for words, 3 for lines and bars."""
    browser.look(1100, 900, dark)
    browser.open(whole_report)
    colour = lambda of, what: browser.tell(f"getComputedStyle(document.querySelector({of!r})).{what}")  # noqa: E731
    paper = luminance(colour("body", "backgroundColor"))
    assert (paper < 0.1) == dark
    for words in ("body", "a", "thead th", "figcaption", ".tally"):
        assert contrast(luminance(colour(words, "color")), paper) > 4.5
    for mark in (".chart .rank-0", ".chart .rank-1"):
        assert contrast(luminance(colour(mark, "stroke")), paper) > 3
    assert contrast(luminance(colour(".here", "backgroundColor")), paper) > 3


def luminance(colour):
    """Of "rgb(r, g, b)"."""
    red, green, blue = (int(part) / 255 for part in colour[4:-1].split(","))
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))


def contrast(a, b):
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)
