"""How processes find each other in a store that earlier ones have used, or still use."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore

from orbitpool import meeting
from orbitpool.meeting import name_of_start

LONG = timedelta(seconds=20)


@pytest.fixture
def start():
    """Begins a process of three in a store, as a thread."""
    store = HashStore()
    with ThreadPoolExecutor(12) as threads:

        def started(rank, patience=LONG):
            return threads.submit(name_of_start, store, rank, 3, patience)

        started.store = store
        yield started


def test_who_starts_together_has_one_name_and_every_start_another(start):
    names = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        three = [start(rank) for rank in order]
        (name,) = {each.result() for each in three}
        names.append(name)
    assert len(set(names)) == 3


@pytest.mark.parametrize("order", [(1, 2, 0), (1, 0, 2), (2, 0, 1), (0, 1, 2), (0, 2, 1)])
def test_an_earlier_first_that_still_waits_captures_nobody(start, order, monkeypatch):
    monkeypatch.setattr(meeting, "SETTLED", 2)  # for a machine that is busy
    old = start(0)
    start.store.wait(["first"], LONG)
    stale = start.store.get("first").decode()
    at = order.index(0)
    new = [start(rank) for rank in order[:at]]
    for rank in order[:at]:
        start.store.wait([f"{stale} {rank}"], LONG)  # it has confirmed to the old one
    new += map(start, order[at:])
    (name,) = {each.result() for each in new}
    assert name != stale
    with pytest.raises(ConnectionError, match="another first process has come since"):
        old.result()


def test_who_was_confirmed_and_died_does_not_stand_for_who_comes_later(start):
    short = timedelta(seconds=0.5)
    old = [start(0, short), start(1, short)]
    for each in old:
        with pytest.raises(TimeoutError, match=r"of 3 processes, rank 2 did not come within 0\.5 s"):
            each.result()
    new = [start(2), start(1)]
    time.sleep(0.1)
    new.append(start(0))
    assert len({each.result() for each in new}) == 1


@pytest.mark.parametrize(("rank", "missing"), [(0, "rank 1, 2 did not"), (1, "rank 0 did not")])
def test_who_waits_in_vain_says_for_whom_and_what_to_do(start, rank, missing):
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=f"{missing} come within 0.2 s; .* start all anew"):
        start(rank, timedelta(seconds=0.2)).result()
    assert time.monotonic() - began < 5
