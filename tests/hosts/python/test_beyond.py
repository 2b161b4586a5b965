"""Calls beyond the table: exact prices, events of telemetry, and requests of the caller's own."""

import asyncio
from decimal import Decimal
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox


def product(price: str = "4.10", kind: str = "dynamic") -> hopline.Product:
    return hopline.Product(
        product_no="p-1", name="P", type=kind, sharing="shared", available=True, price=Decimal(price), currency="USD", unit="GB"
    )


def test_a_quote_is_what_the_service_charges(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        offered = next(one for one in agent.walk_products() if one.product_no == BUY["product_no"])
        quote = hopline.quote(offered, Decimal("0.3"))
        assert (quote.product_no, quote.unit_price, quote.currency, quote.unit) == (offered.product_no, offered.price, "USD", offered.unit)
        assert quote.total == offered.price * Decimal("0.3")
        assert agent.create_session(**BUY, quantity=quote.quantity).estimated_charge_usd == quote.total


def test_a_quote_is_exact_or_refused() -> None:
    assert str(hopline.quote(product(), Decimal("0.3")).total) == "1.23"
    assert str(hopline.quote(product("0.1"), 3).total) == "0.3"
    assert str(hopline.quote(product("0.000000000001"), Decimal("1000000.000001")).total) == "0.000001000000000001"
    # The last digit that a decimal has is rounded up.
    tiny = hopline.quote(product("0.00000000000001"), Decimal("0.000000000000000001"))
    assert tiny.total == Decimal("0.0000000000000000000000000001")
    for wrong in (0, -1, "many", Decimal("NaN")):
        with pytest.raises(hopline.Invalid) as caught:
            hopline.quote(product("0.00000000000001"), wrong)  # type: ignore[arg-type]
        assert caught.value.operation == "quote" and caught.value.field == "quantity"
    with pytest.raises(hopline.Invalid, match="whole number of addresses"):
        hopline.quote(product(kind="static"), Decimal("1.5"))
    for nothing in (None, "p-1", {"product_no": "p-1"}):
        with pytest.raises(TypeError, match="hopline.Product"):
            hopline.quote(nothing)  # type: ignore[arg-type]


def test_events_are_told_and_show_in_the_health_of_a_session(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**BUY) as session:
        for _ in range(3):
            event = hopline.session_event(status=403, latency_ms=120, bytes=2048, target="shop.example", attempt=1, note={"page": 2})
            assert event == {"status": 403, "latency_ms": 120, "bytes": 2048, "target": "shop.example", "attempt": 1, "note": {"page": 2}}
            agent.report_session_event(session_id=session.session_id, event=event)
        health = agent.get_session_health(session_id=session.session_id).raw
        assert health["metrics"]["bad_events"] == 3 and health["rotation"] == {"recommended": True, "reason": "http_403"}
        agent.report_session_event(session_id=session.session_id, event={"anything": ["else"]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": 99}, {"status": 600}, {"status": True}, {"status": "403"}, {"seen": "rain"}, {"latency_ms": -1}, {"bytes": 0.5},
        {"latency_ms": float("nan")}, {"target": "canary:canary"}, {"target": ""},
    ],
)  # fmt: skip
def test_an_event_that_is_none_is_refused_and_not_repeated(wrong: dict[str, Any]) -> None:
    with pytest.raises(hopline.Invalid) as caught:
        hopline.session_event(**wrong)
    assert caught.value.field == next(iter(wrong)) and "canary" not in str(caught.value)


def test_of_a_target_only_its_host_is_told() -> None:
    for target in ("https://shop.example/?token=canary", "user:canary@shop.example", "Shop.Example"):
        assert hopline.session_event(target=target) == {"target": "shop.example"}
    for nothing in ({}, {"note": "\ud800"}, {"target": "\ud800"}):
        with pytest.raises(hopline.Invalid) as caught:
            hopline.session_event(**nothing)
        assert caught.value.effect == "none"


def test_a_request_of_the_callers_own_reaches_what_has_no_method(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        assert agent.request("GET", "/billing/balance").raw == agent.get_balance().raw
        listed = agent.request("GET", "/products", query={"type": "static", "limit": "2"})
        assert [item["type"] for item in listed.raw["items"]] == ["static", "static"] and listed.request_id
        order = agent.request("POST", "/billing/recharge", body={"amount_usd": Decimal("10.50")}, safety="keyed", intent="top-up")
        assert order.raw["amount_usd"] == Decimal("10.5")
        again = agent.request("POST", "/billing/recharge", body={"amount_usd": Decimal("10.50")}, safety="keyed", intent="top-up")
        assert again.raw["order_id"] == order.raw["order_id"]
        watched = agent.request("GET", "/billing/balance", until=hopline.Until(at="/balance", at_least=1))
        assert watched.phase == "ready"
        with pytest.raises(hopline.Refused) as caught:
            agent.request("GET", "/nothing/here")
        assert caught.value.status == 404 and caught.value.operation == "request"

    async def life() -> Any:
        async with hopline.AsyncAgentClient(**sandbox.account) as other:
            return (await other.request("PUT", "/account/budget", body={"daily_limit_usd": 5}, safety="keyed")).raw

    assert asyncio.run(life())["daily_limit_usd"] == 5


def test_the_numbers_of_a_free_body_are_sent_as_they_were_written() -> None:
    bodies: list[bytes] = []

    def http(request: hopline.Request) -> hopline.Response:
        bodies.append(request.body or b"")
        return hopline.Response(status=200, body=b'{"success":true,"data":{}}')

    with hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http) as agent:
        odd = [Decimal("0.1234567890123456789012345678901234567890"), Decimal("1E+2"), 0.1, 10**30, "1.5", None]
        agent.request("POST", "/x", body={"numbers": odd})
        agent.report_session_event(session_id="s", event={"cost": Decimal("0.10")})
    assert bodies == [b'{"numbers": [0.1234567890123456789012345678901234567890, 1E+2, 0.1, %d, "1.5", null]}' % 10**30, b'{"cost": 0.10}']


def test_a_write_whose_safety_is_not_said_is_never_sent_twice(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        sandbox.fault("create_recharge", kind="drop_after")
        with pytest.raises(hopline.InDoubt) as caught:
            agent.request("POST", "/billing/recharge", body={"amount_usd": 10})
        assert caught.value.attempts == 1 and len(sandbox.state()["orders"]) == 1


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("HEAD", "/x", {}), ("get", "/x", {}), ("GET", "x", {}), ("GET", "/../x", {}), ("GET", "/x?y=1", {}), ("GET", "//host/x", {}),
        ("GET", "/x", {"query": {"y": 1}}), ("POST", "/x", {"safety": "always"}), ("GET", "/x", {"headers": {"x-api-key": "k"}}),
    ],
)  # fmt: skip
def test_a_request_that_can_not_be_is_refused_before_anything_is_sent(method: Any, path: str, more: dict[str, Any]) -> None:
    def never(request: hopline.Request) -> Any:
        raise AssertionError(f"nothing was to be sent, and {request.url} was")

    with hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=never) as agent:
        with pytest.raises(hopline.Invalid) as caught:
            agent.request(method, path, **more)
    assert caught.value.effect == "none" and caught.value.operation == "request"
