"""Stores of tests: the folder, with something around its calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline

Call = Callable[..., Any]


class Wrapped:
    """A folder store, each call of which goes through `around`: it is told the call's name, what makes it, and its arguments."""

    def __init__(self, path: str | Path, around: Callable[..., Any]) -> None:
        self._folder = hopline.FolderStore(path)
        self._around = around

    def open(self) -> hopline.StoreHandle:
        handle: Any = _Handle(self._folder.open(), self._around)
        return handle  # type: ignore[no-any-return]


class _Handle:
    def __init__(self, handle: hopline.StoreHandle, around: Callable[..., Any]) -> None:
        self._handle, self._around = handle, around

    def __getattr__(self, name: str) -> Call:
        call = getattr(self._handle, name)
        return lambda *arguments, **options: self._around(name, lambda: call(*arguments, **options), *arguments)


def records(folder: Path) -> list[Path]:
    """The files of what a folder store has."""
    return sorted(path for path in (folder / "names").rglob("*") if path.is_file())
