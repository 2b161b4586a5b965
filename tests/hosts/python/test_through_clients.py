"""Requests of each HTTP client through a pool: what is sent, by which exit, over how many connections, and what comes of failures."""

import asyncio
import gc
import pickle
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hopline
import pytest
from curl_cffi.requests.exceptions import HTTPError
from fleet import SHOP
from hopline.aiohttp import pool_session
from hopline.curl_cffi import AsyncPoolSession, PoolSession
from hopline.httpx import AsyncPoolTransport, PoolTransport
from hopline.requests import PoolAdapter
from requests.auth import HTTPDigestAuth
from sandbox import Sandbox
from through import ASYNC, CLIENTS, Page, Target, Through, error, through

SANDBOX = ["--seed", "7", "--provisioning-ms", "0", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox whose target is there over https, and which sells at once."""
    running = Sandbox(*SANDBOX, "--tls", str(tmp_path))
    yield running
    running.close()


@pytest.fixture
def target() -> Iterator[Target]:
    site = Target()
    yield site
    site.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment have no part in it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1,.localhost")


def url(site: Sandbox, host: str, path: str = "/") -> str:
    return site.ready["tls_target"].replace("127.0.0.1", f"{host.replace('_', '-')}.localhost").rstrip("/") + path


Story = Callable[[str], Awaitable[None]]


def each(story: Story, clients: Sequence[str] = CLIENTS) -> None:
    """Runs a story by all clients at once: most of it is waiting."""

    async def named(name: str) -> None:
        try:
            await story(name)
        except Exception as why:
            why.add_note(f"by {name}")
            raise

    async def life() -> None:
        async with asyncio.TaskGroup() as group:
            for name in clients:
                group.create_task(named(name))

    asyncio.run(life())


async def holds(question: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + 60
    while not await question():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.05)


async def none_lent(client: Through) -> None:
    async def is_none() -> bool:
        gc.collect()
        return (await client.status()).leased == 0

    await holds(is_none)


PAGES = [f"/page/{number}" for number in range(60)]


def test_a_site_that_blocks_an_exit_after_ten_requests_gives_each_page_once(site: Sandbox) -> None:
    site.control("target", {"block_after": 10})

    async def visits(name: str) -> list[dict[str, Any]]:
        every = await asyncio.to_thread(site.visits)
        return [visit for visit in every if visit["host"].startswith(f"{name.replace('_', '-')}.")]

    async def story(name: str) -> None:
        places = asyncio.Semaphore(8)
        async with through(name, site) as client:

            async def page(path: str) -> Page:
                async with places:
                    return await client.send("GET", url(site, name, path))

            pages = await asyncio.gather(*map(page, PAGES))
            assert [page.status for page in pages] == [200] * 60
            came = await visits(name)
            served = Counter(visit["path"] for visit in came if visit["status"] == 200)
            blocks = len(came) - 60
            assert served == Counter(PAGES) and blocks == sum(visit["status"] == 403 for visit in came) > 0
            exits = list(dict.fromkeys(visit["exit"] for visit in came))
            assert len({visit["connection"] for visit in came}) == len(exits)
            for exit in exits:  # a block is the last request of an exit
                assert 403 not in [visit["status"] for visit in came if visit["exit"] == exit][:-1]
            status = await client.status()
            assert status.leased == 0 and len({slot.session_id for slot in status.slots}) == 3
            mine = {slot.session_id for slot in status.slots}

            async def has_rotated() -> bool:
                sessions = (await asyncio.to_thread(site.state))["sessions"]
                return sum(session["rotations"] for session in sessions if session["session_id"] in mine) == blocks

            await holds(has_rotated)

    each(story)
    assert site.charges() == 3 * len(CLIENTS)


def test_where_everybody_is_blocked_few_rotate_and_nothing_is_bought(site: Sandbox) -> None:
    site.control("target", {"block_all_ms": 600_000})
    begun = time.monotonic()

    async def story(name: str) -> None:
        async with through(name, site, wait=1) as client:
            for number in range(4):
                try:
                    assert (await client.send("GET", url(site, name, f"/{number}"))).status == 403
                except hopline.Unavailable as why:
                    assert isinstance(why, error(name)) and "3 sessions: " in str(why)
            sessions = (await asyncio.to_thread(site.state))["sessions"]
            mine = {slot.session_id for slot in (await client.status()).slots}
            rotations = sum(session["rotations"] for session in sessions if session["session_id"] in mine)
            assert rotations <= 3 + (time.monotonic() - begun) / 60 + 1

    each(story)
    assert site.charges() <= 3 * len(CLIENTS)


def test_a_held_pool_is_an_error_of_the_client_with_the_reason(site: Sandbox) -> None:
    async def story(name: str) -> None:
        async with through(name, site) as client:
            await answer(client.pool.pause())
            with pytest.raises(hopline.Unavailable, match="3 sessions: ") as caught:
                await client.send("GET", url(site, name))
            assert isinstance(caught.value, error(name)) and caught.value.reason == "paused"
            copied = pickle.loads(pickle.dumps(caught.value))
            assert type(copied) is type(caught.value) and (str(copied), copied.reason) == (str(caught.value), "paused")
            await answer(client.pool.resume())
            assert (await client.send("GET", url(site, name))).status == 200
            await answer(client.pool.close())
            with pytest.raises(hopline.Misuse, match="pool"):
                await client.send("GET", url(site, name))

    each(story)


async def answer(asked: Any) -> Any:
    return await asked if hasattr(asked, "__await__") else asked


def test_a_hundred_at_once_share_three_sessions_with_a_connection_each(site: Sandbox) -> None:
    async def story(name: str) -> None:
        async with through(name, site) as client:
            pages = await asyncio.gather(*(client.send("GET", url(site, name, f"/{number}")) for number in range(100)))
            assert [page.status for page in pages] == [200] * 100 and (await client.status()).leased == 0

    each(story)
    visits = site.visits()
    exits, connections = ({visit[which] for visit in visits} for which in ("exit", "connection"))
    assert len(visits) == 100 * len(CLIENTS) and len(connections) == len(exits) <= site.charges() <= 3 * len(CLIENTS)


def test_no_write_and_no_body_that_can_be_read_once_is_repeated(site: Sandbox) -> None:
    site.control("target", {"block_all_ms": 600_000})

    async def parts() -> Any:
        yield b"a body"

    async def story(name: str) -> None:
        body = "data" if name in ("requests", "aiohttp") else "content"
        once = {body: parts() if name in ASYNC else iter([b"a body"])}
        for method, path, given in (("POST", "/write", {"data": {"a": "b"}}), ("GET", "/once", once), ("GET", "/read", {})):
            async with through(name, site) as client:
                assert (await client.send(method, url(site, name, path), **given)).status == 403

    each(story)
    times = Counter((visit["host"], visit["path"]) for visit in site.visits())
    assert all(count == 1 for (_, path), count in times.items() if path != "/read")
    assert len(times) == 3 * len(CLIENTS) and all(count == 3 for (_, path), count in times.items() if path == "/read")


def test_a_cookie_is_sent_through_the_exit_that_got_it(site: Sandbox, target: Target) -> None:
    async def story(name: str) -> None:
        async with through(name, site) as client:
            if name == "aiohttp":
                client.http.cookie_jar.update_cookies({"own": name})
            else:
                client.http.cookies.set("own", name)
            for _ in range(3):
                await asyncio.gather(*(client.send("GET", f"{target.url}/cookie?{name}") for _ in range(6)))
            if "curl" not in name:  # whose exits have jars of their own
                (client.http.cookie_jar if name == "aiohttp" else client.http.cookies).clear()
                await client.send("GET", f"{target.url}/cleared")

    each(story)
    assert sum(path == "/cleared" and cookies is None for _, path, cookies in target.seen) == len(CLIENTS) - 2
    for exit, path, cookies in target.seen:
        assert path == "/cleared" or set((cookies or "").split("; ")) <= {f"exit={exit}", f"own={path.partition('?')[2]}"}
    assert sum("exit=" in (cookies or "") and "own=" in (cookies or "") for _, _, cookies in target.seen) >= 10 * len(CLIENTS)


def test_a_page_that_looks_for_the_cookie_of_a_redirect_finds_it(site: Sandbox, target: Target) -> None:
    async def story(name: str) -> None:
        async with through(name, site) as client:
            pages = await asyncio.gather(*(client.send("GET", f"{target.url}/start") for _ in range(6)))
            assert [(page.status, page.text) for page in pages] == [(200, "a page")] * 6

    each(story)


def test_a_key_keeps_its_exit(site: Sandbox, target: Target) -> None:
    async def story(name: str) -> None:
        async with through(name, site, key="an account") as client:
            await asyncio.gather(*(client.send("GET", f"{target.url}/{name}") for _ in range(6)))

    each(story)
    assert len({(exit, path) for exit, path, _ in target.seen}) == len(CLIENTS) and len(target.seen) == 6 * len(CLIENTS)


def test_a_rule_of_the_pool_that_reads_the_page_is_asked_of_each_page(site: Sandbox, target: Target) -> None:
    async def story(name: str) -> None:
        async with through(name, site, of_pool={"blocked": lambda page: "captcha" in page.text}) as client:
            page = await client.send("GET", f"{target.url}/captcha?{name}")
            assert (page.status, page.text) == (200, "a page")

    reading = [name for name in CLIENTS if name != "aiohttp"]  # whose answers can be read by a task only
    each(story, reading)
    assert len(target.seen) == 2 * len(reading) == len({exit for exit, _, _ in target.seen})


def test_a_request_that_is_cancelled_gives_its_lease_back_and_is_no_observation(site: Sandbox, target: Target) -> None:
    async def story(name: str) -> None:
        async with through(name, site, 1) as client:
            for _ in range(4):  # three failures would have the session read
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await client.send("GET", f"{target.url}/hang")
                await none_lent(client)
            assert (await client.send("GET", f"{target.url}/cookie")).status == 200

    each(story, ASYNC)
    assert site.charges() == len(ASYNC) and not site.times("rotate_session")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_answer_that_is_never_read_gives_its_lease_back_once_it_is_closed_or_dropped(site: Sandbox, target: Target) -> None:
    async def head(name: str, http: Any) -> Any:
        if name == "requests":
            return await asyncio.to_thread(http.get, f"{target.url}/drip", stream=True)
        if name == "aiohttp":
            return await http.get(f"{target.url}/drip")
        request = http.build_request("GET", f"{target.url}/drip")
        return await http.send(request, stream=True) if name in ASYNC else await asyncio.to_thread(http.send, request, stream=True)

    async def story(name: str) -> None:
        async with through(name, site, 1) as client:
            for is_closed in (True, False)[: 1 if name == "aiohttp" else 2]:  # which keeps an answer as long as its connection
                held = await head(name, client.http)
                assert (await client.status()).leased == 1
                if is_closed:
                    await answer(held.aclose() if "async" in name else held.close())
                del held
                await none_lent(client)

    each(story, [name for name in CLIENTS if "curl" not in name])


def test_a_stream_of_curl_gives_its_lease_back_once_the_body_has_come(site: Sandbox) -> None:
    async def life() -> None:
        async with through("curl_cffi", site, 1) as client, through("async-curl_cffi", site, 1) as its:
            with client.http.stream("GET", url(site, "curl", "/p")) as page:
                assert b"".join(page.iter_content()).startswith(b"{")
            async with its.http.stream("GET", url(site, "curl", "/p")) as page:
                assert (await page.acontent()).startswith(b"{")
            await none_lent(client)
            await none_lent(its)
            with pytest.raises(hopline.Misuse, match="ws_connect: a web socket would not go through the pool"):
                client.http.ws_connect("wss://shop.localhost/")

    asyncio.run(life())


def test_a_stream_of_curl_that_is_dropped_or_an_error_gives_its_lease_back(site: Sandbox, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(name: str) -> None:
        async with through(name, site, 1) as client:
            get: Callable[..., Any] = lambda path: client.http.get(f"{target.url}{path}", stream=True)  # noqa: E731
            held = await get("/drip") if name in ASYNC else await asyncio.to_thread(get, "/drip")
            assert (await client.status()).leased == 1
            await none_lent(client)
            client.http.raise_for_status = True
            monkeypatch.setattr("hopline.curl_cffi.LONGEST", 600)
            with pytest.raises(HTTPError):
                await (get("/missing") if name in ASYNC else asyncio.to_thread(get, "/missing"))
            await none_lent(client)
            del held

    for name in ("curl_cffi", "async-curl_cffi"):
        monkeypatch.setattr("hopline.curl_cffi.LONGEST", 1)
        asyncio.run(story(name))


def test_a_digest_login_with_requests_goes_through_the_pool_as_a_whole(site: Sandbox, target: Target) -> None:
    async def life() -> None:
        async with through("requests", site, 1) as client:
            page = await client.send("GET", f"{target.url}/login", auth=HTTPDigestAuth("user", "password"))
            assert (page.status, page.text) == (200, "a page")

    asyncio.run(life())
    assert [path for _, path, _ in target.seen] == ["/login"] * 2 and all(exit.startswith("127.64.") for exit, _, _ in target.seen)


def test_no_error_of_a_client_prints_the_login_of_a_proxy(site: Sandbox) -> None:
    site.control("target", {"block_all_ms": 600_000})

    async def story(name: str) -> None:
        async with through(name, site, 1) as client:
            lease = await answer(client.pool.acquire())
            login = lease.proxy.username.reveal(), lease.proxy.password.reveal()
            lease.release()
            given: dict[str, Any] = {"raise_for_status": True} if name == "aiohttp" else {}
            for address in ("https://shop.localhost:9/", "http://shop.localhost:9/", site.ready["target_url"]):
                try:
                    told = repr(await client.send("POST", address, data={"a": "b"}, **given))
                except Exception as why:
                    told = "".join(traceback.format_exception(why)) + repr(why)
                assert not any(secret in told for secret in (*login, "Basic")), told

    each(story)


def test_what_is_no_pool_of_this_kind_and_what_would_go_around_it_is_refused(site: Sandbox) -> None:
    with hopline.AgentClient(**site.account) as agent, agent.open_pool("shop", size=1, **SHOP) as pool:
        asynchronous: Any
        for asynchronous in (AsyncPoolTransport, AsyncPoolSession, pool_session):
            with pytest.raises(hopline.Misuse, match="a pool that an `AsyncAgentClient` opened, and was given `Pool`"):
                asynchronous(pool)
        wrong: Any = agent
        for kind in (PoolTransport, PoolAdapter, PoolSession):
            with pytest.raises(hopline.Misuse, match="a pool that an `AgentClient` opened, and was given `AgentClient`"):
                kind(wrong)
        with PoolSession(pool) as http, pytest.raises(TypeError, match="leave `proxy` out"):
            http.get(url(site, "curl"), proxy="http://127.0.0.1:1")

    async def life() -> None:
        async with through("aiohttp", site) as client:
            with pytest.raises(hopline.Misuse, match="`middlewares` of its own"):
                await client.http.get(url(site, "aiohttp"), middlewares=())

    asyncio.run(life())
    assert not site.visits()
