import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
import torch

from orbitpool.kernels.crew import each


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_the_work_is_done_once_for_each(threads, count, two_cores):
    done = []
    each(done.append, range(count), threads)
    assert sorted(done) == list(range(count))


def test_threads_are_at_work_together_and_keep_to_a_core(two_cores):
    meeting, cores = threading.Barrier(2, timeout=60), []

    def work(item):
        meeting.wait()  # for ever, if there were one
        cores.append(torch.get_num_threads())

    each(work, range(4), 2)
    assert cores == [1] * 4


def test_cores_of_others_stay_as_they_were(two_cores):
    each(lambda item: None, range(4), 2)
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_there_are_no_gradients(threads, two_cores):
    weight, results = torch.ones(3, requires_grad=True), []
    with torch.enable_grad():
        each(lambda item: results.append((weight * item).requires_grad), range(4), threads)
    assert results == [False] * 4


@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_is_raised_and_ends_the_work(threads, two_cores):
    done = []

    def work(item):
        if item == 3:
            raise ValueError("3 is too many")
        sleep(0.001)
        done.append(item)

    with pytest.raises(ValueError, match="too many"):
        each(work, range(10_000), threads)
    assert 3 <= len(done) < 1000
    assert torch.get_num_threads() == 2


def test_ctrl_c_ends_the_work(two_cores):
    done, before = [], threading.active_count()

    def work(item):
        if item == 3:
            os.kill(os.getpid(), signal.SIGINT)
        sleep(0.001)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        each(work, range(10_000), 2)
    assert len(done) < 9_000
    assert threading.active_count() == before
    assert torch.get_num_threads() == 2


def test_threads_that_others_start_meanwhile_have_all_cores(two_cores):
    cores = []

    def look():
        other = threading.Thread(target=lambda: cores.append(torch.get_num_threads()))
        other.start()
        other.join()

    each(lambda item: look(), range(4), 2)
    assert cores == [2] * 4


def test_inference_goes_on_in_threads(two_cores):
    with torch.inference_mode():
        out = torch.zeros(4)
        each(lambda item: out[item].fill_(item), range(4), 2)
        assert out.tolist() == [0, 1, 2, 3]
