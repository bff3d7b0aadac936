"""Out of the library: learned features as a layer of a network, and as an ONNX file."""

from orbitpool.modules.export import export_onnx
from orbitpool.modules.layer import OrbitModule

__all__ = ["OrbitModule", "export_onnx"]
