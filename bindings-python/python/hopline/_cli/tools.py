"""The tools of `hopline mcp`. Each is a command whose words an AI agent gives. Imported by that command alone, and the package mcp with it."""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import wraps
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

import hopline
from hopline._hopline import VERSION

from . import buying, doubts
from .accounts import Shell, members_of, next_commands
from .arguments import amount, typed
from .screen import Outcome, Screen, Stop, plain

Found = dict[str, Any]

_RULES = """\
Hopline buys and runs proxy sessions, which cost real money.
To buy: list_products, quote, then buy_session with the intent that quote has given. After any failure call buy_session again with the SAME intent and
the same arguments: it goes on with the same purchase, and never buys twice. Another intent is another purchase.
An error says its effect. none: nothing was changed. done: it took effect, and a later step failed. unknown: it is in doubt, money may have moved; do
what `next` says, and never buy under another intent instead. Only a person settles a doubt.
A session stays until end_session. proxy_url gives a URL with a password: use it, and show it to nobody."""

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=True)
_BUYS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)

Type = Literal["dynamic", "static"]
ProductNo = Annotated[str, Field(description="The product's number, as list_products shows it")]
Quantity = Annotated[str, Field(coerce_numbers_to_str=True, description="GB of a dynamic product, addresses of a static one, such as 0.5")]
Limit = Annotated[str | None, Field(coerce_numbers_to_str=True, description="The highest price of one unit in USD, such as the one of quote")]
Charge = Annotated[str | None, Field(coerce_numbers_to_str=True, description="The charge, where `duration` decides it and not the price alone")]
Intent = Annotated[str, Field(description="The name of this purchase, from quote. The same intent never buys twice")]
Country = Annotated[str | None, Field(description="Country of the exit, such as US")]
City = Annotated[str | None, Field(description="City of the exit")]
Name = Annotated[str, Field(description="The session's id, or the intent that it was bought under")]
Doubt = Annotated[str, Field(description="The intent or the record, as doubts shows it")]
Wait = Annotated[float, Field(ge=1, le=600, description="Seconds to wait until the session is usable. Most clients of MCP give up after 60")]


def serve(shell: Shell) -> None:
    """Serves until the input ends."""
    cap = shell.asked.daily_cap
    buys = "nothing is bought, since there is no daily cap" if cap is None else f"purchases have a daily cap of {cap} USD"
    # Otherwise the package draws its log for a terminal.
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    made = server(shell.asked)
    # The thread that waits for input would hold up the end. A purchase that is under way keeps its record.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    shell.screen.say(f"hopline mcp: serves {len(_TOOLS)} tools over standard input and output; {buys}")
    made.run("stdio")


def server(asked: argparse.Namespace) -> MCPServer[Any]:
    """Returns the server. `asked` has the options of the command, which no agent can change."""
    made: MCPServer[Any] = MCPServer("hopline", title="Hopline", instructions=_RULES, version=VERSION, log_level="WARNING")
    tools = Tools(asked)
    for name, hints in _TOOLS.items():
        tool = getattr(tools, name)
        made.add_tool(_answering(tool, asked), name=name, description=" ".join(tool.__doc__.split()), annotations=hints)
    return made


def _answering(tool: Callable[..., Found], asked: argparse.Namespace) -> Callable[..., Any]:
    """The tool with its failures as answers, since an agent has to read them."""

    @wraps(tool)
    def answered(**given: Any) -> Any:
        try:
            return tool(**given)
        except hopline.HoplineError as error:
            said = "; ".join([str(error), *getattr(error, "__notes__", ())])
            commands = next_commands(error, asked)
            if error.kind == "in_doubt" and error.intent is not None:
                commands.append(typed(asked, "settle", error.intent))
            return _failed(said, members_of(error), _steps(commands, error.operation))
        except Stop as stop:
            # A session that was bought, and is not usable yet, has the exit code 4.
            known = {"kind": "stopped", "effect": "done" if stop.code == 4 else "none"}
            return _failed(str(stop), known, _steps(stop.then, "open_session"))
        except argparse.ArgumentTypeError as error:
            return _failed(str(error), {"kind": "invalid", "effect": "none"}, [])

    return answered


