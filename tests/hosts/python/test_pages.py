"""Lists that are walked page by page, over real HTTP."""

import asyncio
import json
from typing import Any

import hopline
import pytest
from sandbox import Sandbox


def pages(*cursors: str | None) -> Any:
    """A service whose pages hold one product each and name these next ones; it notes which cursors it was asked for."""
    asked: list[str | None] = []

    def http(request: hopline.Request) -> hopline.Response:
        asked.append(request.url.partition("cursor=")[2] or None)
        number = len(asked)
        item = {
            "product_no": f"p-{number}", "name": "", "type": "dynamic", "sharing": "shared", "available": True, "price": 1,
            "currency": "USD", "unit": "GB",
        }  # fmt: skip
        data = {"items": [item], "next_cursor": cursors[number - 1]}
        return hopline.Response(status=200, body=json.dumps({"success": True, "data": data}).encode())

    http.asked = asked  # type: ignore[attr-defined]
    return http


def client(http: Any) -> hopline.AgentClient:
    return hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http, attempts=1)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_walk_gives_every_item_once_in_order(limit: int, sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        whole = agent.list_products(in_stock=False, limit=100)
        assert whole.next_cursor is None and len(whole.items) > 4
        walk = agent.walk_products(in_stock=False, limit=limit)
        assert tuple(walk) == whole.items and (walk.end, walk.position) == ("last_page", None)
        assert list(walk) == []
        read = list(agent.walk_products(in_stock=False, limit=limit).pages())
        assert len(read) == -(-len(whole.items) // limit) and sum((page.items for page in read), ()) == whole.items
        assert list(agent.walk_public_products(type="static", limit=limit)) == list(agent.list_public_products(type="static", limit=100).items)


def test_a_walk_in_tasks_gives_the_same(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            whole = (await agent.list_products(in_stock=False, limit=100)).items
            walk = agent.walk_products(in_stock=False, limit=2)
            assert [item async for item in walk] == list(whole) and walk.end == "last_page"
            assert [page.items async for page in agent.walk_public_products(limit=1, max_pages=2).pages()] == [
                (await agent.list_public_products(limit=1)).items,
                (await agent.list_public_products(limit=2)).items[1:],
            ]

    asyncio.run(life())


def test_a_walk_goes_on_in_another_client_where_it_was_left(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        whole = agent.list_products(in_stock=False, limit=100).items
        walk = agent.walk_products(in_stock=False, limit=2)
        items = iter(walk)
        begin = walk.position
        assert next(items) == whole[0] and walk.position == begin, "the page is not at its end"
        assert next(items) == whole[1] and walk.position != begin
        saved = walk.position
    with hopline.AgentClient(**sandbox.account) as other:
        further = other.walk_products(in_stock=False, limit=2, position=saved)
        assert tuple(further) == whole[2:] and further.end == "last_page"


def test_a_cap_ends_a_walk_and_a_higher_one_goes_on(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        whole = agent.list_products(in_stock=False, limit=100).items
        walk = agent.walk_products(in_stock=False, limit=1, max_pages=2)
        assert tuple(walk) == whole[:2] and walk.end == "page_cap" and walk.position
        further = agent.walk_products(in_stock=False, limit=1, position=walk.position, max_pages=3)
        assert tuple(further) == whole[2:3] and further.end == "page_cap"


def test_a_list_that_never_ends_is_left_and_an_empty_cursor_is_its_end() -> None:
    http = pages("a", "b", "a", "c")
    walk = client(http).walk_products()
    assert [item.product_no for item in walk] == ["p-1", "p-2", "p-3"] and walk.end == "repeated_cursor"
    assert http.asked == [None, "a", "b"]
    assert len(list(client(pages("")).walk_products())) == 1


def test_a_page_that_can_not_be_read_loses_nothing(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, attempts=1) as agent:
        whole = agent.list_products(in_stock=False, limit=100).items
        walk = agent.walk_products(in_stock=False, limit=2)
        given = []
        with pytest.raises(hopline.HoplineError):
            for item in walk:
                given.append(item)
                if len(given) == 2:
                    sandbox.fault("list_products", kind="html", status=502)
        assert walk.end is None and (*given, *walk) == whole


@pytest.mark.parametrize("position", ["", "nothing", "{}", "[]", '{"operation":"get_balance"}', '{"operation":"list_products","pages":-1}'])
def test_a_position_that_was_never_saved_is_refused(position: str) -> None:
    with pytest.raises(hopline.Invalid) as caught:
        client(pages()).walk_products(position=position)
    assert caught.value.effect == "none"


def test_what_else_can_not_be_walked_is_refused_before_anything_is_sent() -> None:
    agent = client(pages())
    with pytest.raises(hopline.Invalid, match="belongs to `list_public_products`"):
        agent.walk_products(position=agent.walk_public_products().position)
    for wrong in (0, -1, True, "3", 1 << 32):
        with pytest.raises(hopline.Invalid, match="`max_pages` must be"):
            agent.walk_products(max_pages=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="position"):
        agent.walk_products(position=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cursor"):
        agent.walk_products(cursor="mine")  # type: ignore[call-arg]
    with pytest.raises(hopline.Invalid, match="`limit` must be"):
        list(agent.walk_products(limit=0))
