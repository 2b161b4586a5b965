"""No secret shows: not in what prints, not in tracebacks, logs or records."""

import asyncio
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from wrapping import records
from transports import SYNC, sync_http

KEY = "canary-key-0123456789"


@pytest.fixture
def account() -> Iterator[tuple[Sandbox, dict[str, str]]]:
    sandbox = Sandbox("--provisioning-ms", "0", "--api-key", KEY)
    yield sandbox, sandbox.account
    sandbox.close()


def shown(value: object) -> str:
    """Every way in which a value prints."""
    told = f"{value!r} {value} {[value]}"
    if isinstance(value, BaseException):
        told += f" {value.args} {vars(value)} " + "".join(traceback.format_exception(value))
    return told


@pytest.mark.parametrize("name", SYNC)
def test_no_secret_is_printed_logged_or_recorded(
    name: str, account: tuple[Sandbox, dict[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox, options = account
    # The DEBUG log of httpx is its own.
    caplog.set_level(logging.INFO if name == "httpx" else logging.DEBUG)
    told: list[object] = []
    with sync_http(name) as http:
        agent = hopline.AgentClient(**options, http=http, store=hopline.FolderStore(tmp_path), on_event=told.append)
        sandbox.fault("create_session", kind="drop_after")
        opened = agent.open_session(**BUY, intent="job-1", credentials=True, headers={"x-more": "canary-header"})
        secrets = [opened.proxy.username, opened.proxy.password, opened.proxy.full_url]
        texts = [secret.reveal() for secret in secrets if secret is not None]
        assert len(texts) == 3
        told += [opened, opened.session, opened.proxy, agent, agent.saved(), agent.get_session(session_id=opened.session_id)]
        for bad in (lambda: agent.rotate_session(session_id="none"), lambda: agent.create_session(session_type="static", product_no="")):
            with pytest.raises(hopline.HoplineError) as caught:
                bad()
            told.append(caught.value)
        stored = "".join(path.read_text() for path in records(tmp_path))
    assert "job-1" in stored
    everything = " ".join(shown(one) for one in told) + caplog.text + stored
    for text in [KEY, "canary", *texts]:
        assert text not in everything


# A traceback shows the lines of this file, so no line that calls holds a secret itself.
EMAIL, HEADER, BODY, EVENT = "canary@mail.example", "canary-header", "canary-body", "canary-event"
SECRETS = {
    "api_key": "canary-issued-key",
    "api_secret": "canary-issued-secret",
    "proxy": {
        "host": "gate.example", "port": 1080, "protocol": "http", "username": "canary-user", "password": "canary-password",
        "full_url": "http://canary-user:canary-password@gate.example:1080",
    },
}  # fmt: skip


def test_no_secret_of_the_whole_api_is_printed_logged_or_recorded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent: list[str] = []
    fail = [False]

    def http(request: hopline.Request) -> Any:
        sent.append(f"{dict(request.headers)} {request.body!r}")
        told.append(request)
        if fail[0]:
            raise hopline.Failed("closed", "maybe")
        kept.append("".join(path.read_text() for path in records(tmp_path)))
        data = {**SECRETS, "agent_id": 7, "session_id": "s-1", "status": "active", "message": "sent", "next_cursor": None, "items": []}
        if request.url.endswith("request-api-key"):
            data["status"] = "email_sent"
        return hopline.Response(status=200, body=json.dumps({"success": True, "data": data}).encode())

    told: list[object] = []
    kept: list[str] = []
    options: dict[str, Any] = {"api_key": KEY, "base_url": "https://api.example/v1", "http": http, "attempts": 1}
    agent = hopline.AgentClient(**options, store=hopline.FolderStore(tmp_path), on_event=told.append, daily_cap_usd=100)
    headers = {"x-more": hopline.Secret(HEADER)}
    calls: list[Callable[[], object]] = [
        lambda: agent.request_api_key(email=EMAIL, headers=headers),
        lambda: agent.register_account(name="A", contact_email=hopline.Secret(EMAIL)),
        lambda: agent.get_session(session_id="s-1", include_credentials=True),
        lambda: agent.request("POST", "/x", body={"note": hopline.Secret(BODY)}, headers=headers),
        # A request that may be sent again is kept, its body included, so this one has nothing to hide there.
        lambda: agent.request("PUT", "/x", body={"note": "plain"}, headers=headers, safety="keyed", intent=f"free-{len(told)}"),
        lambda: agent.report_session_event(session_id="s-1", event=hopline.session_event(note=EVENT)),
        lambda: agent.get_balance(until=hopline.Until(at="/status", is_=["active"]), deadline=0),
    ]
    for call in calls:
        told.append(call())
    session = agent.get_session(session_id="s-1")
    proxy = session.proxy
    assert proxy is not None and proxy.password is not None and proxy.password.reveal() == "canary-password"
    told += [session, proxy, proxy.url(), proxy.for_requests(), proxy.for_httpx(), proxy.for_aiohttp(), proxy.for_playwright(), proxy.for_curl()]
    walk = agent.walk_products(headers=headers)
    told += [*walk, walk, *agent.walk_products(headers=headers).pages()]
    fail[0] = True
    for call in calls:
        with pytest.raises(hopline.HoplineError) as caught:
            call()
        told.append(caught.value)
    told += [*agent.saved(), agent]
    kept.append("".join(path.read_text() for path in records(tmp_path)))
    for secret in (KEY, EMAIL, HEADER, BODY, EVENT):
        assert any(secret in one for one in sent), f"{secret} was never sent, so nothing is shown by its absence"
    assert any(kept), "records were kept"
    for text in (*(shown(one) for one in told), caplog.text, *kept):
        assert "canary" not in text


def is_ours(frame: traceback.FrameSummary) -> bool:
    """Returns true if a frame is the package's own. A test has secrets in its locals, and may lie in a folder of any name."""
    return Path(frame.filename).is_relative_to(Path(hopline.__file__).parent)


def test_a_client_that_is_refused_does_not_repeat_its_key() -> None:
    for wrong in ({"base_url": "nowhere"}, {"base_url": "http://api.example/v1"}, {"base_url": "https://api.example", "attempts": "x"}):
        with pytest.raises((hopline.Invalid, TypeError)) as caught:
            hopline.AgentClient(api_key=KEY, **wrong)  # type: ignore[arg-type]
        told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in told.stack if is_ours(frame)]
        assert ours and "canary" not in "".join(str(frame.locals) for frame in ours) + shown(caught.value)


def test_a_transport_that_raises_with_the_key_in_its_text_is_named_only() -> None:
    def http(request: hopline.Request) -> Any:
        assert "canary" not in repr(request) and request.headers["x-api-key"] == KEY
        raise RuntimeError(f"can't send {dict(request.headers)}")

    with hopline.AgentClient(base_url="https://api.example/v1", api_key=KEY, http=http, attempts=1) as agent:
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY)
    assert "RuntimeError" in shown(caught.value) and "canary" not in shown(caught.value)


def test_a_secret_is_revealed_by_name_alone() -> None:
    secret = hopline.Secret("canary")
    assert f"{secret} {secret!r} {secret!s} {secret:>12} %s" % secret == "[redacted] [redacted] [redacted]   [redacted] [redacted]"
    assert secret == hopline.Secret("canary") and secret != "canary" and secret.reveal() == "canary"
    assert pickle.loads(pickle.dumps(secret)).reveal() == "canary" and {secret: 1}[hopline.Secret("canary")] == 1


def test_no_secret_is_in_what_an_event_loop_says_of_a_failed_task(caplog: pytest.LogCaptureFixture) -> None:
    async def life() -> None:
        async def http(request: hopline.Request) -> Any:
            raise RuntimeError(str(dict(request.headers)))

        agent = hopline.AsyncAgentClient(base_url="https://api.example/v1", api_key=KEY, http=http, attempts=1)
        task = asyncio.create_task(agent.get_balance())
        await asyncio.sleep(0.1)
        del task

    asyncio.run(life(), debug=True)
    assert "canary" not in caplog.text
