"""The commands that choose, buy, use and end: products, quote, buy, proxy, end, balance, orders."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import hopline
from hopline import UNSET

from .accounts import Shell
from .arguments import Parser, alike, amount, one_of, said, seconds
from .screen import Loud, Outcome, Stop, Table

_URL_PRINTS = "The URL holds the password. Only `hopline buy` and `hopline proxy` print it, since that is what they are for.\n"


def add_products(parser: Parser) -> None:
    """Declares `hopline products`."""
    parser.add_argument("--type", type=one_of("dynamic", "static"), help="only this type")
    parser.add_argument("--country", metavar="CODE", help="only this country")
    parser.add_argument("--all", action="store_true", help="products that can't be bought now, too")


def products(shell: Shell) -> Outcome:
    """Lists products with the account's own prices."""
    asked = shell.asked
    found = list(_offered(shell.agent("none"), asked.type, asked.country, asked.all))
    rows = [
        (one.product_no, one.type, f"{one.price} {one.currency}/{one.unit}", _or(one.stock), _or(one.country), "yes" if one.available else "no")
        for one in found
    ]
    lines = [Table(("PRODUCT", "TYPE", "PRICE", "STOCK", "COUNTRY", "AVAILABLE"), rows)] if rows else ["no product matches"]
    return Outcome({"products": found}, lines)


def add_quote(parser: Parser) -> None:
    """Declares `hopline quote`."""
    parser.add_argument("product", metavar="PRODUCT", help="the product's number")
    parser.add_argument("--quantity", type=amount, default=Decimal(1), help="GB (dynamic) or addresses (static); default: 1")


def quote(shell: Shell) -> Outcome:
    """Prices a quantity of a product. Nothing is bought."""
    asked = shell.asked
    price = hopline.quote(product(shell, shell.agent("none")), asked.quantity)
    lines = [f"{price.quantity} {price.unit} of {price.product_no} cost {price.total} {price.currency}, at {price.unit_price} each"]
    words = ["buy", price.product_no, "--quantity", str(price.quantity), "--max-unit-price", str(price.unit_price), "--intent", "…"]
    return Outcome(price, [*lines, Loud(f"  {shell.type(*words)}", "bold cyan")])


def add_buy(parser: Parser) -> None:
    """Declares `hopline buy`."""
    parser.epilog = _URL_PRINTS
    parser.add_argument("product", metavar="PRODUCT", nargs="?", help="the product's number")
    choice = "instead of PRODUCT: the cheapest one of this type; --country and --city choose among them"
    parser.add_argument("--cheapest", type=one_of("dynamic", "static"), metavar="TYPE", help=choice)
    parser.add_argument("--intent", metavar="NAME", required=True, help="your own name for this purchase: the same name never buys twice")
    parser.add_argument("--max-unit-price", type=amount, metavar="USD", help="the highest price of one unit; without a cap the purchase is not counted under the daily cap of programs")
    add_cap(parser)
    add_request(parser)
    parser.add_argument("--protocol", type=one_of("socks5", "http", "https"), help="the proxy's protocol; the service's default is socks5")
    clients = one_of("requests", "httpx", "aiohttp", "playwright", "curl")
    parser.add_argument("--use-with", type=clients, metavar="CLIENT", help="the HTTP client that the proxy is for")
    parser.add_argument("--expected-charge", type=amount, metavar="USD", help="the charge, where no price decides it and there is a cap")
    parser.add_argument("--deadline", type=seconds, default=300, metavar="SECONDS", help="how long to wait for the session; default: 300")
    ended = "`buy` buys the next session where the intent's session is over for good, under a daily cap; default: error"
    parser.add_argument("--if-ended", type=one_of("error", "buy"), help=ended)
    parser.add_argument("--wait", action="store_true", help="waits while another program is at work on the intent, or has its session")


def add_request(parser: Parser | argparse._ArgumentGroup) -> None:
    """Declares what a session is bought with, beside its product."""
    parser.add_argument("--quantity", type=amount, help="GB (dynamic) or addresses (static); the service's default is 1")
    parser.add_argument("--duration", type=int, help="the duration of a static session")
    parser.add_argument("--country", metavar="CODE", help="country of the exit")
    parser.add_argument("--city", metavar="CODE", help="city of the exit")
    parser.add_argument("--project", metavar="CODE", help="project, which some shared static products need")


def add_cap(parser: Parser | argparse._ArgumentGroup) -> None:
    """Declares the cap of a day."""
    help = "the most that all programs of the store spend in a UTC day; default: HOPLINE_DAILY_CAP_USD"
    parser.add_argument("--daily-cap", type=amount, metavar="USD", default=said("HOPLINE_DAILY_CAP_USD"), help=help)


