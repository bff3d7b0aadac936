import importlib.util

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from orbitpool import TIOMP, TIRBM
from orbitpool import transforms as T
from orbitpool.modules import export, export_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx and onnxruntime")
SHIFTS = T.translations((5, 7), (4, 5))


@pytest.fixture
def colours():
    return np.random.default_rng(0).uniform(size=(90, 5, 7, 3)).astype(np.float32).reshape(90, -1)


def run(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["output"], {"input": inputs})[0]


@pytest.mark.parametrize(
    "learner",
    [
        TIRBM(6, SHIFTS, visible="gaussian", sigma=0.7, two_sided=True, n_iter=1),
        TIOMP(6, SHIFTS, alpha=0.1, n_iter=2),
    ],
    ids=str,
)
def test_a_file_gives_what_transform_gives_for_batches_of_any_size(learner, colours, tmp_path):
    path = tmp_path / "model.onnx"
    learner.set_params(random_state=0).fit(colours).export_onnx(path)
    assert path.stat().st_size < 4 * learner.to_module().templates().numel() + 20_000  # filters are there but once
    for n in (1, 2, 90):
        assert_allclose(run(path, colours[:n]), learner.transform(colours[:n]), atol=1e-5)


@pytest.mark.parametrize("around", ["float64", "autocast", "inference"])
def test_a_file_is_the_same_whatever_torch_was_told(around, colours, tmp_path):
    model = TIRBM(6, SHIFTS, visible="gaussian", two_sided=True, n_iter=1, random_state=0).fit(colours)
    expected, before = model.transform(colours), torch.get_default_dtype()
    contexts = {"autocast": torch.autocast("cpu", torch.bfloat16), "inference": torch.inference_mode()}
    try:
        torch.set_default_dtype(torch.float64 if around == "float64" else before)
        with contexts.get(around, torch.enable_grad()):
            model.export_onnx(tmp_path / "model.onnx")
        assert torch.get_default_dtype() == (torch.float64 if around == "float64" else before)
    finally:
        torch.set_default_dtype(before)
    assert_allclose(run(tmp_path / "model.onnx", colours), expected, atol=1e-5)


def test_a_larger_network_is_exported_with_its_poses(colours, tmp_path):
    path = tmp_path / "network.onnx"
    module = TIRBM(6, SHIFTS, n_iter=1, random_state=0).fit(colours).to_module()
    network = nn.Sequential(module, nn.Linear(6, 3))
    export_onnx(network, torch.zeros(1, 105), path)
    with torch.no_grad():
        assert_allclose(run(path, colours), network(torch.from_numpy(colours)), atol=1e-5)
    assert set(network.state_dict()) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_a_model_too_large_for_a_file_is_refused(colours, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "LIMIT", 1000)
    learner = TIOMP(4, n_iter=1, random_state=0).fit(colours)
    with pytest.raises(ValueError, match=r"filters in all poses take 3,360 bytes, and an ONNX file holds 1,000"):
        learner.export_onnx(tmp_path / "model.onnx")


def test_a_network_that_fixes_the_batch_size_is_refused_and_no_file_touched(tmp_path):
    class Rows(nn.Module):
        def forward(self, x):
            return x.view(len(x), -1, 2)

    path = tmp_path / "rows.onnx"
    path.write_bytes(b"before")
    with pytest.raises(ValueError, match=r"fixed the batch size at 2; take len\(x\)"):
        export_onnx(Rows(), torch.zeros(3, 4), path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("missing", ["onnx", "onnxscript"])
def test_without_the_extra_the_error_says_what_to_install(missing, colours, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(export, "find_spec", lambda name: None if name == missing else find(name))
    learner = TIOMP(4, n_iter=1).fit(colours)
    with pytest.raises(ImportError, match=rf"needs {missing}, which is not installed: pip install 'orbitpool\[onnx\]'"):
        learner.export_onnx(tmp_path / "model.onnx")