def _failed(said: str, known: Found, then: Sequence[str]) -> CallToolResult:
    effect = known["effect"]
    lines = [said, f"effect: {effect}, {_EFFECTS[effect]}", *(f"next: {step}" for step in then)]
    found = json.loads(json.dumps({**known, "message": said, "next": list(then)}, default=plain))
    return CallToolResult(content=[TextContent(type="text", text="\n".join(lines))], structured_content=found, is_error=True)


_EFFECTS = {
    "none": "nothing was changed",
    "done": "it took effect, and a later step failed",
    "unknown": "it is in doubt, so nobody knows whether it took effect",
}


def _steps(commands: Sequence[str], operation: str) -> list[str]:
    """What the commands of a shell are for an agent: tools to call, or commands that a person types."""
    return [_step(command, operation) for command in commands]


def _step(command: str, operation: str) -> str:
    match shlex.split(command)[1:]:
        case ["resume", name, *_] if operation in ("open_session", "create_session"):
            same = f"call buy_session again with the intent `{name}` and the arguments of its first call"
            return f"{same}: it goes on with the same purchase, and never buys twice"
        case ["forget", *_]:
            return "call quote for a new intent, which is another purchase"
        case ["resume", *_] if operation == "rotate_session":
            return "call rotate_session again: a rotation in doubt is sent once more before the next one"
        case ["settle", name, *options] if not {"--became", "--happened", "--not-happened"} & set(options):
            return f"call look_up with the name `{name}` for what the service shows; then a person types: {command}"
        case ["proxy" | "end" | "rotate" as word, name, *_] if not name.startswith("-"):
            return f"call {_NAMES[word]} with the name `{name}`"
        case ["quote", product, *_]:
            return f"call quote with the product `{product}`"
        case ["products" | "sessions" | "doubts" | "balance" as word, *_]:
            return f"call {_NAMES[word]}"
    return f"a person types: {command}"


_NAMES = {
    "products": "list_products", "sessions": "list_sessions", "proxy": "proxy_url", "rotate": "rotate_session", "end": "end_session",
    "doubts": "doubts", "balance": "balance",
}  # fmt: skip


class _Log(Screen):
    """The log of the agent's program, which is standard error. There is nobody to ask."""

    def __init__(self) -> None:
        super().__init__(is_json=True)

    @contextmanager
    def progress(self, begun: str) -> Iterator[Callable[[str], None]]:
        """Says what is under way. Several calls may be, so no sign moves."""
        self.say(begun)
        yield self.say


def _amount(given: str | None) -> Decimal | None:
    return None if given is None else amount(given)


def _rotate(shell: Shell) -> Outcome:
    asked = shell.asked
    agent = shell.agent("if_given")
    session_id = shell.living(agent, asked.name, "rotate")
    session = agent.rotate_session(session_id=session_id, reason=asked.reason)
    return Outcome({"session_id": session_id, "status": session.status}, [])


