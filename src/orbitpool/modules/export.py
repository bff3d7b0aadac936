"""ONNX files of modules, for programs that have neither Python nor torch."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from orbitpool.kernels import undisturbed
from orbitpool.modules.layer import OrbitModule
from orbitpool.wholefile import write_whole

LIMIT = 2**31  # bytes of one protocol buffer


def export_onnx(module: nn.Module, example: Tensor, path: str | os.PathLike[str]) -> None:
    """Write a module that holds learned features as an ONNX file, with `input` and `output` of any batch size.

    The poses of filters are computed once and stored; the module itself stays as it is. The file appears whole or not
    at all. Needs the extra `onnx`.

    Parameters
    ----------
    module : nn.Module
        Made by `to_module`, or a network around such modules.
    example : tensor (N, ...)
        Inputs of the shape and type that the file is to take; N is free.
    path : path
    """
    if not isinstance(module, nn.Module) or not isinstance(example, Tensor):
        raise TypeError(
            f"module is a {type(module).__name__} and example a {type(example).__name__}; give an nn.Module "
            "and a tensor"
        )
    _check_installed()
    fixed = _fixed(module)
    size = sum(t.numel() * t.element_size() for t in fixed.state_dict().values())
    if size >= LIMIT:
        raise ValueError(f"filters in all poses take {size:,} bytes, and an ONNX file holds {LIMIT:,}; use fewer")
    two = torch.cat([example[:1]] * 2).cpu()  # a batch of one would be taken for the only size
    with _quiet(), _plain_numbers(example.dtype), undisturbed(), torch.no_grad():
        program = torch.onnx.export(
            fixed,
            (two,),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("N")},),
            input_names=["input"],
            output_names=["output"],
            verbose=False,
        )
    assert program is not None
    batch = program.model_proto.graph.input[0].type.tensor_type.shape.dim[0]
    if not batch.dim_param:
        raise ValueError(f"the network has fixed the batch size at {batch.dim_value}; take len(x) or int(…) out of it")
    write_whole(path, program.model_proto.SerializeToString())


def _check_installed() -> None:
    for name in ("onnx", "onnxscript"):
        if find_spec(name) is None:
            raise ImportError(f"export_onnx needs {name}, which is not installed: pip install 'orbitpool[onnx]'")


def _fixed(module: nn.Module) -> nn.Module:
    """A copy for use alone: on the CPU, every pose a constant."""
    copy = deepcopy(module).cpu().eval()
    for part in copy.modules():
        if isinstance(part, OrbitModule):
            part.fix()
    return copy


@contextmanager
def _plain_numbers(dtype: torch.dtype) -> Iterator[None]:
    """Numbers in a module's code that have no float type get that of its inputs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype if dtype.is_floating_point else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the exporter says of its own insides from the user."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
