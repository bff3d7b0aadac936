"""What README and the pages of docs/ say: every snippet and command runs, every name in the paper map exists.

The guide and the examples are run by `make docs`.
"""

import ast
import importlib
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import soundfile
import typer
from benchmarks import plan
from lab import results
from PIL import Image
from sklearn.datasets import load_sample_images

from orbitpool import cli

HOME = Path(__file__).parent.parent
DOCUMENTS = sorted([HOME / "README.md", HOME / "CONTRIBUTING.md", *(HOME / "docs").glob("*.md")])
RUN = ("python", "sh")
SHOWN = ("", "{toctree}", "{eval-rst}", "{include} ../CHANGELOG.md")  # what is printed, and what Sphinx does

# What is run in small: the text in the document, and what takes its place.
SMALLER = {
    "n_patches=400_000": "n_patches=2000",
    "n_components=1600": "n_components=10",
    "TIRBM(256, shifts": "TIRBM(8, shifts",
    "n_iter=30": "n_iter=2",
    "orbitpool fit photos --out": "orbitpool fit photos --components 8 --epochs 2 --out",
    "orbitpool fit recordings.csv --kind sound": "orbitpool fit recordings.csv --kind sound --components 8 --epochs 2",
}
# What is not run, and why; arguments are checked all the same.
NOT_RUN = {
    "make demo": "make wheel runs the demo",
    "make test": "this is a part of it",
    "make docs": ".ci/run does",
    "make fire": "takes twenty minutes; test_damage.py and test_arguments.py run slices of it",
    "make fire PARTS=inputs SECONDS=120": "takes minutes; test_damage.py runs a slice of it",
    "make audit": "depends on what is installed",
    "make bench": "takes minutes, and a quiet machine",
    "orbitpool reproduce table1 --quick": "needs MNIST and minutes",
    "orbitpool reproduce table1 --rows rot --seeds 5": "needs MNIST and an hour",
    "orbitpool reproduce beyond": "needs MNIST and an hour; experiments/test_beyond.py runs two rows in small",
    "orbitpool reproduce found": "needs MNIST, CIFAR-10 and minutes; experiments/test_found.py runs it in small",
    "orbitpool reproduce invariance": "needs MNIST and minutes; experiments/test_invariance.py runs it in small",
    "orbitpool reproduce figure4": "takes two minutes; experiments/test_experiments.py draws it in small",
}


def blocks(document):
    """The fenced blocks of a document: language and text."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", document.read_text(), re.M | re.S)


def commands(text):
    """The commands of a block, without comments."""
    return [shlex.join(words) for line in text.splitlines() if (words := shlex.split(line, comments=True))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the documents speak of: photographs in classes, recordings, results."""
    for name, photograph in zip(("temple", "flower"), load_sample_images().images, strict=True):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(12):
            top, left, size = 30 * i, 45 * i, 32 + i
            Image.fromarray(photograph[top : top + size, left : left + size]).save(
                tmp_path / "photos" / name / f"{i}.png"
            )
    rows = ["file,start,end,label"]
    photograph = load_sample_images().images[0][..., 0].astype(float).ravel() / 255 - 0.5
    for i in range(8):  # a photograph read line by line, at two speeds: sound enough
        soundfile.write(tmp_path / f"{i}.wav", photograph[8000 * i :: 1 + i % 2][:8000], 16_000)
        rows += [f"{i}.wav,0,0.25,{'fast' if i % 2 else 'slow'}", f"{i}.wav,0.25,,{'fast' if i % 2 else 'slow'}"]
    (tmp_path / "recordings.csv").write_text("\n".join(rows))
    shutil.copytree(HOME / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def smaller(text):
    for whole, part in SMALLER.items():
        text = text.replace(whole, part)
    return text


def test_every_block_is_run_or_is_none_to_run():
    found = {language for document in DOCUMENTS for language, _ in blocks(document)}
    assert found <= {*RUN, *SHOWN}
    everything = "\n".join(text for document in DOCUMENTS for _, text in blocks(document))
    assert [text for text in SMALLER if text not in everything] == []
    said = [
        command
        for document in DOCUMENTS
        for language, text in blocks(document)
        if language == "sh"
        for command in commands(text)
    ]
    assert [command for command in NOT_RUN if command not in said] == []


@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if any(language in RUN for language, _ in blocks(d))], ids=lambda d: d.name
)
def test_snippets_and_commands_run(document, folder, monkeypatch, capsys):
    """In the order of the document: later snippets use what earlier ones made."""
    names, count, skipped = {}, 0, []
    for language, text in blocks(document):
        if language == "python":
            exec(compile(smaller(text), f"{document.name}: {text.splitlines()[0]}", "exec"), names)
            printed = capsys.readouterr().out
            for said in re.findall(r"^print\(.*\)\s+# (.*)$", text, re.M):
                assert said in printed
            count += 1
        for command in commands(text) if language == "sh" else []:
            check_arguments(command)
            if command in NOT_RUN:
                skipped.append(command)
                continue
            monkeypatch.setattr(sys, "argv", shlex.split(smaller(command)))
            with pytest.raises(SystemExit) as end:
                cli.main()
            assert end.value.code == 0, f"{command}: {capsys.readouterr().err}"
            count += 1
    with capsys.disabled():
        print(f"\n{document.name}: {count} snippets and commands run, {len(skipped)} not")


