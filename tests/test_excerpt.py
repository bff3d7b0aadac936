import re

import pytest

from orbitpool import transforms as T
from orbitpool.excerpt import excerpt


def test_what_is_cut_says_so():
    assert excerpt([1, 2]) == "[1, 2]"
    assert excerpt("x" * 58) == repr("x" * 58)  # 60 characters
    assert excerpt("x" * 59) == "'" + "x" * 58 + "…"
    assert excerpt(range(10**9), 8) == "range(0…"


def test_errors_end_a_cut_repr_with_dots():
    poses = T.turned_maps(4, 8)
    with pytest.raises(ValueError, match=re.escape(f"start is {repr(poses)[:59]}…; give a set")):
        T.learned(poses)