class Tools:
    """A tool is a method of this; each call has a client of its own, as a command has, so that no program waits for the agent's records."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.log = asked, _Log()

    def run(self, command: Callable[[Shell], Outcome], **words: Any) -> Found:
        """Runs a command with these words, and returns what it has found for programs."""
        with Shell(argparse.Namespace(**{**vars(self.asked), **words}), self.log) as shell:
            found: Found = json.loads(json.dumps(command(shell).found, default=plain))
        for one in [found, *found.get("doubts", ())]:
            if "next" in one:
                one["next"] = _steps(one["next"], one["operation"])
        return found

    def list_products(
        self,
        type: Type | None = None,
        country: Country = None,
        all: Annotated[bool, Field(description="Products that can't be bought now, too")] = False,
        limit: Annotated[int, Field(ge=1, le=1000)] = 50,
    ) -> Found:
        """Lists products with this account's own prices in USD per unit, the cheapest first."""
        found = self.run(buying.products, type=type, country=country, all=all)["products"]
        found.sort(key=lambda one: Decimal(one["price"]))
        return {"products": found[:limit], "left_out": max(0, len(found) - limit)}

    def quote(self, product: ProductNo, quantity: Quantity = "1") -> Found:
        """Prices a quantity of a product, and gives a new intent to buy it under. Buys nothing."""
        price = self.run(buying.quote, product=product, quantity=amount(quantity))
        return {**price, "daily_cap_usd": None if self.asked.daily_cap is None else str(self.asked.daily_cap), "intent": f"mcp-{secrets.token_hex(8)}"}

    def buy_session(
        self,
        intent: Intent,
        product: ProductNo,
        quantity: Quantity = "1",
        max_unit_price: Limit = None,
        duration: Annotated[int | None, Field(description="The duration of a static session")] = None,
        country: Country = None,
        city: City = None,
        project: Annotated[str | None, Field(description="Project, which some shared static products need")] = None,
        protocol: Annotated[Literal["http", "https", "socks5"], Field(description="The protocol of the proxy; browsers need http")] = "http",
        expected_charge_usd: Charge = None,
        wait: Wait = 45,
    ) -> Found:
        """Buys a session of real money under the daily cap, waits until it is usable, and says what was charged. Calling it again with the same
        intent and arguments goes on with the same purchase and never buys twice, so after a timeout or a failure do that. The session stays until
        end_session; proxy_url tells how to use it."""
        if self.asked.daily_cap is None:
            raise Stop("nothing is bought without a daily cap: a person gives `hopline mcp` --daily-cap USD or HOPLINE_DAILY_CAP_USD")
        request = {"duration": duration, "country": country, "city": city, "project": project, "protocol": protocol}
        limits = {"max_unit_price": _amount(max_unit_price), "expected_charge": _amount(expected_charge_usd)}
        choices = {"cheapest": None, "use_with": None, "if_ended": None, "wait": False}
        bought = self.run(buying.buy, intent=intent, product=product, quantity=amount(quantity), deadline=wait, **request, **limits, **choices)
        return {name: value for name, value in bought.items() if name != "url"}

    def list_sessions(
        self,
        all: Annotated[bool, Field(description="Sessions that are over, too")] = False,
        read: Annotated[bool, Field(description="Reads each session from the service now; otherwise the status is the one that was read last")] = False,
    ) -> Found:
        """Lists the sessions that the store keeps, with their intents, and how many operations are in doubt."""
        return self.run(doubts.sessions, all=all, read=read)

    def proxy_url(self, name: Name) -> Found:
        """Reads a session and tells the URL of its proxy, WITH ITS PASSWORD, for an HTTP client."""
        return self.run(buying.proxy, words=["proxy"], name=name, curl=False)

    def rotate_session(self, name: Name, reason: hopline.RotateReason = "manual") -> Found:
        """Gives a dynamic session another exit address, for instance after a site has blocked the present one. The proxy's URL may change."""
        return self.run(_rotate, words=["rotate"], name=name, reason=reason)

    def end_session(self, name: Name) -> Found:
        """Terminates a session for good: its unused traffic or time is lost, and nothing is refunded."""
        return self.run(buying.end, words=["end"], name=name, yes=True)

    def balance(self) -> Found:
        """Shows the balance of the account."""
        return self.run(buying.balance)

    def doubts(self) -> Found:
        """Lists the operations of which nobody knows whether they took effect, and for each what to do next. Sends nothing."""
        return self.run(doubts.doubts)

    def look_up(self, name: Doubt) -> Found:
        """Reads what the service shows about an operation in doubt: the sessions and charges that it may have become. Decides nothing: a person does."""
        decided = {"became": None, "happened": False, "not_happened": False, "early": False, "yes": False}
        return self.run(doubts.settle, name=name, **decided)


_TOOLS = {
    "list_products": _READS,
    "quote": _READS,
    "buy_session": _BUYS,
    "list_sessions": _READS,
    "proxy_url": _READS,
    "rotate_session": _CHANGES,
    "end_session": _ENDS,
    "balance": _READS,
    "doubts": _READS,
    "look_up": _READS,
}
