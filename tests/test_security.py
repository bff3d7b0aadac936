"""What the package must never do with a file or a string; ruff's S rules watch the rest in `make lint`."""

import ast
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parent.parent / "src").rglob("*.py"))
FORBIDDEN = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads"}
MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "subprocess", "joblib"}
ALLOWED = {("phones.py", "joblib")}  # parallel_config alone


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


def test_the_watch_can_see(tmp_path):
    for text in ("import pickle", "eval('1')", "np.load('x')", "np.load('x', allow_pickle=True)", "torch.load('x')"):
        (tmp_path / "x.py").write_text(text)
        with pytest.raises(AssertionError):
            test_nothing_in_a_file_or_a_string_is_executed(tmp_path / "x.py")
