import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
import torch

from orbitpool.kernels.crew import AHEAD, in_order


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_results_come_once_each_and_in_order(threads, count, two_cores):
    def work(item):
        sleep(0.001 * (item % 3))
        return 2 * item

    assert list(in_order(work, range(count), threads)) == [2 * item for item in range(count)]


def test_threads_are_at_work_together_and_keep_to_a_core(two_cores):
    meeting = threading.Barrier(2, timeout=60)

    def work(item):
        meeting.wait()  # in vain, if there were one
        return torch.get_num_threads()

    assert list(in_order(work, range(4), 2)) == [1] * 4


def test_cores_of_others_stay_as_they_were(two_cores):
    """Also of threads that begin meanwhile."""

    def look(item):
        with ThreadPoolExecutor(1) as other:
            return other.submit(torch.get_num_threads).result()

    assert list(in_order(look, range(4), 2)) == [2] * 4
    assert look(0) == torch.get_num_threads() == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_there_are_no_gradients(threads, two_cores):
    weight = torch.ones(3, requires_grad=True)
    for result in in_order(lambda item: weight * item, range(4), threads):
        assert not result.requires_grad
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("threads", [1, 2])
def test_little_is_begun_before_it_is_asked_for(threads, two_cores):
    begun = []
    results = in_order(begun.append, range(1000), threads)
    next(results)
    sleep(0.01)
    assert len(begun) <= AHEAD * threads + 1
    results.close()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_is_raised_and_ends_the_work(threads, two_cores):
    done = []

    def work(item):
        if item == 3:
            raise ValueError("3 is too many")
        done.append(item)

    with pytest.raises(ValueError, match="too many"):
        list(in_order(work, range(1000), threads))
    assert 3 <= len(done) <= 3 + AHEAD * threads
    assert torch.get_num_threads() == 2


def test_ctrl_c_ends_the_work(two_cores):
    done, before = [], threading.active_count()

    def work(item):
        if item == 3:
            os.kill(os.getpid(), signal.SIGINT)
        sleep(0.001)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        list(in_order(work, range(10_000), 2))
    assert len(done) < 9_000
    assert threading.active_count() == before
    assert torch.get_num_threads() == 2
