"""The installed program `hopline`, as a person at a shell or a script starts it."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sandbox import Sandbox

PROGRAM = str(Path(sys.executable).with_name("hopline"))


class Said(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """A shell, with the environment of a sandbox's account and a store. Each output is looked through for secrets and tracebacks."""

    def __init__(self, sandbox: Sandbox, folder: Path, **variables: str) -> None:
        own = {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"], "HOPLINE_STORE": str(folder)}
        outer = {name: value for name, value in os.environ.items() if not name.startswith("HOPLINE_")}
        self.environment = {**outer, **own, **variables}
        self._secrets = [sandbox.ready["api_key"], sandbox.ready["password"]]

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Starts a command."""
        return subprocess.Popen([PROGRAM, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, command: "subprocess.Popen[str]") -> Said:
        """Waits for it."""
        out, err = command.communicate(timeout=60)
        self._check(out + err)
        return Said(command.returncode, out, err)

    def run(self, *arguments: str, code: int = 0) -> Said:
        """Runs a command that ends with this code."""
        said = self.end(self.begin(*arguments))
        assert said.code == code, said
        return said

    def at_terminal(self, *arguments: str, answers: tuple[str, ...] = (), wide: int = 80) -> tuple[int, str]:
        """Runs a command at a terminal, where a person answers its questions. Returns its exit code and what the terminal was sent."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, wide, 0, 0))
        settings = termios.tcgetattr(theirs)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        environment = {**self.environment, "TERM": "xterm-256color"}
        command = subprocess.Popen([PROGRAM, *arguments], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        waiting, seen = list(answers), b""
        # At the end of the program Linux says EIO.
        while piece := _read(ours):
            seen += piece
            if waiting and seen.rstrip().endswith((b"?", b"[y/N]", b"doubt:")):
                os.write(ours, f"{waiting.pop(0)}\n".encode())
                seen += b"\n"
        os.close(ours)
        text = seen.decode().replace("\r\n", "\n")
        self._check(text)
        assert not waiting, text
        return command.wait(60), text

    def _check(self, text: str) -> None:
        assert "Traceback" not in text, text
        assert not any(secret in text for secret in self._secrets), text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def until_said(command: "subprocess.Popen[str]", words: str) -> str:
    """Reads a command's standard error until a line has these words."""
    assert command.stderr is not None
    read = ""
    while words not in read:
        line = command.stderr.readline()
        assert line, read
        read += line
    return read


def interrupt(command: "subprocess.Popen[str]") -> None:
    """Ctrl-C."""
    command.send_signal(signal.SIGINT)


def typed(lines: str) -> Iterator[list[str]]:
    """The commands that an output says to type."""
    for found in re.findall(r"^ +hopline (.*)$", lines, re.MULTILINE):
        yield found.split()


def until_at_work(sandbox: Sandbox, operation: str, count: int = 1) -> None:
    """Waits until the service has done an operation."""
    until = time.monotonic() + 30
    while sandbox.times(operation) < count:
        assert time.monotonic() < until
        time.sleep(0.02)
