"""How far moved images can be told from images as they are.

A small network learns to say which move was made. Were it perfect, its mistakes between a move and none would be half
the overlap of the two distributions: 1 if moved images look like images, 0 if each of them gives itself away.
"""

from __future__ import annotations

from math import ceil, frexp

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy

from orbitpool.discovery.candidates import STILL, Move, moved

BATCH = 128
HELD_OUT = 0.25
STILL_SHARE = 0.2  # of a batch that is not moved: every move is compared with it
RATE = 0.01
SAME = 1e-6  # of the largest value, about: images that differ by less are the same
ODD, HIDDEN = 0.01, 1e-6  # a part of the images, and the part of all squares that must be left to the others
BLUR = 2  # times that neighbouring pixels are averaged, so that the traces of interpolation cannot be seen


def overlaps(images: Tensor, moves: list[Move], side: int, steps: int, seed: int) -> list[float]:
    """By how much images (N, C, H, W) and moved ones overlap, from 0 to 1 for each move, on images held out."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(images), generator=generator).to(images.device)
    held = max(1, round(HELD_OUT * len(images)))
    classes = [STILL, *moves]
    x = standardized(images)
    network = _network(x.shape[1], side, len(classes), generator).to(images)
    prior = torch.full((len(classes),), (1 - STILL_SHARE) / len(moves), dtype=torch.float32)
    prior[0] = STILL_SHARE
    _train(network, x[order[held:]], classes, prior, side, steps, generator)
    return _confused(network, x[order[:held]], classes, prior, side, generator)


def standardized(images: Tensor) -> Tensor:
    """Images with mean 0 and deviation 1, all together; raises ValueError where there is nothing to tell them by."""
    most = float(images.abs().max())
    images = images / 2.0 ** (frexp(most)[1] - 1)  # squares of vast numbers are infinite, those of tiny ones nothing
    shapes = images - images.mean((2, 3), keepdim=True)
    if (shapes.amax(0) - shapes.amin(0)).max() <= SAME:
        raise ValueError(
            f"the {len(images)} images differ by nothing but brightness (their values go up to {most:.3g}), so that "
            "moves cannot be told; give images that differ, or transformations"
        )
    squares = torch.linalg.vector_norm(shapes, dim=(1, 2, 3), dtype=torch.float64).square().sort().values
    few = ceil(ODD * len(squares))
    if squares[:-few].sum() < HIDDEN * squares.sum():
        raise ValueError(
            f"values go up to {most:.3g}, and beside {few} of {len(squares)} images the others vary by nothing; drop "
            "images with odd values, or give transformations"
        )
    return (images - images.mean()) / images.std()


def seen(x: Tensor, which: Tensor, moves: list[Move], side: int, generator: torch.Generator) -> Tensor:
    """What the network sees of images (N, C, H, W) after moves chosen for each: the middle, all equally blurred."""
    x = moved(x, which, moves, side + BLUR + 2, generator)
    more = torch.tensor([move.sharper for move in moves])[which].to(x)[:, None, None, None]
    x = _soften(_soften(x, more).mT, more).mT
    for _ in range(BLUR):
        x = avg_pool2d(x, 2, 1)
    return x


def _soften(x: Tensor, variance: Tensor) -> Tensor:
    """Images blurred along their rows by a variance for each; they lose the first and the last column."""
    middle = x[..., 1:-1]
    return middle + variance / 2 * (x[..., 2:] + x[..., :-2] - 2 * middle)


def _network(channels: int, side: int, classes: int, generator: torch.Generator) -> nn.Sequential:
    """Two convolutions and two layers, from images (N, C, side, side) to classes."""
    small = (side + 3) // 4
    with torch.random.fork_rng(devices=[]):  # layers draw weights when they are made; these come from the generator
        network = nn.Sequential(
            *_layer(nn.Conv2d(channels, 16, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(16)),
            *_layer(nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32)),
            nn.Flatten(),
            *_layer(nn.Linear(32 * small * small, 128, bias=False), nn.BatchNorm1d(128)),
            nn.Linear(128, classes, bias=False),
        )
    for parameter in network.float().parameters():
        if parameter.ndim > 1:
            nn.init.kaiming_normal_(parameter, generator=generator)
    return network


def _layer(weights: nn.Module, norm: nn.Module) -> tuple[nn.Module, ...]:
    return weights, norm, nn.ReLU()


def _train(
    network: nn.Module,
    x: Tensor,
    classes: list[Move],
    prior: Tensor,
    side: int,
    steps: int,
    generator: torch.Generator,
) -> None:
    """Teach a network which move was made, with steps that grow and then shrink."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    with torch.enable_grad():
        for _ in range(steps):
            rows = torch.randint(len(x), (BATCH,), generator=generator).to(x.device)
            which = torch.multinomial(prior, BATCH, replacement=True, generator=generator)
            loss = cross_entropy(network(seen(x[rows], which, classes, side, generator)), which.to(x.device))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    network.eval()


@torch.no_grad()
def _confused(
    network: nn.Module, x: Tensor, classes: list[Move], prior: Tensor, side: int, generator: torch.Generator
) -> list[float]:
    """For each move, the share of moved images taken for still ones plus that of still ones taken for moved."""

    def evidence(number: int) -> Tensor:
        which = torch.full((len(x),), number)
        said: Tensor = network(seen(x, which, classes, side, generator)) - prior.log().to(x)
        return said

    still = evidence(0)
    mistakes = [
        ((still[:, k] > still[:, 0]).double() + (other[:, 0] >= other[:, k]).double()).mean()
        for k in range(1, len(classes))
        for other in [evidence(k)]
    ]
    return [min(1.0, float(m)) for m in mistakes]
