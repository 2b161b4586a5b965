"""How time is measured: contenders take turns in rounds, since a machine changes its speed, and what counts is the ratio within a round."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

Contender = Callable[[], int]
"""Does some work, and says how many times it was done."""


class Scale:
    """Enough for a figure, or once, for the result only."""

    def __init__(self, once: bool) -> None:
        self.rounds, self.turn = (1, 0.0) if once else (25, 0.005)
        self.once = once

    def many(self, things: int) -> int:
        """A number of things, or few."""
        return min(things, 8) if self.once else things


def rounds(scale: Scale, contenders: list[Contender]) -> list[list[float]]:
    """Microseconds that the work took, once: for each contender those of each round."""
    times: list[list[float]] = [[] for _ in contenders]
    # The first round warms up.
    for number in range(scale.rounds + 1):
        for contender, own in zip(contenders, times, strict=True):
            done, begun = 0, perf_counter()
            while True:
                done += contender()
                took = perf_counter() - begun
                if took >= scale.turn:
                    break
            if number > 0:
                own.append(took * 1e6 / done)
    return times


def row(work: str, unit: str, own: list[float], *, goal: float | None = None) -> dict[str, Any]:
    """A line of the table, of figures by themselves."""
    line: dict[str, Any] = {"work": work, "figures": own, "unit": unit}
    return line if goal is None else {**line, "goal": goal}


def beside(work: str, what: str, own: list[float], other: list[float], *, goal: float | None = None) -> dict[str, Any]:
    """A line of the table, of one contender beside another in the same rounds."""
    return {**row(work, "µs", own, goal=goal), "beside": {"what": what, "figures": other}}