def buy(shell: Shell) -> Outcome:
    """Buys a session, waits until it is usable, and prints the URL of its proxy. The session stays until `hopline end`."""
    asked = shell.asked
    if (asked.product is None) == (asked.cheapest is None):
        raise Stop("PRODUCT or --cheapest TYPE is needed, one of the two", [shell.type("products")], code=2)
    if asked.max_unit_price is None and asked.daily_cap is None:
        limits = "--max-unit-price USD, or --daily-cap USD or HOPLINE_DAILY_CAP_USD"
        prices = ("products", "--type", asked.cheapest) if asked.product is None else ("quote", asked.product)
        raise Stop(f"nothing is bought without a limit: {limits}", [shell.type(*prices)], code=2)
    agent = shell.agent()
    what, request = _request(shell, agent)
    limit = "" if asked.max_unit_price is None else f", for no more than {asked.max_unit_price} USD each"
    if asked.max_unit_price is not None and asked.duration is None:
        limit += f", {asked.max_unit_price * Decimal(_or(asked.quantity, '1'))} USD in all"
    cap = "" if asked.daily_cap is None else f", under a daily cap of {asked.daily_cap} USD"
    with shell.screen.progress(f"buying {_or(asked.quantity, '1')} {what} as `{asked.intent}`{limit}{cap}") as shell.tell:
        opened = agent.open_session(
            **request,
            quantity=_given(asked.quantity),
            duration=_given(asked.duration),
            protocol=_given(asked.protocol),
            project_id=_given(asked.project),
            intent=asked.intent,
            max_unit_price=asked.max_unit_price,
            expected_charge_usd=asked.expected_charge,
            wait_for_intent=asked.wait or None,
            if_ended=asked.if_ended,
            deadline=asked.deadline,
            allow_pending=True,
            keep=True,
            use_with=asked.use_with,
        )
    return _bought(shell, asked.intent, opened)


def _request(shell: Shell, agent: hopline.AgentClient) -> tuple[str, dict[str, Any]]:
    """What is bought: in words, and as parameters of `open_session`."""
    asked = shell.asked
    if asked.cheapest is not None:
        choice = hopline.cheapest(type=asked.cheapest, country=asked.country, city=asked.city)
        return f"of the cheapest {asked.cheapest} product", {"product": choice}
    chosen = product(shell, agent)
    where = {"country_code": _given(asked.country), "city_code": _given(asked.city)}
    return f"{chosen.unit} of {chosen.product_no}", {"session_type": chosen.type, "product_no": chosen.product_no, **where}


def _bought(shell: Shell, intent: str, opened: hopline.SessionReply) -> Outcome:
    known = {"intent": intent, "session_id": opened.session_id, "charged_usd": opened.charged_usd}
    if opened.phase != "ready":
        sentence = f"session {opened.session_id} was bought and is not usable yet, but `{opened.session.status}`"
        raise Stop(sentence, [shell.type("resume", intent), shell.type("proxy", intent)], code=4)
    charge = "" if opened.charged_usd is None else f"; charged {opened.charged_usd} USD"
    shell.screen.say(f"session {opened.session_id} is ready{charge}; it stays until you type:")
    shell.screen.say(f"  {shell.type('end', intent)}", "bold cyan")
    return _proxy(known, opened.session)._replace(effect=f"session {opened.session_id} was bought as `{intent}`")


def proxy(shell: Shell) -> Outcome:
    """Reads a session, and prints the URL of its proxy."""
    asked = shell.asked
    agent = shell.agent("if_given")
    session_id = shell.session_id(agent, asked.name)
    session = agent.get_session(session_id=session_id, include_credentials=True)
    if session.proxy is None or session.proxy.password is None:
        raise Stop(f"session {session_id} has no proxy to use: it is `{session.status}`", [shell.type("sessions", "--read")])
    if asked.curl and not asked.json:
        return Outcome(None, session.proxy.for_curl().reveal().splitlines())
    return _proxy({"session_id": session_id}, session)


def _proxy(known: Mapping[str, Any], session: hopline.Session) -> Outcome:
    proxy = session.proxy or hopline.Proxy()
    url = proxy.url().reveal()
    where = {"protocol": proxy.protocol, "host": proxy.host, "port": proxy.port, "url": url}
    return Outcome({**known, "status": session.status, **where}, [url])


def add_end(parser: Parser) -> None:
    """Declares `hopline end`."""
    parser.add_argument("name", metavar="NAME", help="the intent or the session's id")
    add_yes(parser)


