"""The events while a client works: events of requests, the logger `hopline`, spans and metrics."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import SOUND, bought, until
from conftest import BUY
from hopline.opentelemetry import instrument
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from sandbox import Sandbox

SENDS = ("sent", "answered")


def test_each_request_is_told_when_it_goes_out_and_when_it_is_answered(sandbox: Sandbox) -> None:
    told: list[hopline.Event] = []
    sandbox.fault("get_balance", kind="drop_before")
    sandbox.fault("get_budget", kind="delay", ms=300)
    with hopline.AgentClient(**sandbox.account, on_event=told.append) as agent:
        agent.get_balance()
        agent.get_budget()
    sends = [event for event in told if event.event in SENDS]
    assert [event.event for event in sends] == ["sent", "answered"] * 3
    assert {(event.operation, event.method, event.path) for event in sends[:4]} == {("get_balance", "GET", "/v1/billing/balance")}
    assert [(event.http_status, event.failure) for event in sends[1::2]] == [(None, "closed"), (200, None), (200, None)]
    assert sends[0].duration is None and sends[5].duration is not None and 0.3 <= sends[5].duration < 30

    async def life() -> list[hopline.Event]:
        async with hopline.AsyncAgentClient(**sandbox.account, timeout=0.2, attempts=1) as other:
            events = other.events()
            sandbox.fault("get_balance", kind="delay", ms=1000)
            with pytest.raises(hopline.Unavailable):
                await other.get_balance()
        return [event async for event in events if event.event in SENDS]

    sent, answered = asyncio.run(life())
    assert (sent.event, answered.event, answered.failure) == ("sent", "answered", "timeout") and (answered.duration or 0) >= 0.19


def test_the_logger_tells_purchases_doubts_and_sends_at_their_levels_and_no_secret(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hopline")
    with hopline.AgentClient(**sandbox.account, attempts=1) as agent:
        opened = agent.open_session(**BUY, intent="job-1", credentials=True)
        sandbox.fault("create_session", kind="drop_after")
        with pytest.raises(hopline.InDoubt):
            agent.create_session(**BUY, intent="job-2")
    by_level = {level: [record.getMessage() for record in caplog.records if record.levelno == level] for level in (10, 20, 30)}
    assert [text.split(": ")[1] for text in by_level[20]] == ["charged", "accepted"]
    assert by_level[20][1].startswith(f"create_session `job-1`: accepted: session_id {opened.session_id}")
    assert opened.charged_usd is not None and opened.charged_usd > 0
    assert len(by_level[30]) == 1 and by_level[30][0].startswith("create_session `job-2`: in doubt: record ")
    assert "open_session: sent: method POST, path /v1/sessions" in by_level[10]
    assert any(text.startswith("open_session: answered: method POST, path /v1/sessions, http_status 202, duration ") for text in by_level[10])
    proxy = opened.proxy
    assert proxy.username and proxy.password and proxy.full_url
    for secret in (sandbox.account["api_key"], proxy.username.reveal(), proxy.password.reveal(), proxy.full_url.reveal()):
        assert secret not in caplog.text
    caplog.clear()
    caplog.set_level(logging.INFO, "hopline")
    with hopline.AgentClient(**SOUND, http=bought) as other:
        other.open_session(**BUY, keep=True)
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]


def test_where_nobody_listens_nothing_is_made_and_logging_is_not_imported() -> None:
    program = """
import sys, hopline
from hopline import _listeners
def never(*told): raise AssertionError(told)
_listeners.Event = _listeners.read_event = never
def http(request): return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')
with hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http) as agent:
    agent.create_session(session_type="dynamic", product_no="p", intent="job-1")
    assert "logging" not in sys.modules
    import logging  # no handler was added
    agent.create_session(session_type="dynamic", product_no="p", intent="job-2")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def read_by(metrics: InMemoryMetricReader) -> dict[str, Any]:
    data = metrics.get_metrics_data()
    assert data is not None
    return {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}


