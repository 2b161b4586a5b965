"""How the HTTP clients that the README names take answers that `tests/peers` can't give; see `odd`."""

import gzip
import json
import time
import zlib
from typing import Any

import hopline
import pytest
from canned import SOUND
from conftest import BUY
from odd import Odd, ok
from test_transports import BOTH, outcomes

SOLD = {"session_id": "s-1", "session_type": "dynamic", "status": "active"}
OF_NOBODY = {"host": "wrong.example", "port": 1}


def session(path: str, **more: Any) -> dict[str, Any]:
    """The session that was asked for, whose proxy tells whose it is."""
    name = path.partition("?")[0].rpartition("/")[2]
    return {"session_id": name, "session_type": "dynamic", "status": "active", "proxy": {"host": f"{name}.example", "port": 1080}} | more


def reads(*names: str) -> list[Any]:
    return [("get_session", {"session_id": name}) for name in names]


@pytest.mark.parametrize("which", BOTH)
def test_another_protocol_is_no_answer(which: str) -> None:
    def answer(method: str, path: str) -> bytes:
        head = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n"
        return head + ok(session(path)) if path.endswith("s-a") else ok(session(path))

    with Odd(answer) as service:
        first, second = outcomes(which, service.account, *reads("s-a", "s-b"))
    assert isinstance(first, hopline.HoplineError) and second.session_id == "s-b"


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_what_comes_behind_an_answer_without_a_body_is_no_answer_to_the_next_request(which: str, status: str) -> None:
    def answer(method: str, path: str) -> bytes:
        if path.endswith("balance"):
            return ok({"balance": 7})
        head = f"HTTP/1.1 {status}\r\n\r\n".encode()
        return head + ok(session(path, session_id="s-b", proxy=OF_NOBODY)) if path.endswith("s-a") else ok(session(path))

    with Odd(answer) as service:
        for _ in range(2):
            _, read, second = outcomes(which, service.account, *reads("s-a"), ("get_balance", {}), *reads("s-b"), attempts=3)
            assert second.proxy.host == "s-b.example" and read.raw == {"balance": 7}


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("spoil", [lambda body: gzip.compress(b"x" * 30_000_000), lambda body: b"\x1f\x8b" + body])
def test_a_compressed_body_that_is_too_long_or_none_is_no_success(which: str, spoil: Any) -> None:
    with Odd(lambda method, path: ok(SOLD, "202 Accepted", "content-encoding: gzip\r\n", lambda body: spoil(gzip.compress(body)))) as service:
        begun = time.monotonic()
        [bought] = outcomes(which, service.account, ("create_session", BUY))
    assert isinstance(bought, hopline.InDoubt) and bought.effect == "unknown" and time.monotonic() - begun < 30


def bought(body: bytes) -> Any:
    with hopline.AgentClient(**SOUND, http=lambda _: hopline.Response(status=202, body=body)) as agent:
        return agent.create_session(**BUY)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_body_of_several_compressed_parts_is_one_body(pack: Any) -> None:
    body = json.dumps({"success": True, "data": SOLD}).encode()
    assert bought(pack(body[:20]) + pack(body[20:30]) + pack(body[30:])).session_id == "s-1"


def test_a_body_of_many_empty_parts_holds_nobody_up() -> None:
    begun = time.monotonic()
    with pytest.raises(hopline.InDoubt):
        bought(gzip.compress(b"") * 200_000)
    assert time.monotonic() - begun < 10
