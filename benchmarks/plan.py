"""What learning and encoding at a large scale would take, from a cost model: `python -m benchmarks.plan`.

Operations and bytes are counted from the code, rates were measured on one H200 (`benchmarks/h200.txt`), and what is
assumed says so. `docs/scaling.md` explains it and holds what this prints.
"""

from dataclasses import dataclass

TERA, GIGA, MILLI = 1e12, 1e9, 1e-3

PRODUCTS = 800 * TERA  # operations a second of large bfloat16 products, measured
LEARNED = 0.8  # share of it that products of learning reach; fits the update of 4000 rows
MEMORY = 3.5 * TERA  # bytes a second, assumed: three quarters of the 4.8 that NVIDIA names
REPLAYED = 0.11 * MILLI  # seconds that an update takes however small; fits those of 100 and 200 rows
LAUNCHED = 0.4 * MILLI  # the same when processes work together and nothing is replayed: assumed, 60 kernels of 6 us
DENSE = 401 * TERA  # operations a second of dense encoding, measured
# One message over 1, 8 and 64 GPUs. In a node about 120 us for a megabyte was reported under torchrun on eight H100
# (IBM/pytorch-communication-benchmarks, issue 1); NCCL can reach 370 GB/s there (NVIDIA/nccl-tests, issue 212), of
# which messages of some MB reach a part; between nodes there are 400 Gb/s a GPU (NDR InfiniBand). So it is assumed:
LATENCY = {1: 0.0, 8: 0.12 * MILLI, 64: 0.25 * MILLI}
WIRE = {1: float("inf"), 8: 100 * GIGA, 64: 25 * GIGA}  # bytes of a message a second
PRICE = 3.5  # dollars for an hour of one H200: assumed; offers in 2025 ran from 2.5 to 10
CORES, DECODED = 16, 150  # cores a GPU, and photographs that one of them decodes a second: assumed
GPUS = (1, 8, 64)


@dataclass(frozen=True)
class Learning:
    """A TIRBM: K filters of D2 numbers in S poses, on inputs of D1."""

    K: int
    S: int
    D2: int
    D1: int

    def operations(self, rows: int) -> float:
        """Of an update: two products up, one down, two statistics."""
        return 5 * 2 * self.K * self.D2 * self.S * rows

    def traffic(self, rows: int) -> float:
        """Bytes that an update reads and writes: twelve passes over logits and poses, six over moved inputs."""
        return 2 * (12 * self.K * self.S + 6 * self.S * self.D2) * rows

    def message(self) -> float:
        """Bytes that an update adds up over processes: gradients, two figures, and the activity of filters."""
        return 4 * (self.K * self.D2 + self.K * self.S + self.D1 + 2 + self.K)

    def seconds(self, rows: int, gpus: int) -> float:
        """Of an update by a batch of so many rows in all, of which every GPU has its share."""
        own = rows / gpus
        work = self.operations(1) * own / (LEARNED * PRODUCTS) + self.traffic(1) * own / MEMORY
        drawn = 0 if gpus == 1 else 4 * self.K * rows / MEMORY  # every process draws for the whole batch
        sent = 2 * LATENCY[gpus] + self.message() / WIRE[gpus] if gpus > 1 else 0
        return (REPLAYED if gpus == 1 else LAUNCHED) + work + drawn + sent


DIGITS = Learning(K=1000, S=16, D2=784, D1=784)
PATCHES = Learning(K=1600, S=10, D2=108, D1=192)


def places(size: int, patch: int = 8) -> int:
    """Patches of a square image, one pixel apart."""
    return (size - patch + 1) ** 2


def encoding(size: int, K: int = 1600, S: int = 10, D: int = 192) -> float:
    """Operations that dense encoding of an image takes."""
    return 2.0 * places(size) * K * S * D


def checks() -> list[str]:
    """The model beside what was measured on one H200."""
    lines = ["checked on one H200                                    model   measured"]
    for name, model, rows, measured in (
        ("TIRBM update, 784 K=1000 S=16 batch 100", DIGITS, 100, 0.136),
        ("TIRBM update, r=8 colour K=1600 S=10 batch 200", PATCHES, 200, 0.142),
        ("TIRBM update, 784 K=1000 S=16 batch 4000", DIGITS, 4000, 1.514),
    ):
        lines.append(f"{name:<50} {model.seconds(rows, 1) / MILLI:6.3f} ms  {measured:6.3f} ms")
    lines.append(
        f"{'dense encoding of 60,000 images, TIOMP':<50} {60_000 * encoding(32) / DENSE:6.3f} s   {0.575:6.3f} s"
    )
    return lines


def billion() -> list[str]:
    """A billion patches, once."""
    lines = ["", _head("1,000,000,000 patches, r=8 colour K=1600 S=10")]
    for name, rows in (
        ("batch 4,000 in all", dict.fromkeys(GPUS, 4000)),
        ("batch 32,000 in all", dict.fromkeys(GPUS, 32000)),
        ("batch 16,000 a GPU", {g: 16_000 * g for g in GPUS}),
    ):
        seconds = {g: 1e9 / rows[g] * PATCHES.seconds(rows[g], g) for g in GPUS}
        lines.append(_line(name, seconds))
    return lines


def imagenet() -> list[str]:
    """Dense encoding of as many images as ImageNet has."""
    lines = ["", _head("1,281,167 images, r=8 colour K=1600 S=10")]
    for size in (96, 224):
        encode = {g: 1_281_167 * encoding(size) / DENSE / g for g in GPUS}
        lines.append(_line(f"{size} pixels a side, encoding", encode))
    decode = {g: 1_281_167 / (DECODED * CORES * g) for g in GPUS}
    lines.append(_line("decoding on 16 cores a GPU", decode))
    return lines


def _head(name: str) -> str:
    return f"{name:<50} {' '.join(f'{g:>12} GPUs ' for g in GPUS)}".rstrip()


def _line(name: str, seconds: dict[int, float]) -> str:
    cells = (f"{s:8.0f} s {PRICE * g * s / 3600:5.2f} $" for g, s in seconds.items())
    efficiency = seconds[1] / seconds[64] / 64
    return f"{name:<50} {' '.join(cells)}   {efficiency:4.0%} at 64"


def table() -> str:
    """All of it."""
    return "\n".join(checks() + billion() + imagenet())


if __name__ == "__main__":
    print(table())
