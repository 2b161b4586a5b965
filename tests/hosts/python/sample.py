"""A program as mypy --strict reads it: every answer has its type."""

from decimal import Decimal
from typing import Any, assert_type

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
    assert_type(agent.get_balance().raw, Any)
    for saved in agent.saved():
        assert_type(saved.intent, str | None)


async def awaited(agent: hopline.AsyncAgentClient) -> None:
    async with agent.open_session(session_type="dynamic", product_no="p", deadline=1.5, ends=["failed"]) as session:
        assert_type(session, hopline.SessionReply)
    assert_type(await agent.open_session(session_type="dynamic", product_no="p"), hopline.SessionReply)
    assert_type(await agent.get_session(session_id=session.session_id), hopline.Session)
    async for event in agent.events():
        assert_type(event.session_id, str | None)


def http(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=200, headers={"content-type": "application/json"}, body=b"{}")


try:
    blocking(hopline.AgentClient(http=http, store=hopline.FolderStore("records"), timeout=5))
except hopline.InDoubt as error:
    assert_type(error.record, str | None)
except hopline.HoplineError as error:
    assert_type(error.attempts, int)
