"""Pages: one content, whole in both forms, with every result beside the paper's."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from orbitpool import demo
from orbitpool.experiments import recipes, results
from orbitpool.pictures import mosaic, save_png, sheet
from orbitpool.report import Page, Picture, Section, Table, report, write
from orbitpool.report.page import html, markdown


def page():
    picture = Picture("a.png", b"\x89PNG", "a caption", "a cat | a dog")
    table = Table(("", "x"), [("<b>", "1 & 2"), ("a|b", "3")])
    return Page("A <title>", "Words.", [Section("One", "More words.", table, [picture]), Section("Two")])


class Outline(HTMLParser):
    """Tags that are open, all text, and all addresses."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.addresses, self.alternatives = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)
        attrs = dict(attrs)
        self.addresses += [attrs[name] for name in ("src", "href") if name in attrs]
        self.alternatives += [attrs["alt"]] if tag == "img" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


def test_html_is_well_formed_escaped_and_needs_nothing_else():
    outline = Outline(html(page()))
    assert outline.open == []
    assert {"A <title>", "<b>", "1 & 2", "a caption"} <= set(outline.text)
    assert outline.alternatives == ["a cat | a dog"]
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in outline.addresses)


def test_markdown_has_the_same_content():
    assert markdown(page()) == (
        "# A <title>\n\nWords.\n\n## One\n\nMore words.\n\n"
        "|  | x |\n| --- | --- |\n| <b> | 1 & 2 |\n| a\\|b | 3 |\n\n"
        "![a cat | a dog](a.png)\n\na caption\n\n## Two\n"
    )


def test_every_result_stands_beside_the_papers(tmp_path):
    recipe = recipes.select("table3", ["TIRBM combined"])[0]
    runs = [{"values": [57.5, 58.5], "data": "official", "device": "cpu", "seconds": {"learn": 90.0, "encode": 30.0}}]
    results.save(recipe, {}, runs, tmp_path, False)
    save_png(mosaic(np.eye(3)[None]), tmp_path / "f.png")
    save_png(sheet(np.eye(3)[None, None]), tmp_path / "s.png")
    pictures = {"RBM": "f.png", "RBM in every pose": "s.png", "gone": "gone.png", "inputs": "f.png"}
    figure = {"figure": "figure4", "quick": True, "pictures": pictures, "data": "stand-in", "source": "here"}
    figure["orbits"] = {"RBM": {"sheet": "RBM in every pose", "poses": ["identity"], "filters": [0]}}
    results.write({**figure, "orientation entropy in bits": {"RBM": 2.5}}, tmp_path / "figure4-quick.json")
    made = report(tmp_path)
    *tables, drawn = made.sections
    names = [*(f"Table {i}" for i in range(1, 6)), "Beyond the paper"]
    assert [section.title.split(":")[0] for section in tables] == names
    assert {row[2] for row in tables[0].table.rows} == {"not run"}
    table = tables[2]
    assert [row[0] for row in table.table.rows][:2] == ["RBM: sparse RBM", "TIRBM scaling: sparse TIRBM (scaling only)"]
    assert (
        "TIRBM combined: sparse TIRBM (combined)", "58.7 ± 0.5", "58.0 ± 0.7", "2", "official", "120", "cpu"
    ) in table.table.rows  # fmt: skip
    assert table.table.rows[-1][:3] == ("deep NN (Coates & Ng)", "60.1 ± 1.0", "a result of others")
    assert drawn.title == "Figure 4: filters on natural images (quick: in small)"
    assert drawn.table.rows == [("RBM", "2.50")]
    assert [(picture.caption, bool(picture.orbits)) for picture in drawn.pictures] == [("RBM", True), ("inputs", False)]
    text = write(made, tmp_path / "out").read_text()
    assert (text.count("<img"), text.count('<button type="button" class="filter"')) == (1, 1)


def test_the_demo_compares_and_draws(tmp_path, monkeypatch, said):
    monkeypatch.setattr(demo, "EPOCHS", 2)
    monkeypatch.setattr(demo, "PATCHES", 1000)
    table, similarities, path = demo.demo(tmp_path / "demo", "cpu")
    assert table.head == ("labels", "pixels", "RBM", "TIRBM")
    errors = [[float(cell.rstrip("%")) for cell in row[1:]] for row in table.rows]
    assert all(tirbm < rbm for _, rbm, tirbm in errors)
    text = path.read_text()
    assert all(cell in text for row in (*table.rows, *similarities.rows) for cell in row)
    _, rbm, tirbm, *_ = similarities.rows[0]
    assert float(rbm) < float(tirbm)
    assert text.count('class="explorer"') == 1
    twin = (path.parent / "index.md").read_text()
    named = set(re.findall(r"\]\(([^)]*)\)", twin))
    files = {file.name for file in path.parent.iterdir()}
    assert named <= files
    assert {"digits-turned.svg", "digits-samples-of-the-tirbm.png", "photographs-rotation-in-every-pose.png"} <= named
    assert said == [f"[{i}/{len(demo.STEPS)}] {step}" for i, step in enumerate(demo.STEPS, 1)]  # all, and no other


def test_an_empty_folder_is_no_report(tmp_path):
    with pytest.raises(ValueError, match="holds no results"):
        report(tmp_path)
