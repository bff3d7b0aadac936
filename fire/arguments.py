"""Odd arguments for every public name: what is refused is a ValueError or TypeError, and nothing crashes or hangs."""

import inspect
import math
import multiprocessing
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seed_of
from hypothesis import strategies as st

from fire.summary import Part

MODULES = (
    "transforms",
    "orbit",
    "learners",
    "images",
    "speech",
    "classifiers",
    "datasets",
    "modules",
    "kernels",
    "discovery",
)
LONGEST = 10  # seconds
NAMED = {  # what is documented for names that read, fetch, or learn
    "datasets": (OSError,),
    "speech": (OSError,),
    "modules": (OSError, ImportError),
    "": (OSError, FloatingPointError),
    "learners": (OSError, FloatingPointError),
    # Mathematics on tensors, whose complaints are torch's own: what people hand over is checked by the estimators.
    "orbit": (RuntimeError, AttributeError, IndexError),
    "kernels": (RuntimeError, AttributeError, IndexError, ZeroDivisionError),
}
ABSTRACT = ("Learner",)
FEW = {"n_iter": 2, "max_iter": 3}  # so that what is accepted takes no time


def targets() -> dict[str, Callable[..., Any]]:
    """Every public function and class by its name, once."""
    found: dict[str, Callable[..., Any]] = {}
    for name in ("", *MODULES):
        module = import_module(f"orbitpool.{name}".rstrip("."))
        for public in module.__all__:
            thing = getattr(module, public)
            if isinstance(thing, ModuleType) or thing in found.values() or public in ABSTRACT:
                continue
            if inspect.isfunction(thing) or (inspect.isclass(thing) and not issubclass(thing, BaseException)):
                found[f"{name}.{public}".lstrip(".")] = thing
    return found


def _arrays() -> st.SearchStrategy[Any]:
    shapes = st.sampled_from(
        [(), (0,), (3,), (64,), (2, 3), (0, 64), (4, 64), (3, 8, 8), (2, 9, 9, 3), (1, 1, 1, 1, 1)]
    )
    kinds = st.sampled_from(["f4", "f8", "i8", "u1", "?", "c8", "O", "U3", "f2"])

    def make(shape: tuple[int, ...], kind: str, odd: Any) -> Any:
        values = np.asarray(np.random.default_rng(0).random(shape) * 3)
        if kind in "fdf4f8f2" and values.size and odd is not None:
            values.reshape(-1)[0] = odd
        with warnings.catch_warnings(action="ignore"):
            return values.astype(kind)

    arrays = st.builds(make, shapes, kinds, st.sampled_from([None, None, np.nan, np.inf, -1e30]))

    def tensor(a: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(a)) if a.dtype.kind in "fiub" else a

    return arrays | arrays.map(tensor) | arrays.map(lambda a: a.tolist())


def anything() -> st.SearchStrategy[Any]:
    """Values that somebody may hand over."""
    from orbitpool import TIRBM
    from orbitpool import transforms as T

    sets = [T.identity(8), T.rotations(8, count=4, step=math.pi / 2), T.time_shifts(5, 3), T.translations(3, 2)]
    numbers = st.sampled_from([0, 1, 2, 3, 8, -1, 10**12, -(2**63), True, 0.5, -0.5, 1e308, math.nan, math.inf, 2 + 1j])
    odd = st.sampled_from(
        [None, "", "rot", "cpu", "no such thing", b"x", (), [], {}, (8, 8), (8, -8), [3, 2], {0: 0.5}, object(), print]
    )
    things = st.sampled_from([*sets, TIRBM(2), lambda image: image, np.random.default_rng(0), torch.Generator()])
    return numbers | odd | things | _arrays()


def calls(target: Callable[..., Any]) -> st.SearchStrategy[tuple[list[Any], dict[str, Any]]]:
    """Arguments for a callable: those that it needs, and some of those that it may have."""
    needed, may, rest = [], {}, []
    for parameter in inspect.signature(target).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = [anything(), anything()]
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        elif parameter.default is parameter.empty:
            needed.append(anything())
        else:
            may[parameter.name] = anything()
    some = st.lists(st.sampled_from(sorted(may)), max_size=2, unique=True) if may else st.just([])
    chosen = some.flatmap(lambda names: st.fixed_dictionaries({name: may[name] for name in names}))
    return st.tuples(st.tuples(*needed, *rest).map(list), chosen)


