"""The command `proxy`: the URL of one session's proxy, or a port on this machine that leads through a whole pool."""

from __future__ import annotations

from ipaddress import ip_address

from . import buying
from .accounts import Shell
from .arguments import Parser, amount, one_of, said, seconds
from .screen import Outcome, Stop

_EPILOG = """\
The URL of a session holds its password. Only `hopline buy` and `hopline proxy` print it, since that is what they are for.

With --pool the command stays, and prints the URL of a port that needs no login: HTTP CONNECT, plain HTTP and SOCKS5. Each connection has a lease of its own;
those with one user name (`http://NAME@127.0.0.1:PORT`) share one, so they have one exit. Ctrl-C or SIGTERM ends it; the sessions stay.
"""

_SHORTEST = 8
"""So many letters a token has at least."""


def add_proxy(parser: Parser) -> None:
    """Declares `hopline proxy`."""
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", nargs="?", help="the intent or the session's id")
    parser.add_argument("--curl", action="store_true", help="prints it for `curl --config -` instead, so that no list of processes shows it")
    port = parser.add_argument_group("a port over a pool", "The pool is opened as all its programs open it: the request has to be the same.")
    port.add_argument("--pool", metavar="NAME", help="the pool's name, in place of the session")
    port.add_argument("--listen", metavar="ADDRESS:PORT", default="127.0.0.1:0", help="where to listen; default: a free port of 127.0.0.1")
    token = "what clients give as the proxy's password; needed unless only this machine is listened to; default: HOPLINE_PROXY_TOKEN"
    port.add_argument("--token", default=said("HOPLINE_PROXY_TOKEN"), help=token)
    port.add_argument("--key", metavar="NAME", help="the user name of clients that send none: they all share one exit, as a browser has to")
    port.add_argument("--timeout", type=seconds, default=30, metavar="SECONDS", help="how long a connection waits for a session; default: 30")
    port.add_argument("--size", type=int, help="the most sessions at a time")
    port.add_argument("--product", metavar="PRODUCT", help="the product's number")
    buying.add_request(port)
    port.add_argument("--protocol", type=one_of("socks5", "http", "https"), help="the protocol of the sessions; the port speaks all of them")
    port.add_argument("--max-unit-price", type=amount, metavar="USD", help="the highest price of one unit")
    port.add_argument("--leases-per-session", type=int, metavar="N", help="the most connections, or user names, of one session at a time; default: 1")
    buying.add_cap(port)


def proxy(shell: Shell) -> Outcome:
    """Prints the URL of a session's proxy; or, with --pool, opens a port on this machine that leads through a pool."""
    asked = shell.asked
    if (asked.name is None) == (asked.pool is None):
        raise Stop("NAME or --pool NAME is needed, one of the two", [shell.type("sessions"), shell.type("pools")], code=2)
    if asked.pool is None:
        return buying.proxy(shell)
    host, number = _place(asked.listen)
    if asked.token is not None and len(asked.token) < _SHORTEST:
        raise Stop(f"the token has {len(asked.token)} letters, and needs {_SHORTEST}: an unset variable of a shell would be none at all", code=2)
    if asked.token is None and not _is_loopback(host):
        raise Stop(f"`{host}` is reached from other machines, whose users could spend your traffic: --token or HOPLINE_PROXY_TOKEN is needed", code=2)
    needed = {"--size N": asked.size, "--product PRODUCT": asked.product, "--daily-cap USD or HOPLINE_DAILY_CAP_USD": asked.daily_cap}
    if (missing := next((name for name, value in needed.items() if value is None), None)) is not None:
        raise Stop(f"{missing} is needed with --pool, as the pool's programs have it", [shell.type("products"), shell.type("pools")], code=2)
    agent = shell.agent()
    product = buying.product(shell, agent)
    from .serving import serve

    found = serve(shell, agent, product, host, number)
    spent = f"; spent today {found['spent_today_usd']} USD" if "spent_today_usd" in found else f"; {found['closed']}"
    shell.screen.say(f"the port is closed after {found['connections']} connections, {found['bytes_sent']} bytes sent and {found['bytes_received']} received{spent}")
    return Outcome(found, [])


def _place(listen: str) -> tuple[str, int]:
    host, _, digits = listen.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(bare)
    except ValueError:
        bare = "127.0.0.1" if bare == "localhost" else ""
    if not bare or not digits.isdecimal() or int(digits) > 65535:
        raise Stop(f"`{listen}` is not an IP address and a port, such as 127.0.0.1:8080", code=2)
    return bare, int(digits)


def _is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback
