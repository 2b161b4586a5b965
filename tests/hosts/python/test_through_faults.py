"""Failures of requests through a pool, by each HTTP client: blocks that no other session mends, bodies that break off, leases that are over;
and the exits that each cookie goes by.
"""

import asyncio
import gc
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import CookieJar as ItsJar
from aiohttp._cookie_helpers import parse_set_cookie_headers
from hopline._leases import Leases
from hopline._through import Asked, AsyncSending, Cookies, Exit, Exits, Sending, through, through_async
from sandbox import Sandbox
from test_through_clients import answer, each, environment, none_lent, site, target  # noqa: F401 (fixtures)
from through import ASYNC, CLIENTS, Page, Target
from through import through as client_of
from yarl import URL

SHOP = "http://shop.example/"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The observations through the leases of each pool, the oldest first."""
    noted: dict[str, list[str]] = defaultdict(list)
    observe = Leases.observe

    def observed(leases: Leases, command: int, seen: str, wait: int | None) -> Any:
        if leases.is_out(command):
            noted[leases.pools[leases.out[command][0]]].append(seen)
        return observe(leases, command, seen, wait)

    monkeypatch.setattr(Leases, "observe", observed)
    return noted


async def streamed(name: str, http: Any, address: str) -> Page:
    """A page that is read as a stream."""
    if name == "aiohttp":
        async with http.get(address) as page:
            return Page(page.status, b"".join([part async for part in page.content.iter_chunked(1000)]).decode())
    if name == "async-curl_cffi":
        async with http.stream("GET", address) as page:
            return Page(page.status_code, b"".join([part async for part in page.aiter_content()]).decode())
    if name.startswith("async"):
        async with http.stream("GET", address) as page:
            return Page(page.status_code, b"".join([part async for part in page.aiter_bytes()]).decode())

    def read() -> Page:
        if name == "requests":
            with http.get(address, stream=True, timeout=60) as page:
                return Page(page.status_code, b"".join(page.iter_content(1000)).decode())
        with http.stream("GET", address) as page:
            return Page(page.status_code, b"".join(page.iter_content() if name == "curl_cffi" else page.iter_bytes()).decode())

    return await asyncio.to_thread(read)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_block_that_no_other_session_can_mend_is_handed_over_without_its_exit(is_stream: bool, site: Sandbox, target: Target) -> None:  # noqa: F811
    async def story(name: str) -> None:
        for path, bodies in (("/block", {"a block"}), ("/big", {"", "block " * 1_000_000})):
            async with client_of(name, site, 2, wait=2) as client:
                free, other = [await answer(client.pool.acquire()) for _ in range(2)]
                free.release()
                address = f"{target.url}{path}?{name}"
                page = await (streamed(name, client.http, address) if is_stream else client.send("GET", address))
                assert page.status == 403 and page.text in bodies
                other.release()
                assert (await client.status()).leased == 0

    each(story)
    assert len(target.seen) == 2 * len(CLIENTS)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_body_that_breaks_off_is_observed(is_stream: bool, site: Sandbox, target: Target, seen: dict[str, list[str]]) -> None:  # noqa: F811
    async def story(name: str) -> None:
        async with client_of(name, site, 1) as client:
            address = f"{target.url}/broken"
            with pytest.raises(Exception, match=r".") as caught:
                await (streamed(name, client.http, address) if is_stream else client.send("GET", address))
            await none_lent(client)
            noted = seen[f"pool-{name}"]
            assert not isinstance(caught.value, AssertionError) and noted and "status" not in noted[-1], (noted, caught.value)

    each(story)


def test_an_answer_of_aiohttp_that_is_dropped_gives_its_lease_back(site: Sandbox, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    async def life() -> None:
        async with client_of("aiohttp", site, 1) as client:
            page = await client.http.get(f"{target.url}/missing")
            assert page.status == 404 and (await client.status()).leased == 1
            del page
            gc.collect()
            await none_lent(client)

    monkeypatch.setattr("hopline.aiohttp.LONGEST", 1)
    asyncio.run(life())


# Without a network.


class Lent:
    """A lease."""

    def __init__(self, session_id: str = "a", generation: int = 0, valid: bool = True) -> None:
        self.session_id, self.generation, self.slot, self.valid = session_id, generation, 0, valid
        self.seen: list[Any] = []

    def observe(self, seen: Any) -> str:
        self.seen.append(seen)
        return "keep" if seen in ("target", 200) else "give_back"

    def release(self) -> None:
        pass


class Answer:
    def __init__(self, status: int) -> None:
        self.status_code = status


def test_a_407_through_a_tunnel_is_the_sites_own() -> None:
    class Sent(Sending[Any, Answer]):
        def send(self, lease: Any) -> Answer:
            return Answer(407)

        def observe(self, lease: Any, answer: Answer) -> str:
            return str(lease.observe(answer.status_code))

        def keep(self, answer: Answer) -> None: ...

        def drop(self, answer: Answer) -> None: ...

    class SentToo(AsyncSending[Any, Answer]):
        async def send(self, lease: Any) -> Answer:
            return Answer(407)

        async def observe(self, lease: Any, answer: Answer) -> str:
            return str(lease.observe(answer.status_code))

        async def keep(self, answer: Answer) -> None: ...

        async def drop(self, answer: Answer) -> None: ...

    class Pool:
        def __init__(self) -> None:
            self.lent = Lent()

        def status(self) -> Any:
            return type("Status", (), {"size": 3})

        def acquire(self, **terms: Any) -> Any:
            return self.lent

    class PoolToo(Pool):
        async def status(self) -> Any:
            return super().status()

        async def acquire(self, **terms: Any) -> Any:
            return self.lent

    for scheme, expected in (("https", ["target"]), ("http", [407, 407, 407])):
        pool: Any = Pool()
        through(pool, Asked("GET", f"{scheme}://shop.example/"), Sent())
        assert pool.lent.seen == expected
        its: Any = PoolToo()
        asyncio.run(through_async(its, Asked("GET", f"{scheme}://shop.example/"), SentToo()))
        assert its.lent.seen == expected


def test_a_lease_that_is_over_closes_nothing_of_the_exit_in_its_place() -> None:
    exits = Exits[str](lambda lease: f"connections of {lease.session_id}")
    early, now = Lent("a"), Lent("b")
    assert exits.of(early)[0].connections == "connections of a"
    early.valid = False
    assert exits.of(now)[1] == "connections of a"
    for _ in range(2):
        late, old = exits.of(early)
        assert (late.connections, old) == ("connections of a", None)
    assert exits.of(now)[1] is None
    assert exits.clear() == ["connections of b", "connections of a"]


def exit(name: str) -> Exit[None]:
    return Exit((name, 0), None)


def test_a_redirect_of_one_client_says_nothing_to_another() -> None:
    its, others = Cookies(), Cookies()
    others.take(exit("of others"), SHOP, 200, None, ["id=theirs"])
    its.take(exit("its"), f"{SHOP}go", 302, "/there", ["id=its"])
    assert others.header(exit("another"), f"{SHOP}there", "id=theirs") is None
    assert its.header(exit("another"), f"{SHOP}there", "id=its") == "id=its"
    assert its.header(exit("another"), f"{SHOP}elsewhere", "id=its") is None


@pytest.mark.parametrize(
    ("place", "cookie"),
    [
        ("http://s.example/a/x", "t=1; Path=a"),
        ("http://s.example/a/x", 't=1; Port="81"'),
        ("http://x.co/", "t=1; Domain=co"),
        ("http://shop.localhost/", "t=1; Domain=localhost"),
        ("http://a.s.example/", "t=1; Domain=.S.Example"),
        ("http://s.example/", "t=1; Path=/b"),
    ],
)
def test_what_a_clients_jar_takes_from_a_site_goes_by_no_other_exit(place: str, cookie: str) -> None:
    async def sent(to: URL) -> str | None:
        jar = ItsJar()
        jar.update_cookies(parse_set_cookie_headers([cookie]), URL(place))
        return "; ".join(f"{one.key}={one.value}" for one in jar.filter_cookies(to).values()) or None

    cookies = Cookies()
    cookies.take(exit("first"), place, 200, None, [cookie])
    above = URL(place).host.partition(".")[2]  # type: ignore[union-attr]
    for to in (URL(place), URL(place).with_path("/b"), URL(f"http://other.{above}/"), URL(f"http://other.{URL(place).host}/")):
        assert cookies.header(exit("second"), str(to), asyncio.run(sent(to))) is None


def test_a_programs_own_cookie_goes_through_the_exits_that_have_none_of_that_name() -> None:
    cookies, first, second = Cookies(), exit("first"), exit("second")
    assert cookies.header(first, SHOP, "id=own; of=program") == "id=own; of=program"
    cookies.take(first, SHOP, 200, None, ["id=fresh"])
    given = "id=own; id=fresh; of=program"  # of a jar that has both
    assert cookies.header(first, SHOP, given) == "id=fresh; of=program"
    assert cookies.header(second, SHOP, given) == cookies.header(second, SHOP, "id=fresh; of=program") == "id=own; of=program"
    assert cookies.header(second, SHOP, "of=program") == "of=program"  # as after `clear`
    assert cookies.header(second, SHOP, None) is None


def test_a_cookie_of_the_program_that_a_site_sets_anew_for_one_exit_stays_for_the_others(site: Sandbox, target: Target) -> None:  # noqa: F811
    async def story(name: str) -> None:
        async with client_of(name, site) as client:
            set_own: Callable[[], Any] = lambda: (  # noqa: E731
                client.http.cookie_jar.update_cookies({"exit": name}) if name == "aiohttp" else client.http.cookies.set("exit", name)
            )
            set_own()
            for path in ("/plain", "/cookie", "/plain"):
                await asyncio.gather(*(client.send("GET", f"{target.url}{path}?{name}") for _ in range(3)))
            await client.send("GET", f"{target.url}/cookie?{name}")
            await asyncio.gather(*(client.send("GET", f"{target.url}/plain?{name}") for _ in range(6)))

    names = [name for name in CLIENTS if "curl" not in name]  # whose exits have jars of their own
    each(story, names)
    for by, path, cookies in target.seen:
        assert cookies in (f"exit={by}", f"exit={path.partition('?')[2]}"), (by, path, cookies)
    assert {name for name in names if name in ASYNC} and {cookies for _, _, cookies in target.seen} & {f"exit={name}" for name in names}
