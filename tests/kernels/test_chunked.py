import subprocess
import sys
from math import pi

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from orbitpool import orbit
from orbitpool import transforms as T
from orbitpool.kernels import reduce_orbit, reduce_templates
from orbitpool.kernels.chunked import plan

SETS = [T.identity(5), T.translations(7, 5), T.rotations(5, 7, 0.3), T.scalings(8, 4, 1), T.time_shifts(11, 9)]
SETS += [T.rotations(5, 8, pi / 4), T.rotations(4, 4, -pi / 2, field=6)]  # quarter turns of each other


def by_definition(v, W, transforms, bias, how, two_sided):
    """The whole (N, K, S) and then the reduction."""
    posed = orbit.templates(W, transforms)
    signs = [orbit.logits(sign * v, posed, bias) for sign in ((1, -1) if two_sided else (1,))]
    return torch.cat([a.amax(-1) if how == "max" else torch.logsumexp(a, -1) for a in signs], -1)


@given(
    st.sampled_from(SETS),
    st.integers(0, 63),
    st.integers(1, 37),
    st.integers(1, 3),
    st.sampled_from(["logsumexp", "max"]),
    st.booleans(),
    st.sampled_from([1, 3_000, 50_000, 2**26]),
)
def test_chunks_of_any_size_give_the_definition(transforms, n, k, channels, how, two_sided, budget):
    rng = torch.Generator().manual_seed(n * k)
    S, d2, d1 = transforms.to_dense().shape
    v, W = (torch.randn(m, d * channels, generator=rng, dtype=torch.float64) for m, d in ((n, d1), (k, d2)))
    bias = torch.randn(k, S, generator=rng, dtype=torch.float64)
    kept = v.clone(), W.clone(), bias.clone()
    reduced = reduce_orbit(v, W, transforms, bias, how, two_sided, budget=budget)
    assert_close(reduced, by_definition(v, W, transforms, bias, how, two_sided))
    assert_close((v, W, bias), kept, rtol=0, atol=0)
    scale = torch.rand(k, S, generator=rng, dtype=torch.float64)
    scaled = reduce_orbit(v, W, transforms, how=lambda a: a.amin(-1), scale=scale, budget=budget)
    a = orbit.logits(v, orbit.templates(W, transforms), torch.zeros_like(bias))
    assert_close(scaled, (a * scale).amin(-1))
    posed = orbit.templates(W, transforms)
    assert_close(reduce_templates(v, posed, bias, how, two_sided, budget), reduced)
    unbiased = reduce_orbit(v, W, transforms, how=how, two_sided=two_sided, budget=budget)
    assert_close(unbiased, by_definition(v, W, transforms, torch.zeros_like(bias), how, two_sided))


def test_the_cheaper_side_is_moved():
    square, cropped = T.rotations(28, 16, pi / 8), T.translations(8, 6, 2)
    assert plan(100, 1000, 1, square, 4, 2**26).move == "inputs"  # fewer inputs than filters
    assert plan(20_000, 1000, 1, square, 4, 2**26).move == "filters"
    assert plan(20_000, 1000, 1, square, 4, 2**26, share=3 / 8).move == "inputs"
    assert plan(20_000, 1000, 3, cropped, 4, 2**26).move == "inputs"  # a smaller window makes the product smaller


@given(
    st.sampled_from(SETS), st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 3), st.integers(2**20, 2**28)
)
def test_a_plan_keeps_to_its_budget(transforms, n, k, channels, budget):
    S, d2, d1 = transforms.to_dense().shape
    steps = plan(n, k, channels, transforms, 4, budget)
    moved = steps.rows * S * d2 if steps.move == "inputs" else steps.filters * S * d1
    assert 1 <= steps.rows <= n
    assert 1 <= steps.filters <= k
    logits = S * steps.rows * steps.filters
    assert 4 * (2 * moved * channels + 4 * logits) <= budget or steps.rows == steps.filters == 1


def test_peak_memory_stays_under_a_gigabyte():
    """N=20,000, K=1,000, S=16, D=784 would be 1.28 GB as one tensor; inputs and result take 0.15 GB."""
    script = """
import resource, torch
from math import pi
from orbitpool import transforms as T
from orbitpool.kernels import reduce_orbit
v, W = torch.rand(20_000, 784), torch.randn(1000, 784)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
z = reduce_orbit(v, W, T.rotations(28, 16, pi / 8))
assert z.shape == (20_000, 1000) and z.isfinite().all()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1.0


def test_what_does_not_fit_is_refused():
    shifts, v, W = T.translations(8, 6), torch.zeros(2, 192), torch.zeros(4, 108)
    for bad_v, bad_W in ((v[:, :64], W), (v, W[:, :36]), (v[:, :100], W), (v[:, :0], W)):
        with pytest.raises(ValueError, match=r"do not fit a field|they must have as many"):
            reduce_orbit(bad_v, bad_W, shifts)
    with pytest.raises(ValueError, match="how is 'mean'; choose one of logsumexp, max, or give a function"):
        reduce_orbit(v, W, shifts, how="mean")
    with pytest.raises(ValueError, match=r"bias has shape \(4,\); 4 filters in 9 poses"):
        reduce_orbit(v, W, shifts, torch.zeros(4))
    with pytest.raises(ValueError, match=r"of one type, or filters in bfloat16, on one device"):
        reduce_orbit(v[0], W, shifts)
    with pytest.raises(ValueError, match="of one type, or filters in bfloat16, on one device"):
        reduce_orbit(v.double(), W, shifts)
