import copy
import pickle
from math import pi

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.testing import assert_close

from orbitpool import transforms as T


@st.composite
def sets(draw):
    """Any family, on square and rectangular fields, and products of two."""
    w, slack, n = draw(st.integers(1, 6)), draw(st.integers(0, 4)), draw(st.integers(1, 4))
    wide = w + draw(st.integers(0, 3))
    window, field = (w, wide), (w + slack, wide + slack)
    family = draw(
        st.sampled_from(["identity", "shift", "turn", "zero turn", "scale", "time", "mirror", "product", "pad"])
    )
    return {
        "identity": lambda: T.identity(window),
        "shift": lambda: T.translations(field, window, n),
        "turn": lambda: T.rotations(window, n, 0.3, field=field),
        "zero turn": lambda: T.rotations(window, n, 0.3, border="zero"),
        "scale": lambda: T.scalings(field, window, n),
        "time": lambda: T.time_shifts(w + slack, w, n),
        "mirror": lambda: T.mirrors(window),
        "product": lambda: T.compose(T.rotations(window, n, 0.3), T.translations(field, window, n)),
        "pad": lambda: T.pad(window, field),
    }[family]()


def test_orders_are_those_of_operators_that_only_move_pixels():
    v = np.arange(25.0)
    for turns in (T.rotations(5, 8, pi / 4), T.union(T.rotations(5, 4, pi / 2), T.rotations(5, 3, pi / 12))):
        moved = turns.apply(v)
        expected = [u for u in moved if np.allclose(np.sort(u), v)]
        assert len(expected) == len(turns.orders) >= 4
        assert_allclose([v[order] for order in turns.orders], expected, atol=1e-6)
    assert len(T.turned_maps(4, 8, shifts=((0, 0), (0.5, 0))).orders) == 4
    assert T.rotations(5, 8, pi / 4, field=7).orders == []


def test_no_inputs_give_no_outputs():
    turns = T.rotations(4, 3, 0.5)
    assert turns.apply(torch.zeros(0, 32)).shape == (0, 3, 32)
    assert turns.adjoint(torch.zeros(0, 3, 32)).shape == (0, 32)
    assert turns.orbit(np.zeros((0, 16), np.float32)).shape == (0, 3, 16)


@given(sets(), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2**31))
def test_apply_adjoint_and_orbit_are_the_dense_matrices(transforms, n, channels, seed):
    """<T v, u> = <v, T'u>, and both are what the matrices say, for any number of inputs and channels."""
    rng = torch.Generator().manual_seed(seed)
    S, d2, d1 = (dense := transforms.to_dense()).shape
    v = torch.randn(n, d1, channels, generator=rng, dtype=torch.float64)
    u = torch.randn(n, S, d2, channels, generator=rng, dtype=torch.float64)
    Tv, Tu = transforms.apply(v.flatten(1)), transforms.adjoint(u.flatten(2))
    assert_close((Tv * u.flatten(2)).sum(), (v.flatten(1) * Tu).sum())
    assert_close(Tv, torch.einsum("sji,nic->nsjc", dense, v).flatten(2))
    assert_close(Tu, torch.einsum("sji,nsjc->nic", dense, u).flatten(1))
    assert_close(transforms.orbit(u[:, 0].flatten(1)), torch.einsum("sji,njc->nsic", dense, u[:, 0]).flatten(2))


def test_leading_axes_and_numpy_are_kept():
    turns = T.rotations(4, 3, 0.5)
    v = np.random.default_rng(0).normal(size=(2, 5, 16)).astype(np.float32)
    moved = turns.apply(v)
    assert moved.shape == (2, 5, 3, 16)
    assert moved.dtype == np.float32
    assert_allclose(moved[1, 2], turns.apply(v[1, 2]), atol=1e-6)
    assert turns.adjoint(moved).shape == v.shape
    assert turns.apply(np.arange(16)).dtype == np.float64
    for awkward in (v[:, :, ::-1], v.astype(">f4"), v.astype(np.longdouble)):
        assert_allclose(turns.apply(awkward), turns.apply(np.array(awkward, np.float32)), atol=1e-6)
    with pytest.raises(ValueError, match="an array of complex64 is not one of real numbers"):
        turns.apply(v + 1j)


