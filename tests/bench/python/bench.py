"""The costs of Hopline in Python, beside others: `cargo xtask bench python` runs it and writes its lines into a table.

bench.py [--once]

With `--once` each work is done once, to see that it comes to its result.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import hopline
import httpx
import msgspec
import pydantic
import tenacity
from rounds import Contender, Scale, beside, rounds, row

LIST = (Path(__file__).parent.parent / "products.json").read_bytes()
BALANCE = b'{"success":true,"data":{"balance":12.50}}'
SESSION = b"""{"success":true,"data":{"session_id":"sess_01HZX3V9K2M4N6P8Q0R2S4T6V8","session_type":"dynamic","status":"active",
"proxy":{"host":"gw-us-1.example.net","port":12321,"protocol":"http"},"estimated_charge_usd":4.5}}"""
ENDED = SESSION.replace(b'"active"', b'"terminated"')
JSON = {"content-type": "application/json"}
ACCOUNT = {"api_key": "key", "base_url": "https://api.example/v1"}


def answer(body: bytes) -> hopline.Response:
    return hopline.Response(status=200, headers=JSON, body=body)


# The same members for each library, prices as they are given.


class MsgspecProduct(msgspec.Struct):
    product_no: str
    name: str
    type: str
    sharing: str
    available: bool
    price: Decimal
    currency: str
    unit: str
    stock: int | None = None
    country: str | None = None
    city: str | None = None


class MsgspecList(msgspec.Struct):
    items: list[MsgspecProduct]
    next_cursor: str | None = None
    total: int | None = None
    cache_ttl_seconds: int | None = None


class MsgspecAnswer(msgspec.Struct):
    success: bool
    data: MsgspecList


class PydanticProduct(pydantic.BaseModel):
    product_no: str
    name: str
    type: str
    sharing: str
    available: bool
    price: Decimal
    currency: str
    unit: str
    stock: int | None = None
    country: str | None = None
    city: str | None = None


class PydanticList(pydantic.BaseModel):
    items: list[PydanticProduct]
    next_cursor: str | None = None
    total: int | None = None
    cache_ttl_seconds: int | None = None


class PydanticAnswer(pydantic.BaseModel):
    success: bool
    data: PydanticList


def lists(scale: Scale) -> list[dict[str, Any]]:
    """A list of 100: our whole call beside the bare reading of others."""
    agent = hopline.AgentClient(**ACCOUNT, http=lambda request: answer(LIST))
    decoder = msgspec.json.Decoder(MsgspecAnswer)
    first = agent.list_products().items[0].price
    assert isinstance(first, Decimal) and first == decoder.decode(LIST).data.items[0].price

    def ours() -> int:
        assert len(agent.list_products().items) == 100
        return 1

    def with_msgspec() -> int:
        assert len(decoder.decode(LIST).data.items) == 100
        return 1

    def with_pydantic() -> int:
        assert len(PydanticAnswer.model_validate_json(LIST).data.items) == 100
        return 1

    def with_json() -> int:
        assert len(json.loads(LIST)["data"]["items"]) == 100
        return 1

    own, *others = rounds(scale, [ours, with_msgspec, with_pydantic, with_json])
    agent.close()
    named = zip(["msgspec, typed, with `Decimal`", "pydantic, with `Decimal`", "`json.loads`, untyped"], others, [1.5, None, None], strict=True)
    return [beside("a list of 100, the whole call", what, own, other, goal=goal) for what, other, goal in named]


def small_calls(scale: Scale, loop: asyncio.AbstractEventLoop) -> list[dict[str, Any]]:
    """A small call, by threads and by tasks."""
    agent = hopline.AgentClient(**ACCOUNT, http=lambda request: answer(BALANCE))

    async def http(request: hopline.Request) -> hopline.Response:
        return answer(BALANCE)

    tasks = hopline.AsyncAgentClient(**ACCOUNT, http=http)

    def blocking() -> int:
        assert agent.get_balance().raw["balance"] == Decimal("12.50")
        return 1

    async def one() -> None:
        assert (await tasks.get_balance()).raw["balance"] == Decimal("12.50")

    blocked, awaited = rounds(scale, [blocking, several(loop, one)])
    agent.close()
    loop.run_until_complete(tasks.close())
    return [row("a small call, blocking", "µs", blocked, goal=15), row("a small call, async", "µs", awaited, goal=35)]


def several(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[None]]) -> Contender:
    """Work in one task, one after the other."""

    async def repeat() -> None:
        for _ in range(20):
            await work()

    def run() -> int:
        loop.run_until_complete(repeat())
        return 20

    return run


class PydanticProxy(pydantic.BaseModel):
    host: str
    port: int
    protocol: str


class PydanticSession(pydantic.BaseModel):
    session_id: str
    session_type: str
    status: str
    proxy: PydanticProxy
    estimated_charge_usd: Decimal


class PydanticBought(pydantic.BaseModel):
    success: bool
    data: PydanticSession


def lives(scale: Scale, loop: asyncio.AbstractEventLoop) -> list[dict[str, Any]]:
    """A session that is bought, ready at once, and ended: beside what one writes with httpx, tenacity and pydantic."""

    async def http(request: hopline.Request) -> hopline.Response:
        return answer(SESSION if request.method == "POST" else ENDED)

    agent = hopline.AsyncAgentClient(**ACCOUNT, http=http)

    async def ours() -> None:
        session = await agent.open_session(session_type="dynamic", product_no="dynamic-world", quantity=1)
        assert session.session_id
        await agent.terminate_session(session_id=session.session_id)

    def canned(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=JSON, content=SESSION if request.method == "POST" else ENDED)

    client = httpx.AsyncClient(transport=httpx.MockTransport(canned), base_url=ACCOUNT["base_url"], headers={"X-API-Key": "key"})

    async def call(method: str, path: str, **given: Any) -> PydanticSession:
        retry = tenacity.retry_if_exception_type(httpx.TransportError)
        wait = tenacity.wait_exponential(0.2)
        async for attempt in tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(5), wait=wait, retry=retry, reraise=True):
            with attempt:
                response = await client.request(method, path, **given)
                response.raise_for_status()
        return PydanticBought.model_validate_json(response.content).data

    async def theirs() -> None:
        body = {"session_type": "dynamic", "product_no": "dynamic-world", "quantity": 1}
        session = await call("POST", "/sessions", json=body, headers={"Idempotency-Key": str(uuid4())})
        assert session.status == "active"
        ended = await call("DELETE", f"/sessions/{session.session_id}")
        assert ended.status == "terminated"

    own, other = rounds(scale, [several(loop, ours), several(loop, theirs)])
    loop.run_until_complete(agent.close())
    loop.run_until_complete(client.aclose())
    return [beside("a session's life: bought, ready at once, ended; async", "httpx, tenacity, pydantic", own, other, goal=0.2)]


def fill(folder: Path, size: int) -> None:
    """Puts so many records, many at once: most of the time is the disk's."""
    store = hopline.FolderStore(folder)

    def put(number: int) -> None:
        spread = (number + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
        store.put(f"5e.r{spread:016x}{number:016x}", b"x" * 600, new=True, keep_for=None, release=True)

    with ThreadPoolExecutor(32) as threads:
        for _ in threads.map(put, range(size), chunksize=100):
            pass
    store.close()


def purchases(scale: Scale) -> list[dict[str, Any]]:
    """A purchase with an intent, beside the records of others in the same folder."""
    sizes, number = [scale.many(size) for size in (0, 10_000, 100_000)], count()

    def buyer(folder: Path, size: int) -> tuple[hopline.AgentClient, Contender]:
        fill(folder, size)
        agent = hopline.AgentClient(**ACCOUNT, http=lambda request: answer(SESSION), store=hopline.FolderStore(folder))

        def buy() -> int:
            session = agent.create_session(session_type="dynamic", product_no="dynamic-world", intent=f"bought-{next(number)}")
            assert session.status == "active"
            return 1

        return agent, buy

    with tempfile.TemporaryDirectory() as place:
        agents, buys = zip(*(buyer(Path(place, str(index)), size) for index, size in enumerate(sizes)), strict=True)
        none, *others = rounds(scale, list(buys))
        for agent in agents:
            agent.close()
    works = (f"a purchase with an intent, beside {f'{size:,}'.replace(',', ' ')} records in a folder" for size in sizes[1:])
    return [beside(work, "beside 0", own, none, goal=1.3) for work, own in zip(works, others, strict=True)]


def imports(scale: Scale) -> list[dict[str, Any]]:
    """The time that `import hopline` adds to the start of a program."""

    def started(program: str) -> Contender:
        def run() -> int:
            subprocess.run([sys.executable, "-c", program], check=True)
            return 1

        return run

    ours, bare = rounds(scale, [started("import hopline"), started("pass")])
    above = [(one - two) / 1000 for one, two in zip(ours, bare, strict=True)]
    return [row("`import hopline`, above bare Python", "ms", above, goal=40)]


def main() -> None:
    scale, loop = Scale("--once" in sys.argv), asyncio.new_event_loop()
    rows = [*lists(scale), *small_calls(scale, loop), *lives(scale, loop), *purchases(scale), *imports(scale)]
    loop.close()
    versions = {name: version(name) for name in ["hopline", "httpx", "msgspec", "pydantic", "tenacity"]}
    print(json.dumps({"versions": {**versions, "Python": sys.version.split()[0]}, "rows": rows}))


if __name__ == "__main__":
    main()
