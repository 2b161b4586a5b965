"""The arguments of the command, with the environment as their defaults."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from hopline._hopline import VERSION
from hopline._postgres_link import is_database, shown

from .screen import Stop

EXIT_CODES = """\
exit codes:
  0    done
  1    refused or failed, and it had no effect; the sentence on standard error says why
  2    wrong usage, or nobody is there to agree; nothing was done
  3    in doubt: it may have taken effect; of `doubts` and `store check`: there are doubts, or records that were not looked at or can't be used
  4    it took effect, and a later step failed, such as the wait for a session, or the result can't be printed
  130  interrupted; a purchase that was under way keeps its record
"""


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, and takes no option by its beginning: `--max` must not become a limit."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        raise Stop(message, [f"{self.prog} --help"], code=2)


def said(variable: str) -> str | None:
    """A value of the environment, where a file or a shell may have left a line break behind it."""
    return os.environ.get(variable, "").strip() or None


def alike(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: a known one that looks like it."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean `{close[0]}`?" if close else ""


def amount(text: str) -> Decimal:
    """Reads an amount, with all its digits."""
    # `Decimal` also reads `1_000`, which may be a slip of `1.000`, and digits of other scripts.
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?|\.[0-9]{1,18}", text) is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not an amount, such as 0.5")
    return Decimal(text)


def seconds(text: str) -> float:
    """Reads a length of time."""
    try:
        read = float(text)
    except ValueError:
        read = math.nan
    if not 0 <= read < math.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds, such as 60")
    return read


def one_of(*words: str) -> Callable[[str], str]:
    """Reads one of some words."""

    def read(text: str) -> str:
        if text not in words:
            known = ", ".join(f"`{word}`" for word in words)
            raise argparse.ArgumentTypeError(f"`{text}` is not one of {known}{alike(text, words)}")
        return text

    return read


def common() -> argparse.ArgumentParser:
    """The options of all commands."""
    options = argparse.ArgumentParser(add_help=False)
    store = "the store: a folder, or postgresql://…; default: HOPLINE_STORE"
    options.add_argument("--store", metavar="FOLDER", default=said("HOPLINE_STORE"), help=store)
    options.add_argument("--base-url", metavar="URL", default=said("HOPLINE_BASE_URL"), help="the API's address; default: HOPLINE_BASE_URL")
    options.add_argument("--account", metavar="NAME", help="the `account` that the programs name, if they do")
    options.add_argument("--same-account", action="store_true", help="records of another key or base URL belong to this account")
    options.add_argument("--json", action="store_true", help="prints JSON, for programs")
    return options


def typed(asked: argparse.Namespace, *words: str) -> str:
    """A command to type, with the options of this one that the environment does not say."""
    given = []
    for option, variable in (("store", "HOPLINE_STORE"), ("base_url", "HOPLINE_BASE_URL"), ("account", None)):
        value = getattr(asked, option, None)
        if value is not None and (variable is None or value != said(variable)):
            given += [f"--{option.replace('_', '-')}", shown(value) if is_database(value) else value]
    if getattr(asked, "same_account", False):
        given.append("--same-account")
    # Three dots stand for what only the reader knows.
    return " ".join(word if word == "…" else shlex.quote(word) for word in ["hopline", *words, *given])


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the arguments, or stops with the word that was probably meant."""
    at = parser
    words: list[str] = []
    # Every command has its word first: options stand behind it.
    while (commands := commands_of(at)) and len(words) < len(arguments) and not arguments[len(words)].startswith("-"):
        word = arguments[len(words)]
        if word not in commands:
            raise Stop(f"there is no command `{' '.join([at.prog, word])}`{alike(word, commands)}", [f"{at.prog} --help"], code=2)
        words.append(word)
        at = commands[word]
    options = [word.split("=")[0] for word in arguments[len(words) :] if word.startswith("--") and word != "--"]
    # First, since a mistyped option may be one that is needed.
    if (mistyped := next((option for option in options if option not in at._option_string_actions), None)) is not None:
        at.error(f"`{at.prog}` has no option `{mistyped}`{alike(mistyped, at._option_string_actions)}")
    asked, unknown = parser.parse_known_args(arguments)
    if unknown:
        at.error(f"`{at.prog}` has no argument `{unknown[0]}`")
    return asked


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    """The commands below a parser."""
    return next((action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)), {})


def top() -> Parser:
    """The parser of `hopline` itself."""
    what = "Buys, shows and settles proxy sessions, and shows what is in doubt and what to type next."
    parser = Parser(prog="hopline", description=what, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=VERSION)
    return parser
