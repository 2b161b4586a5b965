"""What is told to people who look after a program."""

from typing import Literal


def log(how: Literal["warning", "error", "exception"], text: str, *told: object) -> None:
    """Logs it. Most programs never need that, and Python's logging takes as long to import as half of this package."""
    try:
        import logging
    except ImportError:  # the interpreter ends, and imports nothing any more
        return
    getattr(logging.getLogger("hopline"), how)(text, *told)
