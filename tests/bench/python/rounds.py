"""How time is measured: contenders take turns in rounds, since a machine changes its speed, and what counts is the ratio within a round."""

from collections.abc import Callable
from statistics import quantiles
from time import perf_counter
from typing import Any

Contender = Callable[[], int]
"""Does some work, and says how many times it was done."""


class Scale:
    """Enough for a figure, or once, for the result only."""

    def __init__(self, once: bool) -> None:
        self.rounds, self.turn = (2, 0.0) if once else (25, 0.005)


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
    """A line of the table, of a figure by itself."""
    _, median, _ = quantiles(own, n=4, method="inclusive")
    line: dict[str, Any] = {"work": work, "figure": median, "unit": unit}
    return line if goal is None else {**line, "goal": goal}


def beside(work: str, what: str, own: list[float], other: list[float], *, goal: float | None = None) -> dict[str, Any]:
    """A line of the table, of one contender beside another in the same rounds."""
    low, ratio, high = quantiles([one / two for one, two in zip(own, other, strict=True)], n=4, method="inclusive")
    _, median, _ = quantiles(other, n=4, method="inclusive")
    told = {"what": what, "figure": median, "low": low, "ratio": ratio, "high": high}
    return {**row(work, "µs", own, goal=goal), "beside": told}
