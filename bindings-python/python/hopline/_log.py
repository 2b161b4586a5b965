"""Messages for people who operate a program, by the logger `hopline`. Most programs never need it, and Python's logging takes as long to
import as half of this package, so it is imported only with the first message.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from ._told import LEVELS

if TYPE_CHECKING:
    from logging import Logger

    from ._told import Event

DEBUG, INFO, WARNING = 10, 20, 30


def log(how: Literal["warning", "error", "exception"], text: str, *told: object) -> None:
    """Logs it."""
    try:
        import logging
    except ImportError:  # the interpreter ends, and imports nothing any more
        return
    getattr(logging.getLogger("hopline"), how)(text, *told)


_logger: Logger | None = None


def listener(level: int = WARNING) -> Logger | None:
    """The logger, if there is a listener at this level: such a program has imported logging, and added a handler. The logger is looked up
    once, since that takes a lock, which an interrupt at the wrong moment would leave taken.
    """
    global _logger
    if (logger := _logger) is None:
        look_up = getattr(sys.modules.get("logging"), "getLogger", None)
        if look_up is None:
            return None
        _logger = logger = look_up("hopline")
    return logger if logger.isEnabledFor(level) and logger.hasHandlers() else None


def log_event(event: Event) -> None:
    """Logs an event. No event holds a secret."""
    level = LEVELS.get(event.event, DEBUG)
    if (logger := listener(level)) is None:
        return
    named = f"{event.operation} `{event.intent}`" if event.intent is not None else event.operation
    members = ((name, value) for name, value in event._members().items() if name not in ("operation", "intent", "event"))
    said = ", ".join(f"{name} {value}" for name, value in members if value not in (None, ()))
    logger.log(level, "%s: %s%s", named, event.event.replace("_", " "), said and f": {said}")
