"""Records of earlier clients on their way from the store to the core: whatever comes between, an intent in doubt is not bought anew."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY

SOUND: dict[str, Any] = {"base_url": "https://api.example/v1", "api_key": "key", "attempts": 1}


class Wrapped(hopline.FolderStore):
    """The folder, with something around one of the methods of its shelf."""

    def __init__(self, path: Path, method: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        super().__init__(path)
        self._method, self._wrap = method, wrap

    def open(self) -> hopline.Shelf:
        shelf = super().open()
        setattr(shelf, self._method, self._wrap(getattr(shelf, self._method)))
        return shelf


class Lost:
    """A service that no answer comes from. It remembers the keys of the purchases."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, request: hopline.Request) -> Any:
        if request.method == "POST":
            self.keys.append(request.headers["idempotency-key"])
        raise hopline.Failed("closed", "maybe")


def doubt(folder: Path, http: Lost) -> Path:
    """The file of a purchase in doubt, of a client that has ended."""
    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(folder)) as agent, pytest.raises(hopline.InDoubt):
        agent.create_session(**BUY, intent="job-1")
    [file] = folder.glob("*.json")
    return file


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_an_intent_that_is_started_while_its_doubt_is_taken_up_waits_for_that(tmp_path: Path) -> None:
    http, taken, going = Lost(), threading.Event(), threading.Event()
    doubt(tmp_path, http)

    def slowly(claim: Callable[[str], bytes | None]) -> Callable[[str], bytes | None]:
        def claimed(record: str) -> bytes | None:
            data = claim(record)
            taken.set()
            assert going.wait(60)
            return data

        return claimed

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=http, store=Wrapped(tmp_path, "claim", slowly)) as agent:
            first = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            await until(taken.is_set)
            second = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            # Long enough for a purchase. On a slow machine it may be too short to find one, and never finds a wrong one.
            await asyncio.wait([second], timeout=0.5)
            going.set()
            for one in (first, second):
                with pytest.raises(hopline.InDoubt):
                    await one

    asyncio.run(life())
    assert len(set(http.keys)) == 1


def at_the_claim(raises: BaseException, done: list[str]) -> Callable[[Callable[[str], bytes | None]], Callable[[str], bytes | None]]:
    """A `read` that fails once: when a record is read anew, now that it is locked."""

    def wrap(read: Callable[[str], bytes | None]) -> Callable[[str], bytes | None]:
        def reads(record: str) -> bytes | None:
            done.append(record)
            if len(done) == 2:
                raise raises
            return read(record)

        return reads

    return wrap


def after_the_claim(raises: BaseException, done: list[str]) -> Callable[[Callable[[str], bytes | None]], Callable[[str], bytes | None]]:
    """A `claim` that gets the first record, and fails with the second."""

    def wrap(claim: Callable[[str], bytes | None]) -> Callable[[str], bytes | None]:
        def claims(record: str) -> bytes | None:
            done.append(record)
            if len(done) == 2:
                raise raises
            return claim(record)

        return claims

    return wrap


@pytest.mark.parametrize("raises", [OSError(24, "Too many open files"), KeyboardInterrupt()])
@pytest.mark.parametrize(("method", "wrap"), [("read", at_the_claim), ("claim", after_the_claim)])
def test_a_doubt_whose_claim_fails_is_still_there_for_the_next_start(
    method: str, wrap: Callable[[BaseException, list[str]], Any], raises: BaseException, tmp_path: Path
) -> None:
    http, done = Lost(), list[str]()
    file = doubt(tmp_path, http)
    if method == "claim":
        # One that can't be read concerns every intent.
        (tmp_path / f"{'f' * 32}-r1.json").write_text("cut sho")
    store = Wrapped(tmp_path, method, wrap(raises, done))
    with hopline.AgentClient(**SOUND, http=http, store=store) as agent:
        with pytest.raises(hopline.StoreError if isinstance(raises, OSError) else KeyboardInterrupt):
            agent.create_session(**BUY, intent="job-1")
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY, intent="job-1")
    assert caught.value.record == file.stem and len(done) > 2
    assert len(set(http.keys)) == 1


def test_a_doubt_that_the_core_was_not_told_of_is_still_there_for_the_next_start(tmp_path: Path) -> None:
    http, interrupts = Lost(), [KeyboardInterrupt()]
    doubt(tmp_path, http)

    class Core:
        def __init__(self, core: Any) -> None:
            self._core = core

        def restore(self, *records: Any) -> Any:
            if interrupts:
                raise interrupts.pop()
            return self._core.restore(*records)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._core, name)

    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as agent:
        setattr(agent._engine, "_core", Core(agent._engine._core))
        with pytest.raises(KeyboardInterrupt):
            agent.create_session(**BUY, intent="job-1")
        with pytest.raises(hopline.InDoubt):
            agent.create_session(**BUY, intent="job-1")
    assert len(set(http.keys)) == 1


def test_a_doubt_that_somebody_else_has_keeps_its_intent_from_buying(tmp_path: Path) -> None:
    http = Lost()
    file = doubt(tmp_path, http)
    other = hopline.FolderStore(tmp_path).open()
    assert other.claim(file.stem)
    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as agent:
        with pytest.raises(hopline.Busy):
            agent.create_session(**BUY, intent="job-1")
        other.close()
        with pytest.raises(hopline.InDoubt):
            agent.create_session(**BUY, intent="job-1")
    assert len(set(http.keys)) == 1


def test_a_start_that_still_reads_the_store_when_its_client_is_closed_buys_nothing(tmp_path: Path) -> None:
    http, reading, closed = Lost(), threading.Event(), threading.Event()
    came: list[BaseException] = []

    def slowly(names: Callable[[], list[str]]) -> Callable[[], list[str]]:
        def named() -> list[str]:
            reading.set()
            assert closed.wait(60)
            return names()

        return named

    def buy() -> None:
        try:
            agent.create_session(**BUY, intent="job-1")
        except hopline.HoplineError as error:
            came.append(error)

    agent = hopline.AgentClient(**SOUND, http=http, store=Wrapped(tmp_path, "names", slowly))
    buying = threading.Thread(target=buy)
    buying.start()
    assert reading.wait(60)
    agent.close()
    closed.set()
    buying.join()
    assert [type(error) for error in came] == [hopline.Misuse] and "create_session: this client is closed" in str(came[0])
    assert http.keys == [] and not list(tmp_path.glob("*.json"))
    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as other, pytest.raises(hopline.InDoubt):
        other.create_session(**BUY, intent="job-1")


def test_a_record_that_is_cut_short_keeps_its_intent_from_buying_while_somebody_else_looks_at_it(tmp_path: Path) -> None:
    http = Lost()
    file = doubt(tmp_path, http)
    file.write_bytes(file.read_bytes()[:-20])
    other = hopline.FolderStore(tmp_path).open()
    assert other.claim(file.stem)
    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as agent, pytest.raises(hopline.HoplineError):
        agent.create_session(**BUY, intent="job-1")
    assert len(http.keys) == 1
    other.close()
