"""What the package must never do with a file or a string; ruff's S rules watch the rest in `make lint`."""

import ast
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

HOME = Path(__file__).parent.parent
SOURCES = sorted((HOME / "src").rglob("*.py"))
FORBIDDEN = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads"}
FORBIDDEN |= {"torch.jit.script", "torch.jit.trace"}  # for which torch 2.11 would not be safe
MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "subprocess", "joblib"}
ALLOWED = {
    ("phones.py", "joblib"),  # parallel_config alone
    ("compiled.py", "subprocess"),  # a compiler, on a file of the package itself
}


def calls(tree):
    """Every call in a module by its dotted name."""
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_in_a_file_or_a_string_is_executed(path):
    tree = ast.parse(path.read_text())
    for name, call in calls(tree):
        where, given = f"{path}:{call.lineno}", {keyword.arg: keyword.value for keyword in call.keywords}
        assert name not in FORBIDDEN, f"{where} calls {name}"
        if name in ("np.load", "numpy.load", "np.lib.format.read_array"):
            assert isinstance(given.get("allow_pickle"), ast.Constant), where
            assert given["allow_pickle"].value is False, where
        if name.endswith("torch.load"):
            assert getattr(given.get("weights_only"), "value", None) is True, where
        assert not getattr(given.get("shell"), "value", False), where
        assert not name.endswith((".extractall", ".extract")), f"{where}: members are read, not unpacked to a disk"
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in (name.split(".")[0] for name in names):
            assert name not in MODULES or (path.name, name) in ALLOWED, f"{path} imports {name}"


def test_no_version_that_is_known_to_be_vulnerable_is_asked_for():
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    lines = (line.split("#")[0].split() for line in (HOME / ".ci/safe-versions.txt").read_text().splitlines())
    safe = {line[0]: Version(line[1]) for line in lines if line}
    bounds = {r.name: min(Version(s.version) for s in r.specifier) for r in map(Requirement, asked) if r.specifier}
    older = {name for name, least in bounds.items() if name in safe and least < safe[name]}
    assert {"pillow", "torch", "jinja2", "pyarrow", "onnx"} <= bounds.keys() & safe.keys()
    assert older == {"torch"}  # by torch.jit.script alone, which is forbidden above


def test_the_watch_can_see(tmp_path):
    for text in (
        "import pickle",
        "eval('1')",
        "np.load('x')",
        "np.load('x', allow_pickle=True)",
        "torch.load('x')",
        "torch.jit.script(f)",
    ):
        (tmp_path / "x.py").write_text(text)
        with pytest.raises(AssertionError):
            test_nothing_in_a_file_or_a_string_is_executed(tmp_path / "x.py")
