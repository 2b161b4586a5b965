"""A reseller's order through the Python package: a sub-user made and funded, static proxies ordered, used, renewed, cancelled.

The sandbox is asked afterwards for all that is told; a difference ends the demo with an error.
"""

import time
from decimal import Decimal
from typing import Any

import hopline
import httpx
from sandbox import Sandbox
from telling import Heard, Teller, ensure, refuses, row, visit

FUNDS = Decimal(40)
TERMS: dict[str, Any] = {"duration": 1, "unit": "month", "cycle_times": 1}


def tell(sandbox: Sandbox, folder: str) -> None:
    print("\nhopline: a reseller's order, in Python\n")
    url = sandbox.ready["target_url"].replace("127.0.0.1", "localhost")
    with httpx.Client(trust_env=False) as http:
        store = hopline.FolderStore(folder)
        with hopline.ResellerClient(**sandbox.reseller, http=http, store=store, on_event=Heard()) as reseller:
            sell(sandbox, reseller, url)


def sell(sandbox: Sandbox, reseller: hopline.ResellerClient, url: str) -> None:
    own = Decimal(reseller.get_current_balance().raw["balance"])
    row("log in", f"once, as the reseller; its balance is {own:.2f} USD")

    begun = time.monotonic()
    user = reseller.create_user(username="shop-17", password="a-long-password", remark="the demo", intent="demo-user")
    ensure(user.id is not None and user.balance == 0, "a new sub-user was to have a number and no money")
    user_id = user.id or 0
    teller = Teller(lambda: balance_of(reseller, user_id))
    row("sub-user", f"{user.username} has the number {user_id}")
    teller.done("sub-user", begun)

    begun = time.monotonic()
    reseller.adjust_sub_user_balance(user_id=user_id, amount=FUNDS, remark="for the demo", intent="demo-funds")
    row("fund", f"{FUNDS:.2f} USD go from the reseller to {user.username}")
    teller.done("fund", begun)

    product = choose(reseller)
    price = product.price or Decimal(0)
    begun = time.monotonic()
    placed = reseller.place_order(
        pool_id=product.product_id or "", user_id=user_id, unit_price=price, total_amount=price * 2, ip_count=2, **TERMS, intent="demo-order"
    )
    ensure(placed.phase == "ready", f"the order is {placed.order.status} where it was to be active")
    proxies = proxies_of(placed)
    ensure(len(proxies) == 2, f"the order was to have two proxies, and has {len(proxies)}")
    row("proxies", f"{len(proxies)}, by SOCKS5 at {proxies[0].host}:{proxies[0].port}, each with a username and a password")
    teller.done("order 2", begun)

    begun = time.monotonic()
    seen = [visit(url, proxy) for proxy in proxies]
    for status, exit in seen:
        row("fetch", f"the site answers {status} to exit {exit}")
    teller.done("fetch", begun)

    begun = time.monotonic()
    reseller.renew_static_order(order_no=placed.order_no, **TERMS, intent="demo-renewal")
    renewed = reseller.wait_order(order_no=placed.order_no)
    row("renew", f"from {until(placed)} to {until(renewed)}")
    teller.done("renew", begun)

    begun = time.monotonic()
    reseller.cancel_static_order(order_no=placed.order_no, intent="demo-end")
    refuses(url, proxies[0], "a proxy of a cancelled order was to refuse")
    row("cancel", "the order is over, and its proxies refuse their passwords")
    teller.done("cancel", begun)

    records = list(reseller.walk_consumption(order_no=placed.order_no, page_size=1))
    for record in records:
        row("record", f"{record['created_at'][:10]}  {record['type']:<9} {Decimal(record['amount']):>8.2f} USD of {record['username']}")
    teller.summary()
    check(sandbox, user_id, placed.order_no, price * 2, teller, own, [exit for _, exit in seen], (until(placed), until(renewed)))


def choose(reseller: hopline.ResellerClient) -> hopline.StaticProduct:
    """The cheapest product with stock that needs no project, and where its addresses are."""
    offered = [one for one in reseller.query_products(proxy_type=103).items if one.stock and one.stock >= 2]
    product = min((one for one in offered if not hopline.needs_project_id(one)), key=lambda one: one.price or Decimal("Infinity"))
    row("product", f"{product.product_id}, {product.stock} in stock, at {product.price:.2f} USD a {product.unit}, of {len(offered)}")
    for ranges in reseller.list_ip_ranges(product_no=product.product_id or "").items:
        for one in ranges.ip_ranges or ():
            read = hopline.parse_ip_range(one.ip_range or "")
            row("addresses", f"{read.first} to {read.last}, in {ranges.city_name}, {ranges.country_name}")
    return product


def balance_of(reseller: hopline.ResellerClient, user_id: int) -> Decimal:
    return next(user.balance or Decimal(0) for user in reseller.walk_sub_users() if user.id == user_id)


def proxies_of(order: hopline.OrderReply) -> list[hopline.Proxy]:
    """The proxies in the items of an order, as this service writes them: its contract does not document their fields."""
    return [
        hopline.Proxy(
            host=instance["ip"],
            port=instance["port"],
            protocol=instance["protocol"],
            username=hopline.Secret(instance["username"]),
            password=hopline.Secret(instance["password"]),
        )
        for item in order.order.items
        for instance in item["instances"]
    ]


def until(order: hopline.OrderReply) -> str:
    return str(order.order.items[0]["expires_at"])[:10]


def check(
    sandbox: Sandbox, user_id: int, order_no: str, total: Decimal, teller: Teller, own: Decimal, exits: list[str], ends: tuple[str, str]
) -> None:
    backend = sandbox.backend()
    [user], [order] = backend["users"], [order for order in backend["static_orders"] if order["user_id"] == user_id]
    ensure((user["id"], order["order_no"]) == (user_id, order_no), "the sandbox has another sub-user or order")
    ensure((order["status"], order["ip_count"]) == ("cancelled", 2), "the order did not end as told")
    entries = [(entry["type"], entry["order_no"], Decimal(str(entry["amount"]))) for entry in backend["entries"] if entry["user_id"] == user_id]
    told = [("adjustment", None, FUNDS), ("purchase", order_no, -total), ("renewal", order_no, -total)]
    ensure(entries == told, f"the sandbox has other entries than those of {FUNDS} and twice {total} USD: {entries}")
    ensure(Decimal(str(user["balance"])) == teller.balance == FUNDS - 2 * total, "the sub-user's balance is not as told")
    ensure(Decimal(str(sandbox.state()["balance"])) == own - FUNDS, f"the reseller's balance fell by another amount than {FUNDS} USD")
    ensure(len(set(exits)) == 2 and order["traffic_bytes"] > 0, "each proxy was to have an exit of its own, and to be used")
    ensure(ends[0] < ends[1], "the renewal was to move the end")
    ensure(sandbox.times("login") == 1, "one login was to be enough")
    row("checked", "one login, one order, two charges, two exits; the service's own books say the same\n")
