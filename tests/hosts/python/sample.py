"""A program as mypy --strict reads it: every answer has its type."""

import asyncio
from decimal import Decimal
from typing import Any, Literal, assert_type

import hopline


def blocking(agent: hopline.AgentClient) -> None:
    products = agent.list_products(type="dynamic", in_stock=True)
    assert_type(products.items, tuple[hopline.Product, ...])
    assert_type(products.items[0].price, Decimal)
    with agent.open_session(session_type="dynamic", product_no="p", quantity=Decimal("0.5"), intent="job-17", keep=True) as session:
        assert_type(session, hopline.OpenSession)
        assert_type(session.proxy.password, hopline.Secret | None)
    verdict = agent.observe(session_id=session.session_id, seen="captcha")
    if verdict is not None and verdict.reason is not None:
        agent.rotate_session(session_id=session.session_id, reason=verdict.reason)
        assert_type(verdict.session, hopline.Session | None)
    assert_type(agent.get_balance().raw, Any)
    walk = agent.walk_products(type="dynamic", max_pages=3)
    assert_type(walk, hopline.Pages[hopline.Product, hopline.ProductList])
    assert_type([product.price for product in walk], list[Decimal])
    assert_type([page.items for page in walk.pages()], list[tuple[hopline.Product, ...]])
    assert_type(walk.position, str | None)
    assert_type(hopline.quote(products.items[0], Decimal("0.5")).total, Decimal)
    watched = agent.get_balance(until=hopline.Until(at="/balance", at_least=Decimal("10")), deadline=60)
    assert_type(watched.phase, hopline.Phase | None)
    assert_type(agent.request("GET", "/billing/invoices", query={"limit": "2"}), hopline.Reply)
    agent.report_session_event(session_id=session.session_id, event=hopline.session_event(status=403, country="DE"))
    agent.update_budget(daily_limit_usd=None, key_limit_usd=Decimal(5))
    assert_type(session.proxy.for_requests(), hopline.Settings)
    assert_type(session.proxy.url(), hopline.Secret)
    for saved in agent.saved():
        assert_type(saved.intent, str | None)
        assert_type(agent.resume(saved.record, deadline=60, credentials=True), hopline.Resumed)
    assert_type(agent.resume(intent="job-17"), hopline.Resumed | None)
    assert_type(next(agent.walk_saved()).whose, Literal["mine", "free", "other"])
    assert_type(agent.settle("r-1", happened=False, early=True), bool)
    assert_type(agent.release_session(session_id="s-1"), bool)
    assert_type(agent.create_session(session_type="dynamic", product_no="p", intent="job-17", wait_for_intent=True), hopline.Session)
    store: hopline.Store = hopline.FolderStore("folder")
    assert_type(store.list("5e", after=None, open=True).entries[0], hopline.StoredName)
    assert_type(agent.resume_all(deadline=60), list[hopline.OpenSession | hopline.OrderReply | hopline.Reply | hopline.HoplineError])


def leased(store: hopline.LeasedStore) -> hopline.AgentClient:
    store.on_lost(lambda names=None: None)
    assert_type(store.vouches(), bool)
    return hopline.AgentClient(store=store)


async def awaited(agent: hopline.AsyncAgentClient) -> None:
    async with agent.open_session(session_type="dynamic", product_no="p", deadline=1.5, auto_rotate=True) as session:
        assert_type(session, hopline.AsyncOpenSession)
        assert_type(await agent.observe(session_id=session.session_id, seen=403), hopline.Verdict | None)
    assert_type(await agent.open_session(session_type="dynamic", product_no="p", use_with="httpx"), hopline.AsyncOpenSession)
    assert_type(asyncio.create_task(agent.open_session(session_type="dynamic", product_no="p")), asyncio.Task[hopline.AsyncOpenSession])
    assert_type(await agent.resume("r-1"), hopline.AsyncResumed)
    assert_type(await agent.saved(), list[hopline.Saved])
    assert_type(await agent.get_session(session_id=session.session_id), hopline.Session)
    assert_type([product async for product in agent.walk_products()], list[hopline.Product])
    assert_type([page async for page in agent.walk_public_products().pages()], list[hopline.ProductList])
    async for event in agent.events():
        assert_type(event.session_id, str | None)


