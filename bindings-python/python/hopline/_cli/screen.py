"""Prints results on standard output, and steps and questions on standard error. Tables are drawn by `rich` where it is installed and the
output is a terminal; everything else is plain text without colour.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TextIO


class Table(NamedTuple):
    """Rows below a line of titles."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


class Loud(NamedTuple):
    """A line that stands out on a terminal: a doubt, or a command to type."""

    text: str
    style: str = "bold yellow"


Line = str | Loud | Table


class Outcome(NamedTuple):
    """The result of a command: for programs, for people, and its exit code."""

    found: Any
    lines: Iterable[Line]
    code: int = 0
    effect: str = ""
    """The sentence about what was done, for where the result can't be printed."""


class Stop(Exception):
    """The end of a command that can't go on: one sentence, the commands that help, and the exit code."""

    def __init__(self, sentence: str, then: Sequence[str] = (), code: int = 1) -> None:
        super().__init__(sentence)
        self.then, self.code = then, code


class Screen:
    """The terminal, or whatever the output goes to."""

    def __init__(self, *, is_json: bool = False) -> None:
        self.is_json = is_json
        # A message must not end a command, and `print` would send it to standard output.
        sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            # A name that the terminal can't show must not end a command that has bought something.
            if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
                reconfigure(errors="backslashreplace")

    def check(self) -> None:
        """Stops where nobody could read the result, before anything is sent."""
        if (trouble := _trouble()) is not None:
            sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise Stop(f"nothing was done, since standard output {trouble}", code=2)

    def end(self, outcome: Outcome) -> int:
        """Prints the result of a command, and returns its exit code."""
        try:
            self.show(outcome)
            sys.stdout.flush()
            return outcome.code
        except OSError as error:
            drop(sys.stdout)
            if outcome.effect:
                self.say(f"hopline: {outcome.effect}, but its result can't be printed: {error.strerror}")
                return 4
            # The reader, such as `head`, has gone.
            if not isinstance(error, BrokenPipeError):
                self.say(f"hopline: the result can't be printed: {error.strerror}")
            return outcome.code or 1

    def show_now(self, outcome: Outcome) -> None:
        """Prints a result of a command that goes on."""
        self.show(outcome)
        sys.stdout.flush()

    def show(self, outcome: Outcome) -> None:
        """Prints a result."""
        if self.is_json:
            self._json(outcome.found)
            return
        console = _console(sys.stdout)
        for line in outcome.lines:
            if console is not None:
                console.print(_drawn(line), soft_wrap=not isinstance(line, Table))
                continue
            for text in _aligned(line) if isinstance(line, Table) else [line if isinstance(line, str) else line.text]:
                print(clean(text))

    def fail(self, sentence: str, then: Sequence[str], members: dict[str, Any]) -> None:
        """Prints a failure: the sentence on one line, and below it the commands to type. For programs also as JSON on standard output."""
        self.say(f"hopline: {sentence}")
        for command in then:
            self.say(f"  {command}", "bold cyan")
        if self.is_json:
            try:
                self._json({"error": members})
                sys.stdout.flush()
            except OSError:
                drop(sys.stdout)

    def say(self, text: str, style: str = "") -> None:
        """Prints a line on standard error."""
        console = _console(sys.stderr)
        try:
            if console is None:
                print(clean(text), file=sys.stderr, flush=True)
            else:
                console.print(_drawn(Loud(text, style)), soft_wrap=True)
        except OSError:
            drop(sys.stderr)

    @contextmanager
    def progress(self, begun: str) -> Iterator[Callable[[str], None]]:
        """Says what is under way: line by line, and on a terminal with `rich` beside a moving sign."""
        console = _console(sys.stderr)
        if console is None:
            self.say(begun)
            yield self.say
            return
        self.say(begun)
        with console.status(_drawn(Loud(begun, "dim"))):
            yield self.say

    def can_ask(self) -> bool:
        """Returns true if a person is there to answer."""
        return not self.is_json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(self, question: str) -> str:
        """Asks a person. The end of the input is an empty answer."""
        print(clean(question), end=" ", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip()

    def confirm(self, steps: Sequence[str], *, is_agreed: bool) -> None:
        """Says what will be done, and asks for consent. Stops without it."""
        for step in steps:
            self.say(step)
        if is_agreed:
            return
        if not self.can_ask():
            raise Stop("nothing was done, since there is nobody to ask; --yes agrees beforehand", code=2)
        if self.answer("Go on? [y/N]").lower() not in ("y", "yes"):
            raise Stop("nothing was done")

    def _json(self, found: Any) -> None:
        print(json.dumps(found, default=plain, indent=2))


def _trouble() -> str | None:
    """Says why standard output can't be used, as far as that can be known before anything is written."""
    if sys.stdout is None:
        return "is closed"
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return None
    try:
        os.write(number, b"")
    except OSError as error:
        return f"can't be written: {error.strerror}"
    # Windows has none.
    if hasattr(select, "poll"):
        looks = select.poll()
        looks.register(number, select.POLLOUT)
        if any(seen & (select.POLLERR | select.POLLHUP) for _, seen in looks.poll(0)):
            return "has no reader"
    return None


def drop(stream: TextIO) -> None:
    """Gives up a stream that can't be written. Python would say so once more at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def clean(text: str) -> str:
    """A text without control characters: names come from services, and may hold sequences that move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def plain(value: Any) -> Any:
    """A value that JSON can't hold: an amount as text with all its digits, a time by ISO 8601, an object by its members."""
    members = getattr(value, "_members", None)
    if members is not None:
        return members()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _aligned(table: Table) -> Iterator[str]:
    rows = [table.titles, *table.rows]
    wide = [max(len(clean(row[at])) for row in rows) for at in range(len(table.titles))]
    for row in rows:
        yield "  ".join(f"{clean(cell):{wide[at]}}" for at, cell in enumerate(row)).rstrip()


def _console(stream: TextIO) -> Any:
    """The console of `rich`, on a terminal."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _drawn(line: Line) -> Any:
    from rich.table import Table as Drawn
    from rich.text import Text

    if isinstance(line, str):
        return Text(clean(line))
    if isinstance(line, Loud):
        return Text(clean(line.text), style=line.style)
    drawn = Drawn(box=None, pad_edge=False, header_style="bold")
    for title in line.titles:
        drawn.add_column(title, overflow="fold")
    for row in line.rows:
        drawn.add_row(*(Text(clean(cell)) for cell in row))
    return drawn
