"""Ctrl-C at every point of a blocking call where Python can raise it: the call ends, nothing that was bought is lost, and the client
goes on as before."""

import gc
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import hopline
import pytest
from canned import SESSION, SOUND, bought, until
from conftest import BUY
from hopline._engine import Engine
from hopline._hopline import Client

PACKAGE = Path(hopline.__file__).parent
# The code up to the result: an interrupt of `SPARED` comes once the caller has it, or, in a finaliser, is not heard by Python.
SPARED = ("_call", "_open", "_open_session", "__del__", "close")
RUNNING = {str(PACKAGE / f"{name}.py") for name in ("_run", "_engine", "_sends", "_asks", "_work", "_waiting", "_threads", "_http/_thread", "_commands", "_sync_client", "_sync_agent")}


class Hung(BaseException):
    """The call did not end."""


@contextmanager
def ends() -> Iterator[None]:
    def hung(number: int, frame: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(30)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


#: The functions in which calls were interrupted.
struck: set[str] = set()


def interrupted(at: int, call: Callable[[], object]) -> KeyboardInterrupt | None:
    """Makes a call that is interrupted once, at one of the points where a handler of signals may run: as a function begins, and as one of
    C returns."""
    left = at
    error: KeyboardInterrupt | None = None

    def strike(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename in RUNNING and frame.f_code.co_name not in SPARED:
            left -= 1
            if left == 0:
                struck.add(frame.f_code.co_name)
                raise KeyboardInterrupt

    try:
        sys.setprofile(strike)
        try:
            call()
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt as came:
        error = came
    assert (error is None) == (left > 0), "an interrupt was lost, or became something else"
    return error


def rest(engine: Engine) -> list[object]:
    """The things of which an idle client has none."""
    return [] if engine.core.present()[2] else ["an owner, a send, or work that was left"]


CALLS: dict[str, Callable[[hopline.AgentClient], object]] = {
    "a read": lambda agent: agent.get_balance(),
    "a purchase": lambda agent: agent.create_session(**BUY),
    "a purchase with an intent": lambda agent: agent.create_session(**BUY, intent="job-1"),
    "a session": lambda agent: agent.open_session(**BUY, keep=True),
}


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="this system has no alarm")
@pytest.mark.parametrize("is_in_thread", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_any_point_ends_the_call_and_loses_nothing(call: str, is_in_thread: bool) -> None:
    struck.clear()
    for at in count(1):
        sends: list[str] = []

        def http(request: hopline.Request, sends: list[str] = sends) -> hopline.Response:
            sends.append(request.method)
            return bought(request)

        agent = hopline.AgentClient(**SOUND, http=hopline.in_thread(http) if is_in_thread else http)
        with ends():
            error = interrupted(at, lambda: CALLS[call](agent))
            if error is None:
                missed = {"run", "begin", "start", "work", "_sent", "tell", "taken", "_taken"} - struck
                assert not missed and at > 20, "there are more points than these"
                return agent.close()
            assert sends.count("POST") <= 1 and not rest(agent._engine), at
            if "POST" in sends:
                assert "`s-1`" in str(getattr(error, "__notes__", "")) or agent.saved(), at
            agent.get_balance()
            agent.close()
            assert agent._engine.over.is_known


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="this system has no alarm")
@pytest.mark.parametrize("first", [1, 6, 11])
def test_an_interrupt_of_a_resumption_leaves_every_record_as_it_was_or_resumed(first: int, tmp_path: Path) -> None:
    def lose(request: hopline.Request) -> hopline.Response:
        raise hopline.Failed("closed", "maybe")

    with hopline.AgentClient(**SOUND, http=lose, store=hopline.FolderStore(tmp_path)) as agent:
        for n in range(2):
            with suppress(hopline.InDoubt):
                agent.create_session(**BUY, intent=f"job-{n}")
    for at in count(first, 15):
        agent = hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path))
        with ends():
            error = interrupted(at, agent.resume_all)
            until(lambda: not rest(agent._engine))
            assert {saved.intent for saved in agent.saved()} == {"job-0", "job-1"}, at
            agent.close()
        if error is None:
            return


