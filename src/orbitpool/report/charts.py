"""Lines in a frame, drawn as SVG: the same drawing inside a page and in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

from orbitpool.report.templates import fill

WIDTH, HEIGHT = 360, 280  # units of the drawing: about the pixels of a phone
LEFT, RIGHT, LEGEND, BOTTOM = 40, 348, 18, 238


@dataclass(frozen=True)
class Line:
    """A line of a chart: solid, or dashed for what others are to be compared with; a colour for each rank."""

    name: str
    x: list[float]
    y: list[float]
    rank: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines, what their axes measure, under which name the drawing is kept, and its caption."""

    name: str
    caption: str
    x: str
    y: str
    lines: list[Line]
    reach: tuple[float, ...] = ()  # values that the y axis shall hold besides those of the lines
    every: float | None = None  # between two marks of the x axis, where round numbers are not it

    @property
    def files(self) -> dict[str, bytes]:
        """The drawing as a file."""
        return {self.name: self.svg.encode()}

    @property
    def shows(self) -> str:
        """What the lines do, in words."""
        told = [
            f"{line.name} {line.y[0]:.3g} throughout"
            if line.dashed
            else f"{line.name} from {line.y[0]:.3g} to {line.y[-1]:.3g}, lowest {min(line.y):.3g}"
            for line in self.lines
        ]
        first, last = self.lines[0].x[0], self.lines[0].x[-1]
        return f"Lines of {self.y} against {self.x}, {first:g} to {last:g}: {'; '.join(told)}"

    @property
    def svg(self) -> str:
        """The drawing."""
        top = 20 + LEGEND * (1 + -(-len(self.lines) // 2))
        xs = [x for line in self.lines for x in line.x]
        across = _Axis(xs, *((LEFT, RIGHT) if xs[0] <= xs[-1] else (RIGHT, LEFT)), self.every)  # the first on the left
        up = _Axis([y for line in self.lines for y in line.y] + list(self.reach), BOTTOM, top)
        paths = [
            " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in zip(line.x, line.y, strict=True))
            for line in self.lines
        ]
        frame = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": top, "bottom": BOTTOM}
        return fill("chart.svg", chart=self, paths=paths, across=across, up=up, legend=LEGEND, **frame)


class _Axis:
    """Round numbers among values, and where a value stands between two ends."""

    def __init__(self, values: list[float], start: float, end: float, step: float | None = None) -> None:
        self.low, self.high, self.start, self.end = min(values), max(values), start, end
        rough = (self.high - self.low or abs(self.high) or 1) / 5
        unit = 10.0 ** floor(log10(rough))
        step = step or next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * 0.999)
        near = 1e-9 * step  # so that a mark on the edge is not lost to rounding
        self.ticks = [step * i for i in range(ceil((self.low - near) / step), floor((self.high + near) / step) + 1)]

    def place(self, value: float) -> float:
        """Where a value stands."""
        return self.start + (value - self.low) / (self.high - self.low or 1) * (self.end - self.start)

    def marks(self) -> list[tuple[str, float]]:
        """Ticks in words, and where they stand."""
        return [(f"{tick:.4g}", round(self.place(tick), 1)) for tick in self.ticks]