def test_spans_and_metrics_tell_of_operations_and_of_their_requests(sandbox: Sandbox) -> None:
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([metrics])
    sandbox.fault("create_session", times=2, kind="drop_after")
    with hopline.AgentClient(**sandbox.account) as agent:
        instrument(agent, tracer_provider=traces, meter_provider=meters)
        with traces.get_tracer("program").start_as_current_span("job"):
            opened = agent.open_session(**BUY, intent="job-1")

        async def read() -> None:
            other = agent.to_async()
            with pytest.raises(hopline.Refused):
                await other.get_session(session_id="ses_none")

        asyncio.run(read())
    made = {span.name: span for span in spans.get_finished_spans()}
    job, opening, posted = made["job"], made["hopline open_session"], made["POST open_session"]
    assert opening.parent is not None and opening.parent.span_id == job.context.span_id
    assert posted.parent is not None and posted.parent.span_id == opening.context.span_id and posted.kind is SpanKind.CLIENT
    assert posted.start_time is not None and opening.start_time is not None and posted.start_time >= opening.start_time
    posts = [span for span in spans.get_finished_spans() if span.name == "POST open_session"]
    assert [dict(span.attributes or {}).get("error.type") for span in posts] == ["closed", "closed", None]
    refused = made["hopline get_session"]
    assert refused.status.status_code is StatusCode.ERROR and dict(refused.attributes or {})["error.type"] == "refused"
    found = read_by(metrics)
    assert set(found) == {"hopline.request.duration", "hopline.purchases", "hopline.spent_usd"}
    [bought] = found["hopline.purchases"].data.data_points
    assert bought.value == 1 and bought.attributes == {"hopline.operation": "create_session", "result": "accepted"}
    assert sum(point.count for point in found["hopline.request.duration"].data.data_points) == len(sandbox.requests())
    charged = sandbox.state()["charges"][0]["amount"]
    assert found["hopline.spent_usd"].data.data_points[0].value == pytest.approx(float(charged))
    whole = repr([span.to_json() for span in spans.get_finished_spans()])
    assert opened.session_id and sandbox.account["api_key"] not in whole


@pytest.mark.parametrize("awaited", [False, True])
def test_metrics_tell_what_pools_have_and_do(awaited: bool, sandbox: Sandbox, tmp_path: Path) -> None:
    metrics = InMemoryMetricReader()
    meters = MeterProvider([metrics])
    shop: dict[str, Any] = {**BUY, "daily_cap_usd": 100}

    def check(size: int) -> None:
        found = read_by(metrics)
        points = {(point.attributes["state"]): point.value for point in found["hopline.pool.sessions"].data.data_points}
        assert sum(points.values()) == size and points["leased"] == 1
        assert found["hopline.pool.waiting"].data.data_points[0].value == 0
        [held] = found["hopline.pool.held"].data.data_points
        assert held.attributes == {"hopline.pool.name": "shop", "reason": "paused", "needs": "caller"}
        assert found["hopline.pool.acquire.duration"].data.data_points[0].count == 3
        assert found["hopline.pool.acquire.timeouts"].data.data_points[0].value == 1
        assert found["hopline.pool.lease.duration"].data.data_points[0].count == 1
        seen = {point.attributes["seen"]: point.value for point in found["hopline.pool.observations"].data.data_points}
        assert seen == {"200": 1, "proxy": 1}
        assert sum(point.value for point in found["hopline.store.calls"].data.data_points) > 3
        [bought] = found["hopline.pool.purchases"].data.data_points
        assert bought.value == 1 and bought.attributes == {"hopline.pool.name": "shop", "result": "accepted"}
        assert found["hopline.pool.create.duration"].data.data_points[0].count == 1
        assert found["hopline.pool.blocked_everywhere"].data.data_points[0].value == 0

    def in_threads() -> None:
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
            instrument(agent, tracer_provider=TracerProvider(), meter_provider=meters)
            with agent.open_pool("shop", size=1, **shop) as pool:
                pool.acquire().release()
                with pool.acquire() as lease:
                    lease.observe(200)
                    lease.observe("proxy")
                    with pytest.raises(hopline.Unavailable):
                        pool.acquire(timeout=0.1)
                    pool.pause()
                    check(1)

    async def in_tasks() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
            instrument(agent, tracer_provider=TracerProvider(), meter_provider=meters)
            async with agent.open_pool("shop", size=1, **shop) as pool:
                (await pool.acquire()).release()
                async with pool.acquire() as lease:
                    lease.observe(200)
                    lease.observe("proxy")
                    with pytest.raises(hopline.Unavailable):
                        await pool.acquire(timeout=0.1)
                    await pool.pause()
                    await asyncio.to_thread(check, 1)

    if awaited:
        asyncio.run(in_tasks())
    else:
        in_threads()


def test_rotations_are_told_of_their_pool(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hopline")
    metrics = InMemoryMetricReader()
    shop: dict[str, Any] = {**BUY, "daily_cap_usd": 100}
    with hopline.AgentClient(**sandbox.account) as agent:
        instrument(agent, tracer_provider=TracerProvider(), meter_provider=MeterProvider([metrics]))
        with agent.open_pool("shop-eu", size=2, **shop) as pool:
            with pool.acquire(target="shop.example") as lease:
                assert lease.observe("captcha") == "give_back"
            until(lambda: "hopline.pool.rotations" in read_by(metrics))
    found = read_by(metrics)
    [rotated] = found["hopline.pool.rotations"].data.data_points
    assert rotated.value == 1 and rotated.attributes == {"hopline.pool.name": "shop-eu", "reason": "captcha"}
    told = {record.levelno for record in caplog.records if record.getMessage().startswith("open_pool `pool/shop-eu`: pool rotated: session_id ")}
    assert told == {logging.DEBUG}
