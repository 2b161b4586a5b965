"""Where a blocking client sends, and who ends what takes too long."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from test_giving_up import interrupted_once
from wrapping import Wrapped

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}
READ = hopline.Response(status=200, body=b'{"success":true,"data":{"balance":1}}')


def test_a_blocking_call_is_sent_in_the_thread_of_its_caller_and_no_thread_is_begun_for_it() -> None:
    seen: list[tuple[int, int]] = []

    def http(request: hopline.Request) -> hopline.Response:
        seen.append((threading.get_ident(), threading.active_count()))
        return READ

    with hopline.AgentClient(**SOUND, http=http) as agent:
        agent.get_balance()
        begun = threading.active_count()
        for _ in range(100):
            agent.get_balance()
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    assert max(count for _, count in seen) <= begun, "one thread watches over all sends"


def test_what_takes_too_long_is_ended_by_its_own_way_to_be_broken_off() -> None:
    ended: list[bool] = []

    def http(request: hopline.Request) -> hopline.Response:
        broken_off = threading.Event()
        request.on_abort(broken_off.set)
        ended.append(broken_off.wait(60))
        raise hopline.Failed("other", "maybe")

    with hopline.AgentClient(**SOUND, http=http, attempts=1, timeout=1) as agent:
        with pytest.raises(hopline.Unavailable) as caught:
            agent.get_balance()
    assert ended == [True] and "in time" in str(caught.value), str(caught.value)


def test_in_a_thread_of_its_own_a_callable_that_never_returns_is_given_up_on_time() -> None:
    over = threading.Event()

    def http(request: hopline.Request) -> hopline.Response:
        over.wait(60)
        return READ

    with hopline.AgentClient(**SOUND, http=hopline.in_thread(http), attempts=1, timeout=1) as agent:
        with pytest.raises(hopline.Unavailable):
            agent.get_balance()
        assert not over.is_set()
    over.set()


def test_what_a_callable_raises_in_a_thread_of_its_own_is_told_as_in_that_of_its_caller() -> None:
    def http(request: hopline.Request) -> hopline.Response:
        raise hopline.Failed("dns", "never", "no such name")

    told = []
    for transport in (http, hopline.in_thread(http)):
        with hopline.AgentClient(**SOUND, http=transport, attempts=1) as agent, pytest.raises(hopline.Unavailable) as caught:
            agent.get_balance()
        told.append((str(caught.value), caught.value.effect, caught.value.__notes__))
    assert told[0] == told[1] and told[0][2] == ["no such name"]


def test_an_interrupt_ends_a_send_at_once_and_whoever_waits_for_the_same_is_not_stranded() -> None:
    asked, over = threading.Event(), threading.Event()
    sends: list[str] = []

    def http(request: hopline.Request) -> hopline.Response:
        sends.append(request.method)
        asked.set()
        if len(sends) == 1:
            over.wait(60)
        return hopline.Response(status=200, body=b'{"success":true,"code":0,"data":{"id":7}}')

    user: dict[str, Any] = {"username": "shop-17", "password": "a long password", "intent": "user"}
    came: list[object] = []

    def wait_too() -> None:
        try:
            came.append(reseller.create_user(**user))
        except hopline.HoplineError as error:
            came.append(error)

    with hopline.ResellerClient(base_url="https://api.example/api", token="t", account="a", http=http) as reseller:
        other = threading.Thread(target=wait_too)
        both = threading.Event()

        def join() -> None:
            assert asked.wait(60)
            other.start()
            while reseller._engine.core.present()[0] < 2:
                threading.Event().wait(0.01)
            both.set()

        joining = threading.Thread(target=join)
        joining.start()
        with interrupted_once(both), pytest.raises(KeyboardInterrupt):
            reseller.create_user(**user)
        assert not over.is_set(), "the service has not answered yet"
        joining.join()
        other.join(60)
        assert not other.is_alive()
    [result] = came
    assert isinstance(result, hopline.InDoubt) and len(sends) == 1, f"{result!r} {sends}"


def test_what_another_thread_closes_breaks_off_what_is_being_read(sandbox: Sandbox) -> None:
    sandbox.fault("get_balance", kind="delay", ms=60_000)
    agent = hopline.AgentClient(**sandbox.account)
    came: list[BaseException] = []

    def call() -> None:
        try:
            agent.get_balance()
        except hopline.HoplineError as error:
            came.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    while not agent._engine.core.present()[1]:
        threading.Event().wait(0.01)
    agent.close()
    calling.join(30)
    assert not calling.is_alive() and isinstance(came[0], hopline.Cancelled)


@pytest.mark.parametrize("call", ["claim", "put"])
@pytest.mark.parametrize("wrong", [None, "done", 7, object()])
def test_a_store_that_answers_what_no_store_does_is_one_that_failed(call: str, wrong: object, tmp_path: Path) -> None:
    def answer(name: str, make: Callable[[], Any], *_: object) -> Any:
        return wrong if name == call else make()

    with hopline.AgentClient(**SOUND, http=lambda _: READ, store=Wrapped(tmp_path, answer)) as agent:
        with pytest.raises(hopline.StoreError) as caught:
            agent.create_session(**BUY, intent="job-1")
        assert caught.value.effect == ("unknown" if call == "claim" else "none"), "nothing was sent"