def test_the_plan_for_large_data_is_the_one_that_is_computed():
    document = (HOME / "docs/scaling.md").read_text()  # python -m benchmarks.plan --write
    assert plan.table() in document
    assert plan.two_cores() in document


@pytest.mark.parametrize("name", plan.UPDATES)
def test_the_cost_model_is_near_to_the_three_updates_that_two_of_its_constants_are_fitted_to(name):
    model, rows = plan.UPDATES[name]
    assert 1000 * model.seconds(rows, 1) == pytest.approx(plan.H200[name], rel=0.1)
    assert 0 < plan.LEARNED < 1


@pytest.mark.parametrize("name", plan.unfitted())
def test_the_cost_model_misses_what_it_was_not_fitted_to_by_less_than_it_says(name):
    modelled, measured = plan.unfitted()[name]
    assert modelled == pytest.approx(measured, rel=plan.NEAR)
    assert "by less than two fifths of what was measured" in (HOME / "docs/scaling.md").read_text()


def check_arguments(command):
    """Raise unless a command of ours, or a target of the Makefile, takes these arguments."""
    program, name, *arguments = shlex.split(command)
    if program == "make":
        assert re.search(rf"^{name}:", (HOME / "Makefile").read_text(), re.M), f"there is no {command}"
    else:
        assert program == "orbitpool", f"{command} is none of ours; say in NOT_RUN why it is not run"
        typer.main.get_command(cli.app).commands[name].make_context(name, arguments)


def rows_of_the_map():
    """Paper, code and test of each row of the paper map, the last two as what stands in backticks."""
    lines = (HOME / "docs/paper-map.md").read_text().splitlines()
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for line in lines if line.startswith("|")][2:]
    return [
        (paper.strip(), re.findall("`([^`]+)`", code), re.findall("`([^`]+)`", test)) for paper, code, test in cells
    ]


@pytest.mark.parametrize(
    ("paper", "code", "tests"), rows_of_the_map(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_paper_map_names_what_exists(paper, code, tests):
    assert code
    assert tests
    for expression in code:
        for name in dotted_names(expression):
            resolve(name)
    file = ""
    for test in tests:
        file, _, function = (f"{file}{test}" if test.startswith("::") else test).partition("::")
        defined = {
            node.name
            for node in ast.parse((HOME / "tests" / file).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert function in defined or (not function and any(name.startswith("test_") for name in defined)), test


def dotted_names(expression):
    """The functions and classes that an expression calls or names."""
    tree = ast.parse(expression, mode="eval")
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, (ast.Name, ast.Attribute)) and id(n) not in inner]


def resolve(name):
    """What a name in the package stands for, `orbit.energy` or `TIRBM._update`; AttributeError if nothing."""
    found = importlib.import_module("orbitpool")
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


def test_the_page_of_results_is_what_the_results_say():
    assert results.PAGE.read_text() == results.page(), "write it anew: PYTHONPATH=src python -m lab.results"


RESULTS = {  # lines of the README's table, and the rows whose figures stand there
    "turned digits, error: RBM": ["table1-rot-rbm"],
    "TIRBM, 16 turns; 32 turns": ["table1-rot-tirbm", "table1-rot-tirbm-32-turns"],
    "TIRBM, transformations found without labels": ["beyond-rot-auto"],
    "two layers (`Stack`)": ["beyond-rot-stack"],
    "CIFAR-10, accuracy, 1,600 filters: RBM; TIRBM, combined": ["table2-rbm", "table2-tirbm-combined"],
    "TIOMP, combined; averaged with the mirror image": ["table2-tiomp-combined", "beyond-cifar10-tiomp-mirror"],
    "TIOMP, 4,000 filters; averaged with the mirror image": [
        "table2-tiomp-combined-4000",
        "beyond-cifar10-tiomp-4000-mirror",
    ],
}


def test_the_readme_has_the_figures_of_the_results():
    lines = [line.split("|") for line in (HOME / "README.md").read_text().splitlines() if line.startswith("|")]
    shown = {cells[1].strip(): cells[-2].strip() for cells in lines}
    for line, rows in RESULTS.items():
        found = [json.loads((HOME / "results" / f"{row}.json").read_text()) for row in rows]
        assert shown[line] == "; ".join(f"{each['mean']:.1f} ± {each['std']:.1f}" for each in found), line
