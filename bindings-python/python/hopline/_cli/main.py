"""The entry of the command: its table, its exit codes, and what it says of a failure."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import hopline

from . import agents, buying, completion, doubts, pools, ports
from .accounts import Shell, members_of, next_commands
from .arguments import Parser, common, parse, top, typed
from .screen import Outcome, Screen, Stop, drop


class Command(NamedTuple):
    """A command, the function that declares its arguments, and a line for the list of all."""

    run: Callable[[Shell], Outcome]
    add: Callable[[Parser], None] | None
    what: str


COMMANDS = {
    "products": Command(buying.products, buying.add_products, "lists products with the account's own prices"),
    "quote": Command(buying.quote, buying.add_quote, "prices a quantity of a product; buys nothing"),
    "buy": Command(buying.buy, buying.add_buy, "buys a session and prints the URL of its proxy"),
    "sessions": Command(doubts.sessions, doubts.add_sessions, "lists the sessions that the store keeps"),
    "proxy": Command(ports.proxy, ports.add_proxy, "prints the URL of a session's proxy, or opens a port that leads through a pool"),
    "end": Command(buying.end, buying.add_end, "terminates a session"),
    "doubts": Command(doubts.doubts, None, "shows what is in doubt, and what to type next"),
    "resume": Command(doubts.resume, doubts.add_resume, "sends a doubt again with the same key, or waits for a session or an order"),
    "settle": Command(doubts.settle, doubts.add_settle, "looks a doubt up, and settles it"),
    "forget": Command(doubts.forget, doubts.add_forget, "frees the intent of what is over"),
    "balance": Command(buying.balance, None, "shows the balance"),
    "orders": Command(buying.orders, buying.add_orders, "lists the reseller's static orders"),
    "pools": Command(pools.pool, None, "lists the pools that the store keeps"),
    "mcp": Command(agents.mcp, agents.add_mcp, "serves tools for an AI agent over the Model Context Protocol"),
}
BELOW: dict[str, tuple[str, dict[str, Command]]] = {
    "pool": (
        "pools that programs share through a store",
        {name: Command(pools.pool, pools.declared(name), what) for name, what in pools.COMMANDS.items()},
    ),
    "store": (
        "the store: a folder, or a database",
        {
            "init": Command(doubts.store_init, doubts.add_init, "makes the folder, or the tables of a database"),
            "check": Command(doubts.store_check, None, "opens the store, reads all its records and counts them"),
        },
    ),
}


def parser() -> Parser:
    """Returns the parser of all commands."""
    made, options = top(), common()
    every = made.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser, title="commands")

    def declare(group: object, name: str, command: Command) -> None:
        description = (command.run.__doc__ or command.what) if command.run is not pools.pool else command.what
        added: Parser = group.add_parser(name, parents=[options], help=command.what, description=description)  # type: ignore[attr-defined]
        added.set_defaults(run=command.run, command="list" if name == "pools" else name, words=added.prog.split()[1:])
        if command.add is not None:
            command.add(added)

    for name, command in COMMANDS.items():
        declare(every, name, command)
    for name, (what, commands) in BELOW.items():
        group = every.add_parser(name, help=what, description=what).add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
        for word, command in commands.items():
            declare(group, word, command)
    shells = every.add_parser("completion", help="prints a script that completes commands and options in a shell", description=completion.HOW)
    shells.add_argument("shell", choices=completion.SHELLS)
    shells.set_defaults(run=None, json=False)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; `hopline --help` lists them."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None:
        # From here on an interruption is said with what was done.
        sys.excepthook = sys.__excepthook__
    screen = Screen(is_json="--json" in given)
    code = _run(given, screen)
    if arguments is None:
        # Ctrl-C once more, while Python ends.
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    return code


def _run(given: Sequence[str], screen: Screen) -> int:
    known = parser()
    asked, outcome = argparse.Namespace(), None
    try:
        screen.check()
        asked = parse(known, given)
        if asked.run is None:
            return screen.end(Outcome(None, completion.script(known, asked.shell).splitlines()))
        with Shell(asked, screen) as shell:
            try:
                outcome = asked.run(shell)
            except hopline.HoplineError as error:
                return _failed(screen, " ".join(asked.words), error, shell.hint if error.code == "SESSION_NOT_FOUND" else "", next_commands(error, asked))
        return screen.end(outcome)
    except Stop as stop:
        screen.fail(str(stop), stop.then, {"kind": "usage" if stop.code == 2 else "stopped", "message": str(stop), "next": list(stop.then)})
        return stop.code
    except BrokenPipeError:
        # The reader of what `settle` shows before it asks has gone, and nothing is settled.
        drop(sys.stdout)
        return 1
    except KeyboardInterrupt as interrupt:
        said = "; ".join(["interrupted", *_notes(interrupt), *([outcome.effect] if outcome and outcome.effect else [])])
        screen.fail(said, _after_interrupt(asked), {"kind": "interrupted", "message": said})
        return 130


def _after_interrupt(asked: argparse.Namespace) -> list[str]:
    """The commands that go on with what was interrupted, or show it."""
    words, intent, name = getattr(asked, "words", []), getattr(asked, "intent", None), getattr(asked, "name", None)
    if words[:1] == ["pool"] and name is not None:
        return [typed(asked, "pool", "status", name)]
    again = ["resume", intent] if intent is not None else [words[0], name] if name is not None else []
    return [typed(asked, *again), typed(asked, "doubts")] if again else []


def _failed(screen: Screen, command: str, error: hopline.HoplineError, hint: str, then: Sequence[str]) -> int:
    screen.fail("; ".join([_sentence(error, command), *_notes(error)]) + hint, then, {**members_of(error), "message": str(error), "next": list(then)})
    return {"none": 1, "unknown": 3, "done": 4}[error.effect]


_WORDS = {
    "max_unit_price": "--max-unit-price",
    "daily_cap_usd": "--daily-cap",
    "expected_charge_usd": "--expected-charge",
    "wait_for_intent": "--wait",
    "if_ended": "--if-ended",
    "same_account": "--same-account",
    "use_with": "--use-with",
    "protocol": "--protocol",
    "quantity": "--quantity",
    "duration": "--duration",
    "deadline": "--deadline",
    "base_url": "--base-url",
    "account": "--account",
}
"""The options by the names that they have in Python."""


def _sentence(error: hopline.HoplineError, command: str) -> str:
    """The sentence of an error, with the command and the options that a person typed."""
    given = "" if error.intent is None else f" `{error.intent}`"
    head = f"{error.operation}{given}"
    said = str(error)
    if not said.startswith(head):
        return said
    told = re.sub(r"`(\w+)`", lambda found: f"`{_WORDS.get(found[1], found[1])}`", said.removeprefix(head))
    return f"{command}{given}{told}"


def _notes(error: BaseException) -> Sequence[str]:
    return getattr(error, "__notes__", ())