@pytest.mark.parametrize("name", ["apply", "adjoint", "orbit"])
def test_gradients_of_every_order(name):
    transforms = T.rotations(3, 2, 0.4, field=4)
    shape = {"apply": (2, 32), "adjoint": (2, 2, 18), "orbit": (2, 18)}[name]
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(getattr(transforms, name), x)
    assert torch.autograd.gradgradcheck(getattr(transforms, name), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_operators_follow_their_input(dtype):
    transforms = T.scalings(8, 6, 1)
    v = torch.rand(5, 64, dtype=torch.float64)
    moved = transforms.apply(v.to(dtype))
    assert moved.dtype == dtype
    assert_close(moved.double(), transforms.apply(v), atol=4 * torch.finfo(dtype).eps, rtol=0)
    assert transforms.to(dtype=dtype).dtype == dtype
    assert transforms.to(dtype=dtype) is transforms.to(dtype=dtype)


def test_indexing_chooses_and_iteration_visits_each():
    shifts = T.translations(5, 3)
    assert shifts[2].labels == ("shift (0, 2)",)
    assert shifts[-1] == shifts[8]
    assert shifts[[1, 3]] == T.union(shifts[1], shifts[3])
    assert_array_equal(shifts[2:5].to_dense(), shifts.to_dense()[2:5])
    assert T.union(*shifts) == shifts
    with pytest.raises(IndexError):
        shifts[9]
    with pytest.raises(ValueError, match="chooses none of 9"):
        shifts[9:]


def test_equality_pickling_and_copies():
    turns = T.rotations(6, 3, pi / 8)
    assert turns == T.rotations(6, 3, pi / 8)
    assert turns != T.rotations(6, 3, pi / 9)
    assert turns != T.rotations(6, 3, pi / 8, border="zero")
    assert turns != "turns"
    assert hash(turns) == hash(T.rotations(6, 3, pi / 8))
    x = torch.ones(36, dtype=torch.float64, requires_grad=True)
    turns.adjoint(turns.apply(x)).sum().backward()  # fills the caches, which must not travel
    turns.apply(np.ones(36, np.float32))
    for twin in (pickle.loads(pickle.dumps(turns)), copy.deepcopy(turns), copy.copy(turns)):
        assert twin == turns
    assert len(pickle.dumps(turns)) < 2 * turns.nbytes


def test_repr_says_what_it_is():
    assert repr(T.rotations(28, 16, pi / 8)) == "TransformSet(16 of 28×28 → 28×28: rotate -157.5°, …, rotate +180°)"
    assert repr(T.time_shifts(11, 10)) == "TransformSet(2 of 11 → 10: shift 0, shift 1)"


def test_a_set_used_on_the_wrong_field_says_so():
    shifts = T.translations(8, 6)
    with pytest.raises(
        ValueError, match="length 100 do not fit a field of 8×8 = 64 pixels; the length must be 64 times"
    ):
        shifts.apply(np.zeros((3, 100)))
    with pytest.raises(ValueError, match="length 64 do not fit a window of 6×6 = 36 pixels"):
        shifts.orbit(np.zeros((3, 64)))
    with pytest.raises(ValueError, match=r"adjoint got shape \(3, 4, 36\); it takes \(..., 9, 36\)"):
        shifts.adjoint(np.zeros((3, 4, 36)))
    with pytest.raises(ValueError, match=r"dtype torch.int64 has no fractions"):
        shifts.apply(torch.zeros(64, dtype=torch.int64))


def test_a_moved_batch_is_a_view_with_the_batch_last():
    """What the fast products rely on: no copy, pixels first in memory."""
    moved = T.rotations(4, 3, 0.5).apply(torch.rand(7, 16))
    assert moved.permute(2, 1, 0).is_contiguous()
    assert_allclose(moved.shape, (7, 3, 16))


def test_only_the_identity_leaves_inputs_alone():
    halves = T.from_matrices(np.stack([np.eye(4)[::2], np.eye(4)[1::2]]), (2, 2), (2,))
    assert T.identity(3).leaves_alone
    assert not any(
        each.leaves_alone for each in (halves, T.time_shifts(11, 9)[0], T.translations(4, 3), T.mirrors(3), T.pad(2, 3))
    )
