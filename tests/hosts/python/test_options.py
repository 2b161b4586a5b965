"""Limits on what is paid, and reads that are repeated until something holds."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import hopline
import pytest
from canned import never
from conftest import BUY
from sandbox import Sandbox

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}


def refused(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=401, body=b'{"success":false,"error":{"code":"UNAUTHORIZED","message":"no"}}')


def came_of(use: Callable[..., object], limit: dict[str, Any]) -> str:
    with hopline.AgentClient(**SOUND, http=refused) as agent:
        try:
            return type(use(agent, **limit)).__name__
        except hopline.HoplineError as error:
            return f"{type(error).__name__} {error}"


def price_of(agent: hopline.AgentClient) -> Decimal:
    return next(product.price for product in agent.walk_products() if product.product_no == BUY["product_no"])


def test_nothing_is_bought_above_the_price_that_the_caller_pays(sandbox: Sandbox) -> None:
    told: list[hopline.Event] = []
    with hopline.AgentClient(**sandbox.account, on_event=told.append) as agent:
        price = price_of(agent)
        for buy in (agent.create_session, agent.open_session):
            with pytest.raises(hopline.Refused) as caught:
                buy(**BUY, max_unit_price=price - Decimal("0.01"))
            assert caught.value.effect == "none" and str(price) in str(caught.value) and caught.value.advice == "read_prices"
        assert sandbox.charges() == 0
        agent.open_session(**BUY, max_unit_price=price)
    assert sandbox.charges() == 1
    assert {event.unit_price for event in told if event.event == "priced"} == {price}


def test_a_client_buys_no_more_than_its_cap_a_day_also_after_a_restart(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        price = price_of(agent)

    def client() -> hopline.AgentClient:
        return hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), daily_cap_usd=price * 2)

    with client() as agent:
        agent.create_session(**BUY)
        with pytest.raises(hopline.Refused, match="of the daily cap") as caught:
            agent.create_session(**BUY, quantity=2)
        assert caught.value.effect == "none"
        with pytest.raises(hopline.Refused, match="of the daily cap"):
            agent.create_session(**BUY, expected_charge_usd=price * 2)
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as uncapped:
        assert uncapped.resume_all() == []
        with client() as agent:
            assert agent.create_session(**BUY).estimated_charge_usd == price
            with pytest.raises(hopline.Refused, match="of the daily cap"):
                agent.create_session(**BUY)
    with client() as agent:
        with pytest.raises(hopline.Refused, match="of the daily cap"):
            agent.create_session(**BUY)
    assert sandbox.charges() == 2


def test_a_cap_in_digits_is_a_cap(sandbox: Sandbox) -> None:
    cap: Any = "0.01"
    with hopline.AgentClient(**sandbox.account, daily_cap_usd=cap) as agent, pytest.raises(hopline.Refused, match="of the daily cap"):
        agent.create_session(**BUY)
    with hopline.AgentClient(**sandbox.account) as agent, pytest.raises(hopline.Refused, match="0.01"):
        agent.create_session(**BUY, max_unit_price=cap)
    assert sandbox.charges() == 0


def test_tasks_and_threads_at_once_stay_under_one_cap(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as asking:
        price = price_of(asking)

    async def life() -> list[object]:
        async with hopline.AsyncAgentClient(**sandbox.account, daily_cap_usd=price * 3) as agent:
            tasks = [agent.create_session(**BUY, intent=f"task-{n}", max_unit_price=price) for n in range(8)]
            threads = [asyncio.to_thread(agent.to_sync().create_session, **BUY, intent=f"thread-{n}") for n in range(4)]
            return list(await asyncio.gather(*tasks, *threads, return_exceptions=True))

    ended = asyncio.run(life())
    assert sum(isinstance(one, hopline.Session) for one in ended) == 3 == sandbox.charges()
    assert all(isinstance(one, hopline.Session) or (isinstance(one, hopline.Refused) and one.advice == "raise_budget") for one in ended)


def test_an_account_that_is_known_not_to_be_ready_buys_nothing(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, backend_ready=False) as agent, pytest.raises(hopline.HoplineError) as caught:
        agent.create_session(**BUY)
    assert caught.value.effect == "none" and sandbox.charges() == 0


def test_a_renewal_says_what_it_is_to_cost(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, daily_cap_usd=1000) as agent:
        bought = agent.open_session(session_type="static", product_no="static-us", duration=1, expected_charge_usd=10)
        assert agent.renew_session(session_id=bought.session_id, duration=1, expected_charge_usd=Decimal("5.50")).raw["session_id"]
        with pytest.raises(hopline.Refused, match="of the daily cap"):
            agent.renew_session(session_id=bought.session_id, duration=1, expected_charge_usd=10_000)
    assert sandbox.charges() == 2


def pay(sandbox: Sandbox, order: hopline.RechargeOrder) -> None:
    sandbox.control("pay", {"order_id": order.order_id})


def test_a_balance_is_watched_until_it_has_grown(sandbox: Sandbox) -> None:
    told: list[hopline.Event] = []
    with hopline.AgentClient(**sandbox.account, on_event=told.append) as agent:
        grown = hopline.Until(at="/balance", at_least=agent.get_balance().raw["balance"] + Decimal("12.50"))
        order = agent.create_recharge(amount_usd=Decimal("12.50"), intent="top-up")
        waited = agent.get_balance(until=grown, deadline=0.2)
        assert waited.phase == "pending" and waited.raw["balance"] == 100_000
        pay(sandbox, order)
        ended = agent.get_balance(until=grown, deadline=30)
        assert (ended.phase, ended.raw["balance"]) == ("ready", Decimal("100012.5"))
        assert agent.get_balance().phase is None
        # Any read can be watched, for words too.
        session = agent.create_session(**BUY)
        read = agent.get_session(session_id=session.session_id, until=hopline.Until(at="/status", is_=["active"]), deadline=30)
        assert (session.phase, read.phase, read.status) == ("pending", "ready", "active")
    assert [event.value for event in told if event.event == "watched"][-1] in ("active", "creating")


def test_the_same_in_a_task_which_may_be_cancelled(sandbox: Sandbox) -> None:
    never = hopline.Until(at="/balance", at_least=10**9)

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            assert (await agent.get_balance(until=never, deadline=0)).phase == "pending"
            now = await agent.get_balance(until=hopline.Until(at="/currency", is_=("EUR", "USD")))
            assert now.phase == "ready"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await agent.get_balance(until=never)

    asyncio.run(life())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_unit_price": -1}, "`max_unit_price` must be at least 0"),
        ({"max_unit_price": "cheap"}, "`max_unit_price` must be a decimal number of at most 28 digits"),
        ({"max_unit_price": Decimal("NaN")}, "`max_unit_price` must be a decimal number of at most 28 digits"),
        ({"expected_charge_usd": Decimal("-0.01")}, "`expected_charge_usd` must be at least 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(options: dict[str, Any], said: str) -> None:
    with hopline.AgentClient(**SOUND) as agent, pytest.raises(hopline.Invalid, match=said):
        agent.create_session(**BUY, **options)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        (hopline.Until(at="balance", at_least=1), "must name a member by a JSON pointer"),
        (hopline.Until(at="/balance"), "must have the values"),
        (hopline.Until(at="/balance", is_=[5]), r"`until` must be a value of its type, and is not at `is\[0\]`"),  # type: ignore[list-item]
        (hopline.Until(at="/balance", at_least=Decimal("Infinity")), "`until` must be a value of its type, and is not at `at_least`"),
    ],
)
def test_a_condition_that_can_not_hold_is_refused(until: hopline.Until, said: str) -> None:
    with hopline.AgentClient(**SOUND) as agent, pytest.raises(hopline.Invalid, match=said):
        agent.get_balance(until=until)


def test_conditions_and_caps_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="list of words"):
        hopline.Until(at="/status", is_="paid")
    for cap in ("much", [], Decimal("NaN")):
        with pytest.raises(hopline.Invalid):
            hopline.AgentClient(**SOUND, daily_cap_usd=cap)  # type: ignore[arg-type]
    with hopline.AgentClient(**SOUND) as agent, pytest.raises(TypeError, match="until"):
        agent.terminate_session(session_id="s", until=hopline.Until(at="/x", is_=["y"]))  # type: ignore[call-arg]


# A limit that is given as something else is refused by its name before anything is sent.

NO_LIMITS = [float("nan"), Decimal("NaN"), float("inf"), "5", "much", object(), Decimal]
MONEY = ("daily_cap_usd", "max_unit_price", "expected_charge_usd")
"""For these a text of digits is the number that it says."""
CLIENTS = ["daily_cap_usd", *(name for name, kind in get_type_hints(hopline.Options).items() if kind in (int, float))]
CALLS = ["max_unit_price", "expected_charge_usd", "attempts", "window", "timeout", "deadline"]
POOLS = ["size", "keep_ready", "max_waiters", "daily_cap_usd", "max_unit_price", "expected_charge_usd", "leases_per_session"]
POOLS += ["rotate_after_uses", "rotate_after", "idle_release", "max_lease", "renew_duration"]
POOL: dict[str, Any] = {"size": 1, **BUY, "daily_cap_usd": 5}
USES: dict[str, Callable[..., object]] = {
    "client": lambda agent, **limit: hopline.AgentClient(**SOUND, **limit),
    "open_session": lambda agent, **limit: agent.open_session(**BUY, **limit),
    "open_pool": lambda agent, **limit: agent.open_pool("shop", **POOL | limit),
    "walk_products": lambda agent, **limit: list(agent.walk_products(**limit)),
}
LIMITS = [(use, name) for use, names in zip(USES, (CLIENTS, CALLS, POOLS, ["max_pages"]), strict=True) for name in names]


@pytest.mark.parametrize(("use", "name"), LIMITS)
def test_what_is_no_limit_is_refused_by_name_and_nothing_is_sent(use: str, name: str) -> None:
    with hopline.AgentClient(**SOUND, http=never) as agent:
        for wrong in NO_LIMITS:
            if wrong == "5" and name in MONEY:
                continue
            with pytest.raises((hopline.Invalid, hopline.Misuse, TypeError)) as caught:
                USES[use](agent, **{name: wrong})
            assert f"`{name}`" in str(caught.value), (wrong, caught.value)


@pytest.mark.parametrize(("use", "name"), [limit for limit in LIMITS if limit != ("open_pool", "size")])
def test_a_limit_that_is_none_is_one_that_is_left_out(use: str, name: str) -> None:
    """As its default says. A pool has to have a cap all the same."""
    with_none, without = (came_of(USES[use], limit) for limit in ({name: None}, {}))
    assert with_none == without or (use, name) == ("open_pool", "daily_cap_usd") and "`daily_cap_usd`" in with_none
