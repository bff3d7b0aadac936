import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from orbitpool.kernels import matrices
from orbitpool.kernels.matrices import multiply


def laid_out(x, how):
    """The same matrix, otherwise in memory."""
    rows, columns = x.shape
    if how == "columns":
        return x.T.contiguous().T
    if how == "gaps":
        return x.new_full((rows, 3, columns), float("nan")).index_copy_(1, torch.tensor([1]), x[:, None])[:, 1]
    return laid_out(x.T, "gaps").T if how == "columns with gaps" else x


@pytest.mark.parametrize(
    ("name", "value", "whole"),
    [
        ("OMP_THREAD_LIMIT", "1", 0),
        ("OMP_DYNAMIC", "TRUE", 0),
        ("OMP_MAX_ACTIVE_LEVELS", "0", 0),
        ("OMP_DYNAMIC", "false", 1),
    ],
)
def test_products_are_right_where_there_are_fewer_threads_than_torch_counts_on(name, value, whole):
    code = (
        "import torch\n"
        "from orbitpool.kernels import matrices, shortened\n"
        "torch.set_num_threads(2), torch.set_grad_enabled(False)\n"
        "a, b = torch.rand(300, 400), torch.rand(400, 500)\n"
        "for x in (a, shortened(a, 'bfloat16')):\n"
        "    product = matrices.multiply(x, b.to(x.dtype)).double()\n"
        "    assert (product - a.double() @ b.double()).abs().max() < 2\n"
        "print(int(matrices.WHOLE))\n"
    )
    told = {**os.environ, name: value}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, f"{whole}\n"), done.stderr


@pytest.fixture
def onednn(monkeypatch):
    """A processor on which oneDNN multiplies, and matrices of any size for it."""
    if matrices._linear is None or not torch.backends.mkldnn.is_available():
        pytest.skip("torch has no oneDNN")
    monkeypatch.setattr(matrices, "ONEDNN", True)
    monkeypatch.setattr(matrices, "LEAST", 1)


LAYOUTS = ["rows", "columns", "gaps", "columns with gaps"]


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 63, 37), (63, 1, 37), (63, 37, 1), (0, 5, 3), (3, 0, 5), (201, 107, 63)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@torch.no_grad()
def test_products_are_those_of_the_matrices(left, right, shape, dtype, generator, onednn):
    n, d, m = shape
    a, b = torch.randn(n, d, generator=generator).to(dtype), torch.randn(d, m, generator=generator).to(dtype)
    product = multiply(laid_out(a, left), laid_out(b, right))
    assert product.dtype == dtype
    assert product.is_contiguous()
    tolerance = {"rtol": 0.02, "atol": 0.1} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-4}
    assert_close(product.double(), a.double() @ b.double(), **tolerance)


def test_products_have_gradients(generator, onednn):
    a, b = (torch.randn(5, 5, generator=generator, requires_grad=True) for _ in range(2))
    multiply(a, b).sum().backward()
    assert_close(a.grad, b.detach().sum(1).expand(5, 5))
    assert_close(b.grad, a.detach().sum(0)[:, None].expand(5, 5))


@torch.no_grad()
def test_what_torch_was_told_holds(generator, onednn, monkeypatch):
    monkeypatch.setattr(matrices, "_linear", lambda *given: pytest.fail("oneDNN was asked"))
    a, b = torch.randn(21, 17, generator=generator), torch.randn(17, 13, generator=generator)
    with torch.autocast("cpu"):
        assert torch.equal(multiply(a, b), a @ b)
    try:
        torch._C._set_mkldnn_enabled(False)  # as torch.backends.mkldnn.flags does, which warns of other things
        assert torch.equal(multiply(a, b), a @ b)
    finally:
        torch._C._set_mkldnn_enabled(True)
