"""Builds the package with maturin, once its printed files are there.

They are printed from the table and so in no version control: a build in a checkout prints them, as `pip install git+…` does. A
source distribution has them already.
"""

import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE / "python" / "hopline"
_PRINTER = _HERE.parent / "tests" / "bindgen" / "Cargo.toml"


def build_wheel(*arguments: Any, **settings: Any) -> str:
    """A wheel."""
    _print()
    return str(maturin.build_wheel(*arguments, **settings))


def build_sdist(*arguments: Any, **settings: Any) -> str:
    """A source distribution."""
    _print()
    return str(maturin.build_sdist(*arguments, **settings))


def build_editable(*arguments: Any, **settings: Any) -> str:
    """An installation that uses the sources where they are."""
    _print()
    return str(maturin.build_editable(*arguments, **settings))


def _print() -> None:
    if _PRINTER.exists():
        command = ["cargo", "run", "--locked", "--quiet", "--manifest-path", str(_PRINTER), "--", "python", str(_SOURCES)]
        subprocess.run(command, check=True)