def check(name: str, target: Callable[..., Any], examples: int, seed: int = 0) -> str | None:
    """What is wrong with a public name, if anything, in words that say how to see it."""
    refusals = (ValueError, TypeError, *NAMED.get(name.rpartition(".")[0], ()))
    inputs = st.lists(_arrays(), max_size=2)

    @seed_of(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
        report_multiple_bugs=False,
    )
    @given(calls(target), inputs)
    def tried(given_: tuple[list[Any], dict[str, Any]], X: list[Any]) -> None:
        try:
            with warnings.catch_warnings(action="ignore"), _in_time():
                made = target(*given_[0], **given_[1])
                if hasattr(made, "fit"):
                    made.set_params(**{key: value for key, value in FEW.items() if key in made.get_params(deep=False)})
                    made.fit(*X) if X else made.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        except refusals:
            return
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and not any(
                w in str(error) for w in ("memory", "allocate", "storage")
            ):
                raise

    try:
        tried()
    except BaseException as error:
        notes = " ".join(getattr(error, "__notes__", []))
        return f"{name}: {type(error).__name__}: {str(error)[:300]} {notes[:600]}"
    return None


class _in_time:
    """Raises TimeoutError inside after a while, where there is an alarm."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(LONGEST)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    @staticmethod
    def _ring(*_: object) -> None:
        raise AssertionError(f"it took longer than {LONGEST} s")


def _work(names: Any, answers: Any, examples: int, seed: int) -> None:
    torch.set_num_threads(1)
    import os

    os.environ["ORBITPOOL_DATA"] = "/nonexistent"
    os.environ["HTTP_PROXY"] = os.environ["HTTPS_PROXY"] = "http://127.0.0.1:9"  # nothing is fetched
    known = targets()
    size = int(next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmSize")).split()[1])
    resource.setrlimit(resource.RLIMIT_AS, (size * 1024 + 2**31, size * 1024 + 2**31))
    while (name := names.get()) is not None:
        answers.put((name, "began", None))
        answers.put((name, "ended", check(name, known[name], examples, seed)))


def run(seconds: float, seed: int, examples: int = 40) -> Part:
    """All public names, each in a process that may die."""
    start, context = perf_counter(), multiprocessing.get_context("spawn")
    todo, wrong, done = iter(targets()), [], 0
    slowest = (0.0, "")
    for outcome in _outcomes(context, todo, examples, seed, start + seconds):
        name, problem, took = outcome
        done += 1
        slowest = max(slowest, (took, name))
        wrong += [problem] if problem else []
    left = len(targets()) - done
    return Part(
        "arguments",
        f"{done} public names with {examples} sets of odd arguments each",
        f"{done - len(wrong)} refused by ValueError, TypeError or what is documented, or worked",
        f"slowest {slowest[0]:.1f} s for all of {slowest[1]}",
        wrong,
        perf_counter() - start,
        [f"{left} names, for lack of time"] if left else [],
    )


def _outcomes(
    context: Any, todo: Iterator[str], examples: int, seed: int, until: float
) -> Iterator[tuple[str, str | None, float]]:
    names, answers, process = context.Queue(), context.Queue(), None
    for name in todo:
        if perf_counter() > until:
            break
        if process is None:
            process = context.Process(target=_work, args=(names, answers, examples, seed), daemon=True)
            process.start()
        names.put(name)
        began, problem = perf_counter(), None
        while True:
            try:
                _, state, problem = answers.get(timeout=1)
                if state == "ended":
                    break
            except Exception:  # nothing yet
                if process.exitcode is not None or perf_counter() - began > 30 * LONGEST:
                    problem = f"{name}: the process died ({process.exitcode}) or hung"
                    process.kill()
                    process, names, answers = None, context.Queue(), context.Queue()
                    break
        yield name, problem, perf_counter() - began
    if process is not None:
        names.put(None)
        process.join()
