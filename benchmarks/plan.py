"""What learning and encoding at a large scale would take, from a cost model: `python -m benchmarks.plan [--write]`.

Operations and bytes are counted from the code, rates are those of one H200 in `benchmarks/h200.txt` or are fitted to
what stands there, and what is assumed says so. `docs/scaling.md` explains it and holds what this prints; `--write` puts
it there.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.record import measured

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "scaling.md"
H200, TWO = measured(HERE / "h200.txt"), measured(HERE / "two_cores.txt")
TERA, GIGA, MILLI = 1e12, 1e9, 1e-3

PRODUCTS = H200["product of 8192 x 8192 bfloat16 numbers"] * TERA  # operations a second of large products
MEMORY = H200["copy of 1 GiB, read and written"] * TERA  # bytes a second
LAUNCHED = 0.4 * MILLI  # seconds of an update that is not replayed, however small: assumed, 60 kernels of 6 us
# One message over 1, 8 and 64 GPUs. In a node about 120 us for a megabyte was reported under torchrun on eight H100
# (IBM/pytorch-communication-benchmarks, issue 1); NCCL can reach 370 GB/s there (NVIDIA/nccl-tests, issue 212), of
# which messages of some MB reach a part; between nodes there are 400 Gb/s a GPU (NDR InfiniBand). So it is assumed:
LATENCY = {1: 0.0, 8: 0.12 * MILLI, 64: 0.25 * MILLI}
WIRE = {1: float("inf"), 8: 100 * GIGA, 64: 25 * GIGA}  # bytes of a message a second
PRICE = 3.5  # dollars for an hour of one H200: assumed; offers in 2025 ran from 2.5 to 10
CORES, DECODED = 16, 150  # cores a GPU, and photographs that one of them decodes a second: assumed
GPUS = (1, 8, 64)
KINDS = ("TIOMP", "TIRBM")


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
        work = own * (self.operations(1) / (LEARNED * PRODUCTS) + self.traffic(1) / MEMORY)
        drawn = 0 if gpus == 1 else 4 * self.K * rows / MEMORY  # every process draws for the whole batch
        sent = 2 * LATENCY[gpus] + self.message() / WIRE[gpus] if gpus > 1 else 0
        return (REPLAYED if gpus == 1 else LAUNCHED) + work + drawn + sent


DIGITS = Learning(K=1000, S=16, D2=784, D1=784)
PATCHES = Learning(K=1600, S=10, D2=108, D1=192)
UPDATES = {
    "TIRBM update, 784 K=1000 S=16 batch 100": (DIGITS, 100),
    "TIRBM update, r=8 colour K=1600 S=10 batch 200": (PATCHES, 200),
    "TIRBM update, 784 K=1000 S=16 batch 4000": (DIGITS, 4000),
}
SHARED = {  # with the rows of an update, and how many there are
    "TIRBM, 784 K=300 S=16 batch 2000": (Learning(300, 16, 784, 784), 2000, 3),
    "TIRBM, 784 K=500 S=1 batch 2000": (Learning(500, 1, 784, 784), 2000, 9),
    "TIRBM, r=8 colour K=300 S=10 batch 2000": (Learning(300, 10, 108, 192), 2000, 10),
}
BESIDE = 18  # times that features are read or written to look at them, standardise them and round them
ENCODED = "dense encoding of 60,000 images, r=8 K=1600 S=10 two-sided, "
NEAR = 0.4  # of what was measured, by which the model may miss what it was not fitted to
CLASSIFIED = "LinearSVM, 50,000 x 12,800, ten classes, one C"


def _fitted() -> tuple[float, float]:
    """Seconds of an update however small it is, and the share of PRODUCTS in learning, nearest to three updates."""
    taken = np.array([H200[name] * MILLI for name in UPDATES])
    products = np.array([model.operations(rows) / PRODUCTS for model, rows in UPDATES.values()])
    traffic = np.array([model.traffic(rows) / MEMORY for model, rows in UPDATES.values()])
    terms = np.stack([np.ones(3), products], 1) / taken[:, None]  # errors count by their share
    least, more = np.linalg.lstsq(terms, (taken - traffic) / taken, rcond=None)[0]
    return float(least), float(1 / more)


REPLAYED, LEARNED = _fitted()


def places(size: int, patch: int = 8) -> int:
    """Patches of a square image, one pixel apart."""
    return (size - patch + 1) ** 2


def encoding(size: int, K: int = 1600, S: int = 10, D: int = 192) -> float:
    """Operations that dense encoding of an image takes."""
    return 2.0 * places(size) * K * S * D


DENSE = 60_000 * encoding(32) / H200[f"{ENCODED}TIOMP"]  # operations a second of dense encoding


def classifying(N: int, D: int) -> float:
    """Seconds of a classifier: passes over the features, one matrix made of them, its factors and their inverse."""
    counted = ("passes over all features", "matrices factored", "factoring one")
    passes, factored, factoring = (H200[f"the same: {what}"] for what in counted)
    read = H200["the same: reading all features once, share of the bandwidth"] / 100 * MEMORY
    matrix = 2 * N * D**2 / PRODUCTS + BESIDE * 4 * N * D / MEMORY
    return passes * 4 * N * D / read + matrix + factored * factoring


def efficiency(name: str) -> float:
    """Of two processes on two cores, expected from what each does besides its share."""
    model, rows, updates = SHARED[name]
    alone = TWO[name]
    drawn = updates * rows * model.K * TWO["a random number"] / GIGA  # for all rows, by each
    message = 2 * TWO["a message"] + model.message() / 1e6 * TWO["a megabyte more of it"]
    return alone / (alone + drawn + 2 * updates * message * MILLI)


def unfitted() -> dict[str, tuple[float, float]]:
    """The model and what was measured, of what it was not fitted to: seconds on one H200, efficiency on two cores."""
    modelled = {ENCODED + "TIRBM": 60_000 * encoding(32) / DENSE, CLASSIFIED: classifying(50_000, 12_800)}
    seconds = {name: (model, H200[name]) for name, model in modelled.items()}
    return seconds | {name: (efficiency(name), TWO[f"{name}: of the work"] / 100) for name in SHARED}


def checks() -> list[str]:
    """The model beside what was measured on one H200."""
    lines = ["checked on one H200                                    model   measured"]
    for name, (model, rows) in UPDATES.items():
        lines.append(f"{name:<50} {model.seconds(rows, 1) / MILLI:6.3f} ms  {H200[name]:6.3f} ms")
    encoded = 60_000 * encoding(32) / DENSE
    lines += [
        f"{f'dense encoding of 60,000 images, {k}':<50} {encoded:6.3f} s   {H200[ENCODED + k]:6.3f} s" for k in KINDS
    ]
    classified, taken = unfitted()[CLASSIFIED]
    lines.append(f"{CLASSIFIED:<50} {classified:6.3f} s   {taken:6.3f} s")
    return [
        *lines,
        f"{'':<50} an update takes {REPLAYED / MILLI:.3f} ms however small, products {LEARNED:.0%} of their rate",
    ]


def on_two_cores() -> list[str]:
    """How two processes share work on two cores, expected and measured."""
    lines = ["", "two processes on two cores: efficiency              expected     of the work, measured"]
    for name in SHARED:
        expected, found = unfitted()[name]
        lines.append(f"{name:<50} {expected:9.0%} {found:17.0%}")
    return lines


def two_cores() -> str:
    """What was measured on two cores, as it was printed."""
    return (HERE / "two_cores.txt").read_text().rstrip()


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
    return "\n".join(checks() + on_two_cores() + billion() + imagenet())


def _write() -> None:
    """Put what was measured and what follows from it into the document."""
    document = DOCUMENT.read_text()
    for text in (table(), two_cores()):
        head, tail = document.split(text.splitlines()[0], 1)
        document = head + text + tail[tail.index("\n```") :]
    DOCUMENT.write_text(document)


if __name__ == "__main__":
    print(table())
    if "--write" in sys.argv:
        _write()
