"""The command `mcp`: a server of the Model Context Protocol, by which an AI agent uses the other commands."""

from __future__ import annotations

from importlib.util import find_spec

from . import buying
from .accounts import Shell
from .arguments import Parser
from .screen import Outcome, Stop

_EPILOG = """\
The program of the agent starts this command, and speaks with it over standard input and output. A purchase needs a cap and an intent, and the same
intent never buys twice. Nothing is settled: that is for a person, by `hopline settle`. Only the tool proxy_url tells a password.
"""


def add_mcp(parser: Parser) -> None:
    """Declares `hopline mcp`."""
    parser.epilog = _EPILOG
    buying.add_cap(parser)


def mcp(shell: Shell) -> Outcome:
    """Serves ten tools for an AI agent over the Model Context Protocol, until its input ends. Nothing is bought without a daily cap."""
    if find_spec("mcp") is None:
        raise Stop('`hopline mcp` needs the package mcp 2: pip install "hopline[mcp]"', code=2)
    with Shell(shell.asked, shell.screen) as checked:
        # What is missing, or can't be opened, is said now and not to the agent.
        checked.agent().saved()
    from .tools import serve

    serve(shell)
    return Outcome(None, [])
