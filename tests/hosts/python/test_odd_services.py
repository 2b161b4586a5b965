"""What the HTTP clients that the README names make of a service, or of something before it, that is unusual but allowed, or broken."""

import gzip
import socket
import time
import zlib
from collections.abc import Iterable
from typing import Any

import hopline
import pytest
from conftest import BUY
from odd import Asked, Odd, ok
from test_transports import BOTH, OWN, outcomes

EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
SOLD = {"session_id": "s-1", "session_type": "dynamic", "status": "active"}


def session(asked: Asked, **more: Any) -> dict[str, Any]:
    """The session that was asked for, whose password tells whose it is."""
    name = asked.path.partition("?")[0].rpartition("/")[2]
    return {"session_id": name, "session_type": "dynamic", "status": "active", "proxy": {"host": f"{name}.example", "port": 1080}} | more


def reads(*names: str) -> list[Any]:
    return [("get_session", {"session_id": name}) for name in names]


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("interim", [EARLY, b"HTTP/1.1 102 Processing\r\n\r\n" * 3, b"HTTP/1.1 199 Later\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("late", [0.0, 0.3])
def test_an_interim_answer_is_no_answer(which: str, interim: bytes, late: float) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float]:
        if asked.method == "POST":
            return [interim, late, ok(SOLD, "202 Accepted")]
        return [interim, late, ok(session(asked))] if asked.path.endswith("s-a") else [ok(session(asked))]

    with Odd(answer) as service:
        first, second, third, bought, after = outcomes(which, service.account, *reads("s-a", "s-b", "s-c"), ("create_session", BUY), *reads("s-d"))
    assert [one.session_id for one in (first, second, third, bought, after)] == ["s-a", "s-b", "s-c", "s-1", "s-d"], (first, second, bought)
    assert first.proxy.host == "s-a.example" and second.proxy.host == "s-b.example"


@pytest.mark.parametrize("which", BOTH)
def test_an_interim_answer_without_an_answer_is_a_lost_one(which: str) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float]:
        return [EARLY, 30.0] if asked.method == "POST" else [ok(session(asked))]

    with Odd(answer) as service:
        bought, read = outcomes(which, service.account, ("create_session", BUY), *reads("s-a"), timeout=1.0)
    assert isinstance(bought, hopline.InDoubt) and read.session_id == "s-a"


@pytest.mark.parametrize("which", BOTH)
def test_another_protocol_is_no_answer(which: str) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float]:
        head = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n"
        return [head, 0.3, ok(session(asked))] if asked.path.endswith("s-a") else [ok(session(asked))]

    with Odd(answer) as service:
        first, second = outcomes(which, service.account, *reads("s-a", "s-b"))
    assert isinstance(first, hopline.HoplineError) and second.session_id == "s-b"


# What comes late over a connection that is kept, nobody can tell from the next answer.
BEHIND = [(which, 0.0) for which in BOTH] + [(which, 0.05) for which in BOTH if "httpx" in which or "aiohttp" in which]


@pytest.mark.parametrize(("which", "late"), BEHIND)
@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "304 Not Modified"])
def test_what_comes_behind_an_answer_is_no_answer_to_the_next_request(which: str, late: float, status: str) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float]:
        if asked.path.endswith("balance"):
            return [ok({"balance": 7})]
        if not asked.path.endswith("s-a"):
            return [ok(session(asked))]
        first = ok(session(asked)) if status == "200 OK" else f"HTTP/1.1 {status}\r\n\r\n".encode()
        behind = ok(session(asked, session_id="s-b", proxy={"host": "wrong.example", "port": 1}))
        return [first, late, behind] if late else [first + behind]

    with Odd(answer) as service:
        for _ in range(2):
            _, read, second = outcomes(which, service.account, *reads("s-a"), ("get_balance", {}), *reads("s-b"), attempts=3)
            assert second.proxy.host == "s-b.example" and read.raw == {"balance": 7}


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_body_that_is_compressed_though_nobody_asked_for_it_is_read(which: str, name: str, pack: Any) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float]:
        data, status = (SOLD, "202 Accepted") if asked.method == "POST" else ({"balance": "1" * 500}, "200 OK")
        return [ok(data, status, f"content-encoding: {name}\r\n", pack)]

    with Odd(answer) as service:
        bought, read = outcomes(which, service.account, ("create_session", BUY), ("get_balance", {}))
    assert bought.session_id == "s-1" and read.raw["balance"] == "1" * 500
    assert all(asked.headers["accept-encoding"] == "identity" for asked in service.asked)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("spoil", [lambda body: body[:-20], lambda body: gzip.compress(b"x" * 30_000_000), lambda body: b"\x1f\x8b" + body])
def test_a_compressed_body_that_is_cut_or_too_long_or_none_is_no_success(which: str, spoil: Any) -> None:
    with Odd(lambda asked: [ok(SOLD, "202 Accepted", "content-encoding: gzip\r\n", lambda body: spoil(gzip.compress(body)))]) as service:
        begun = time.monotonic()
        [bought] = outcomes(which, service.account, ("create_session", BUY))
    assert isinstance(bought, hopline.InDoubt) and bought.effect == "unknown" and time.monotonic() - begun < 30


@pytest.mark.parametrize("which", BOTH)
def test_a_write_without_a_key_goes_over_a_connection_of_its_own(which: str) -> None:
    """The service closes a kept connection at the moment when it is used again."""

    def answer(asked: Asked) -> Iterable[bytes | float] | None:
        return None if asked.nth > 0 and asked.method != "GET" else [ok(session(asked))]

    with Odd(answer) as service:
        calls = [*reads("s-a"), ("terminate_session", {"session_id": "s-a"})] * 3
        found = outcomes(which, service.account, *calls)
    assert not [one for one in found if isinstance(one, hopline.HoplineError)], found
    assert len(service.asked) == 6


@pytest.mark.parametrize("which", BOTH)
def test_a_service_that_closes_after_each_answer_is_a_service(which: str) -> None:
    def answer(asked: Asked) -> Iterable[bytes | float] | None:
        return [ok(session(asked)), 0.0] if asked.nth == 0 else None

    with Odd(answer) as service:
        assert all(one.session_id == "s-a" for one in outcomes(which, service.account, *reads("s-a", "s-a", "s-a"), attempts=3))


@pytest.mark.parametrize("which", OWN)
@pytest.mark.parametrize("hole", ["hangs", "refuses"])
def test_an_address_that_leads_nowhere_is_passed(which: str, hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Odd(lambda asked: [ok({"balance": 7})]) as service, socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        nowhere = full.getsockname()[:2]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:  # a backlog that is full answers no more
            one.setblocking(False)
            one.connect_ex(nowhere)
        if hole == "refuses":
            full.close()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", at) for at in (nowhere, ("127.0.0.1", service.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        begun = time.monotonic()
        [read] = outcomes(which, {**service.account, "base_url": "http://two.example/v1"}, ("get_balance", {}), timeout=10.0, allow_http=True)
        assert read.raw["balance"] == 7 and time.monotonic() - begun < 8
        for one in waiting:
            one.close()