def reselling(reseller: hopline.ResellerClient) -> None:
    user = reseller.create_user(username="sub-user", password=hopline.Secret("a-password"))
    assert_type(user.email, hopline.Secret | None)
    product = reseller.query_products(proxy_type=[103, 104], language="en").items[0]
    assert_type(product.price, Decimal | None)
    assert_type(hopline.needs_project_id(product), bool)
    placed = reseller.place_order(
        pool_id="p", user_id=1, unit_price=Decimal("4.50"), total_amount=0, ip_count=1, cycle_times=1, duration=1, unit="month", ends=["failed"]
    )
    assert_type(placed, hopline.OrderReply)
    assert_type(placed.order.status, hopline.StaticOrderStatus | str | None)
    accepted = reseller.create_static_order(
        pool_id="p", user_id=1, unit_price=0, total_amount=0, ip_count=1, cycle_times=1, duration=1, unit="day", intent="job-17"
    )
    assert_type(accepted.async_, bool | None)
    assert_type(reseller.reconcile("r-1", attempts=2), hopline.Reconciliation)
    assert_type(reseller.walk_sub_users(page_size=50), hopline.Pages[hopline.SubUser, hopline.SubUserList])
    assert_type(reseller.list_consumption(order_type="static").items, tuple[Any, ...])
    assert_type(reseller.create_usdt_order(parameters={"amount": 20}).raw, Any)
    assert_type(reseller.token, hopline.Secret | None)
    assert_type(hopline.parse_ip_range("192.0.2.0/24").text, str)



def pooled(agent: hopline.AgentClient) -> None:
    with agent.open_pool("shop", size=2, session_type="dynamic", product_no="p", idle_release=30.5, use_with="requests") as pool:
        assert_type(pool, hopline.Pool)
        assert_type(pool.wait_ready(1, timeout=5), hopline.PoolStatus)
        with pool.acquire(target="shop.example", key="user-1", timeout=5) as lease:
            assert_type(lease, hopline.Lease)
            assert_type(lease.observe(TimeoutError()), hopline.LeaseAdvice)
            assert_type(lease.proxy, hopline.Proxy)
        hold = pool.status(everywhere=True).hold
        if hold is not None:
            assert_type(hold.reason, hopline.PoolHoldReason)


async def pooled_awaited(agent: hopline.AsyncAgentClient) -> None:
    async with agent.open_pool("shop", size=2, session_type="dynamic", product_no="p", replace="failing") as pool:
        assert_type(pool, hopline.AsyncPool)
        async with pool.acquire() as lease:
            assert_type(lease, hopline.AsyncLease)
            assert_type(lease.observe(403), hopline.LeaseAdvice)
        assert_type(await pool.acquire(), hopline.AsyncLease)
        assert_type(await pool.status(), hopline.PoolStatus)


def held(session: hopline.OpenSession) -> None:
    assert_type(session.rotate("captcha"), hopline.Session)
    assert_type(session.observe("proxy"), hopline.Verdict | None)
    assert_type(session.refresh(), hopline.Session)
    assert_type(session.generation, int)
    session.terminate()


async def reselling_awaited(reseller: hopline.AsyncResellerClient) -> None:
    assert_type(await reseller.wait_order(order_no="o-1", deadline=1.5), hopline.OrderReply)
    assert_type([user async for user in reseller.walk_sub_users()], list[hopline.SubUser])
    assert_type(await reseller.reconcile("r-1"), hopline.Reconciliation)


def http(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=200, headers={"content-type": "application/json"}, body=b"{}")


try:
    blocking(hopline.AgentClient(http=http, store=hopline.FolderStore("records"), timeout=5, daily_cap_usd=Decimal(50)))
except hopline.InDoubt as error:
    assert_type(error.record, str | None)
except hopline.HoplineError as error:
    assert_type(error.attempts, int)
