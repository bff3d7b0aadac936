import pytest
import torch
from torch.testing import assert_close

from orbitpool import orbit
from orbitpool.kernels import pool_templates, reduce_templates

F64 = torch.float64


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("two_sided", [False, True])
def test_parts_of_any_size_give_the_same_features_and_gradients(how, two_sided, generator):
    v, templates = (torch.randn(*s, generator=generator, dtype=F64, requires_grad=True) for s in ((11, 6), (5, 3, 6)))
    bias = torch.randn(5, 3, generator=generator, dtype=F64, requires_grad=True)
    leaves = v, templates, bias
    results = []
    for budget in (1, 5 * 3 * 8 * 4, 2**20):  # one row, four rows, all of them
        z = pool_templates(*leaves, how, two_sided, budget)
        results.append((z, *torch.autograd.grad(z.sin().sum(), leaves)))
    for other in results[1:]:
        assert_close(results[0], other)
    assert_close(results[0][0].detach(), reduce_templates(*leaves, how, two_sided))
    a = orbit.logits(v, templates, bias)
    assert_close(results[0][0][:, :5], orbit.total(a) if how == "logsumexp" else a.amax(-1))
