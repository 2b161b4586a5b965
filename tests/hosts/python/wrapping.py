"""Stores of tests: the folder, with something around its calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline

Call = Callable[..., Any]


class Wrapped(hopline.FolderStore):
    """A folder store, each call of which goes through `around`: it is told the call's name, what makes it, and its arguments."""

    def __init__(self, path: str | Path, around: Callable[..., Any]) -> None:
        super().__init__(path)
        for name in ("claim", "put", "delete", "release", "list", "spend", "close"):
            setattr(self, name, _wrapped(name, getattr(self, name), around))


def _wrapped(name: str, call: Call, around: Callable[..., Any]) -> Call:
    return lambda *arguments, **options: around(name, lambda: call(*arguments, **options), *arguments)


def records(folder: Path) -> list[Path]:
    """The files of what a folder store has."""
    return sorted(path for path in (folder / "names").rglob("*") if path.is_file())
