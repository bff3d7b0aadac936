"""What a part of the programme found, and the table at the end."""

from dataclasses import dataclass, field


@dataclass
class Part:
    """One part: how much was tried, how it ended, the worst case, and what is wrong."""

    name: str
    tried: str
    ended: str
    worst: str
    wrong: list[str]
    seconds: float
    left_out: list[str] = field(default_factory=list)  # for lack of time
    not_here: list[str] = field(default_factory=list)  # what this machine does not permit

    def in_words(self) -> str:
        """The part as a paragraph of the table."""
        state = "ok" if not self.wrong else f"{len(self.wrong)} WRONG"
        lines = [f"{self.name:<18} {state:<10} {self.seconds:5.0f} s  {self.tried}", f"{'':30} {self.ended}"]
        lines += [f"{'':30} worst: {self.worst}"] if self.worst else []
        lines += [f"{'':30} left out: {reason}" for reason in self.left_out + self.not_here]
        return "\n".join(lines)


def verdict(parts: list[Part]) -> tuple[int, str]:
    """The exit status, 1 if anything is wrong or was not tried for lack of time, and the last line."""
    wrong, late, not_here = (sum(len(getattr(p, k)) for p in parts) for k in ("wrong", "left_out", "not_here"))
    words = [f"{wrong} wrong" if wrong else "nothing wrong"]
    words += [f"{late} LEFT OUT for lack of time: give more SECONDS"] if late else []
    words += [f"{not_here} not possible on this machine"] if not_here else []
    ended = "FAILED" if wrong or late else "passed"
    return int(bool(wrong or late)), f"{ended} in {sum(p.seconds for p in parts):.0f} s: {', '.join(words)}"