def add_yes(parser: Parser) -> None:
    """Declares the consent that is given beforehand."""
    parser.add_argument("--yes", action="store_true", help="agrees to what would be asked")


def end(shell: Shell) -> Outcome:
    """Terminates a session. A program that opens it with `if_ended="buy"` buys again at its next start."""
    asked = shell.asked
    agent = shell.agent("if_given")
    session_id = shell.living(agent, asked.name)
    step = f"terminates session {session_id}: its prepaid traffic or time is lost, and nothing is refunded"
    shell.screen.confirm([step], is_agreed=asked.yes)
    agent.terminate_session(session_id=session_id)
    shell.tell = lambda _: None
    for one in agent.saved() if asked.store is not None else ():
        if one.session_id == session_id and one.holds == "session" and one.whose == "free":
            # The session's own record learns that it is over by a read.
            with suppress(hopline.HoplineError):
                agent.resume(one.record, deadline=1, keep=True)
    return Outcome({"session_id": session_id, "terminated": True}, [f"session {session_id} is terminated"], effect=f"session {session_id} (`{asked.name}`) is terminated")


def balance(shell: Shell) -> Outcome:
    """Shows the balance of each account whose credentials are in the environment."""
    found: dict[str, dict[str, Any]] = {}
    lines: list[str] = []
    for client in shell.clients("none"):
        is_agent = isinstance(client, hopline.AgentClient)
        reply = client.get_balance() if isinstance(client, hopline.AgentClient) else client.get_current_balance()
        shown = readable(reply.raw)
        # An amount is exact whether the service wrote it as a number or as a text.
        for name in [name for name in shown if name.endswith("balance")]:
            shown[name] = reply.money(f"/{name}")
        found["agent" if is_agent else "reseller"] = shown
        lines.append(f"{'agent' if is_agent else 'reseller'}: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items()))
    return Outcome(found, lines)


def add_orders(parser: Parser) -> None:
    """Declares `hopline orders`."""
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="the most orders; default: 100")


def orders(shell: Shell) -> Outcome:
    """Lists the reseller's static orders, without their proxies."""
    asked = shell.asked
    reseller = shell.reseller("if_given")
    intents = {one.order_no: one.intent for one in reseller.walk_saved() if one.order_no} if asked.store is not None else {}
    found: list[dict[str, Any]] = []
    for item in reseller.walk_static_orders():
        if len(found) >= asked.limit:
            break
        number = next((str(item[name]) for name in ("order_no", "orderNo", "app_order_no", "appOrderNo") if item.get(name)), None)
        found.append({"order_no": number, "intent": intents.get(number or ""), "status": item.get("status"), "details": readable(item)})
    rows = [
        (*map(_or, (one["order_no"], one["status"], *map(one["details"].get, ("product_no", "ip_count", "total_amount")), one["intent"])),)
        for one in found
    ]
    lines = [Table(("ORDER", "STATUS", "PRODUCT", "COUNT", "TOTAL", "INTENT"), rows)] if rows else ["there is no static order"]
    return Outcome({"orders": found}, lines)


_SHOWN = {
    "id", "no", "number", "type", "status", "operation", "reference", "amount", "count", "quantity", "duration", "unit", "price", "total",
    "balance", "currency", "country", "city", "created", "updated", "expires", "at", "time", "date", "cycle", "times", "product", "order", "queued",
}  # fmt: skip
_HIDDEN = re.compile(r"pass|secret|token|key|mail|phone|mobile|credential|auth|url|username", re.IGNORECASE)


def readable(item: Any) -> dict[str, Any]:
    """The members of an answer that surely hold no secret. The contracts do not document what else there is."""
    shown: dict[str, Any] = {}
    for name, value in item.items() if isinstance(item, Mapping) else ():
        parts = set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower().split("_"))
        is_plain = isinstance(value, str | int | Decimal | bool)
        if is_plain and parts & _SHOWN and not _HIDDEN.search(str(name)):
            shown[str(name)] = value
    return shown


def _offered(agent: hopline.AgentClient, kind: Any, country: str | None, is_all: bool) -> Sequence[hopline.Product]:
    walk = agent.walk_products(type=_given(kind), country=_given(country), in_stock=not is_all)
    return list(walk)


def product(shell: Shell, agent: hopline.AgentClient) -> hopline.Product:
    """The product that was asked for, with the account's own price."""
    wanted: str = shell.asked.product
    offered = _offered(agent, None, None, True)
    for one in offered:
        if one.product_no == wanted:
            return one
    raise Stop(f"there is no product `{wanted}`{alike(wanted, [one.product_no for one in offered])}", [shell.type("products")])


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def _or(value: Any, other: str = "-") -> str:
    return other if value is None else str(value)
