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
    left_out: list[str] = field(default_factory=list)

    def in_words(self) -> str:
        """The part as a paragraph of the table."""
        state = "ok" if not self.wrong else f"{len(self.wrong)} WRONG"
        lines = [f"{self.name:<18} {state:<10} {self.seconds:5.0f} s  {self.tried}", f"{'':30} {self.ended}"]
        lines += [f"{'':30} worst: {self.worst}"] if self.worst else []
        lines += [f"{'':30} left out: {reason}" for reason in self.left_out]
        return "\n".join(lines)
