"""Data in many files, larger than memory together: .npy, .parquet, and .tar of images as WebDataset has them.

Nothing is ever unpacked to a disk, so names in an archive are names and nothing else.
"""

from orbitpool.shards.files import Chained, Files, Together, open_shard, shard_files
from orbitpool.shards.parquet import ROOM, Groups
from orbitpool.shards.shard import Shard

__all__ = ["ROOM", "Chained", "Files", "Groups", "Shard", "Together", "open_shard", "shard_files"]
