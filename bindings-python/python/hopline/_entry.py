"""Makes Ctrl-C while the command `hopline` is loaded one line and not a traceback. In a program that imports the package it does nothing."""

import os
import sys
from types import TracebackType


def _interrupted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    os.write(2, b"hopline: interrupted; nothing was done\n")
    os._exit(130)


if os.path.basename(sys.argv[0] if sys.argv else "").removesuffix(".exe") == "hopline" or sys.orig_argv[1:3] == ["-m", "hopline"]:
    sys.excepthook = _interrupted
