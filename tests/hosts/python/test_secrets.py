"""No secret shows: not in what prints, not in tracebacks, logs or records."""

import asyncio
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
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
    # What httpx logs at DEBUG is its own.
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
        records = "".join(path.read_text() for path in tmp_path.glob("*.json"))
    assert "job-1" in records
    everything = " ".join(shown(one) for one in told) + caplog.text + records
    for text in [KEY, "canary", *texts]:
        assert text not in everything


def test_a_client_that_is_refused_does_not_repeat_its_key() -> None:
    for wrong in ({"base_url": "nowhere"}, {"base_url": "http://api.example/v1"}, {"base_url": "https://api.example", "attempts": "x"}):
        with pytest.raises((hopline.Invalid, TypeError)) as caught:
            hopline.AgentClient(api_key=KEY, **wrong)  # type: ignore[arg-type]
        told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in told.stack if "/hopline/" in frame.filename]
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
