"""A session's whole life through the Python package: bought, used, blocked, rotated, used again, ended.

HTTP is httpx, blocking; the site is fetched through the session's SOCKS5 proxy, by httpx too. The sandbox is asked
afterwards for all that is told; a difference ends the demo with an error.
"""

import argparse
import sys
import tempfile
import time
from decimal import Decimal
from typing import Any

import demo_reseller
import hopline
import httpx
from sandbox import Sandbox
from telling import Heard, Teller, Untrue, ensure, refuses, row, visit


def tell(sandbox: Sandbox, folder: str) -> None:
    print("\nhopline: a session's whole life, in Python\n")
    url = sandbox.ready["target_url"].replace("127.0.0.1", "localhost")
    sandbox.control("target", {"block_first_exit": True})
    with httpx.Client(trust_env=False) as http:
        store = hopline.FolderStore(folder)
        with hopline.AgentClient(**sandbox.account, http=http, store=store, on_event=Heard()) as agent:
            live(sandbox, agent, Teller(lambda: Decimal(agent.get_balance().raw["balance"])), url)


def live(sandbox: Sandbox, agent: hopline.AgentClient, teller: Teller, url: str) -> None:
    before = teller.balance = teller.read_balance()
    row("balance", f"{before:.2f} USD")

    begun = time.monotonic()
    offered = [product for product in agent.list_products(type="dynamic", limit=100).items if product.available]
    cheapest = min(offered, key=lambda product: product.price)
    price = cheapest.price
    row("cheapest", f"{cheapest.product_no} at {price:.2f} USD a {cheapest.unit}, of {len(offered)} dynamic products")
    bought = agent.open_session(session_type="dynamic", product_no=cheapest.product_no, quantity=1, intent="demo", credentials=True)
    ensure(bought.phase == "ready", f"the session is {bought.session.status} where it was to be active")
    session_id = bought.session_id
    row("proxy", f"SOCKS5 at {bought.proxy.host}:{bought.proxy.port}, with a username and a password")
    teller.done("buy 1 GB", begun)

    begun = time.monotonic()
    first = visit(url, bought.proxy)
    row("fetch", f"the site answers {first[0]} to exit {first[1]}")
    teller.done("fetch", begun)
    verdict = agent.observe(session_id=session_id, seen=first[0])
    ensure(verdict and verdict.verdict == "rotate" and verdict.reason == "http_403", f"a {first[0]} was to be a reason to rotate")
    row("observe", "a block: rotate, with the reason http_403")

    begun = time.monotonic()
    rotated = agent.rotate_session(session_id=session_id, reason="http_403", include_credentials=True)
    proxy = rotated.proxy or hopline.Proxy()
    row("rotate", "the session has another exit and another password")
    teller.done("rotate", begun)

    begun = time.monotonic()
    second = visit(url, proxy)
    row("fetch", f"the site answers {second[0]} to exit {second[1]}")
    teller.done("fetch", begun)

    begun = time.monotonic()
    agent.terminate_session(session_id=session_id)
    refuses(url, proxy, "the proxy of an ended session was to refuse")
    row("terminate", "the session is over, and its proxy refuses the password")
    teller.done("terminate", begun)
    teller.summary()
    check(sandbox.state(), teller, session_id, before, price, first, second)


def check(
    state: dict[str, Any], teller: Teller, session_id: str, before: Decimal, price: Decimal, first: tuple[int, str], second: tuple[int, str]
) -> None:
    charges = [(charge["operation"], charge["session_id"], Decimal(str(charge["amount"]))) for charge in state["charges"]]
    ensure(charges == [("create_session", session_id, price)], f"the sandbox has other charges than the one of {price} USD")
    ensure(Decimal(str(state["balance"])) == teller.balance == before - price, f"the balance fell by another amount than {price} USD")
    [session] = state["sessions"]
    ensure(session["session_id"] == session_id and session["status"] == "terminated", "the session did not end as told")
    ensure((first[0], second[0], session["rotations"]) == (403, 200, 1), "the site was to answer 403, and 200 after one rotation")
    ensure(first[1] != second[1] == session["exit"], "the rotation was to change the exit")
    row("checked", "one session, one charge, two exits; the service's own books say the same\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="a session's whole life, or a reseller's order, on this machine alone, through the Python package")
    parser.add_argument("--seed", default="7", help="what ids, credentials and waiting times are drawn from")
    parser.add_argument("--story", choices=["life", "reseller"], default="life", help="which story")
    chosen = parser.parse_args()
    sandbox = Sandbox("--seed", chosen.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="hopline-demo-") as folder:
            (demo_reseller.tell if chosen.story == "reseller" else tell)(sandbox, folder)
    except (Untrue, hopline.HoplineError, httpx.HTTPError) as error:
        print(f"hopline demo: {error}", file=sys.stderr)
        return 1
    finally:
        sandbox.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