def test_a_result_that_is_interrupted_while_it_is_read_is_told_with_the_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are made by Python code, and so is what a finaliser does, which the garbage collector may run among them."""
    made = hopline.Secret.__init__
    left = [KeyboardInterrupt()]

    def interrupt(self: hopline.Secret, text: Any) -> None:
        if left and text == "the password":
            raise left.pop()
        made(self, text)

    body = SESSION.replace(b"}}", b',"proxy":{"host":"h","port":1,"username":"u","password":"the password"}}}')
    agent = hopline.AgentClient(**SOUND, http=lambda _: hopline.Response(status=202, body=body))
    monkeypatch.setattr(hopline.Secret, "__init__", interrupt)
    with agent, pytest.raises(KeyboardInterrupt) as caught:
        agent.create_session(**BUY)
    assert not left and "session_id `s-1`" in str(caught.value.__notes__)


def test_a_call_that_is_made_as_the_interpreter_ends_does_not_hang() -> None:
    program = """
import hopline

class Last:
    def __init__(self):
        self.agents = [hopline.AgentClient(base_url="http://127.0.0.1:1", api_key="k", attempts=1, http=http) for http in (None, hopline.in_thread(print))]
    def __del__(self):
        for agent in self.agents:
            try:
                agent.get_balance()
            except hopline.Unavailable:
                print("unavailable")
            agent.close()

last = Last()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["unavailable"] * 2, ended


def test_a_finaliser_that_closes_a_client_while_it_reads_an_answer_does_not_hang() -> None:
    import json

    product = {"product_no": "p", "name": "n", "type": "dynamic", "sharing": "shared", "available": True, "price": 1, "currency": "USD", "unit": "GB"}
    body = json.dumps({"success": True, "data": {"items": [product] * 20_000}}).encode()
    reading: list[bool] = []

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            frame, names = sys._getframe(), set[str]()
            while frame := frame.f_back:  # type: ignore[assignment]
                names.add(frame.f_code.co_name)
            reading.append("tell" in names)
            agent.close()

    def http(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=200, body=body)

    agent = hopline.AgentClient(**SOUND, http=http)
    gc.collect()
    before = gc.get_threshold()
    respond = agent._engine.core.respond

    class Core:
        """The core, which leaves a cycle behind as it is about to make the objects of an answer."""

        def __getattr__(self, name: str) -> Any:
            return getattr(core, name)

        def respond(self, *args: Any) -> Any:
            Cycle()
            return respond(*args)

    core, agent._engine.core = agent._engine.core, Core()  # type: ignore[assignment]
    try:
        gc.set_threshold(700, 5, 5)
        with pytest.raises(hopline.Cancelled) as caught:
            agent.list_products()
    finally:
        gc.set_threshold(*before)
    assert reading == [True], "the collector ran while the answer was read"
    assert caught.value.effect == "none" and not getattr(caught.value, "__notes__", [])
    with pytest.raises(hopline.Misuse):
        agent.get_balance()


def test_nothing_is_kept_of_an_answer_whose_command_is_dropped_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are made by Python code, and so is what a finaliser does, which the garbage collector may run among them."""
    core = Client('{"base_url":"https://api.example/v1","api_key":"key"}', bytes(16))
    command = core.start("get_session", '{"session_id":"s-1"}', "{}")
    todo: list[Any] = []
    core.poll(0, 0, todo)
    [step] = [step[1] for step in todo if step[0] == "send"]
    made, dropped = hopline.Secret.__init__, []

    def drop(self: hopline.Secret, text: Any) -> None:
        made(self, text)
        dropped.append(text)
        core.abandon(command, 0, 0)

    monkeypatch.setattr(hopline.Secret, "__init__", drop)
    core.answer(step, 200, {}, SESSION.replace(b"}}", b',"proxy":{"host":"h","port":1,"password":"the password"}}}'), False, 0, 0)
    assert dropped == ["the password"]
    gc.collect()
    assert not [kept for kept in gc.get_objects() if isinstance(kept, hopline.Session)]
