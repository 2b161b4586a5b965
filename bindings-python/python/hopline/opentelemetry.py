"""Spans and metrics of a client, for OpenTelemetry: `pip install hopline[opentelemetry]`.

    from hopline.opentelemetry import instrument

    with hopline.AgentClient() as agent:
        instrument(agent)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import time_ns

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import SpanKind, StatusCode, TracerProvider, get_tracer

from ._async_client import AsyncClient
from ._hopline import VERSION
from ._sync_client import Client
from ._told import Event, HoplineError

_NAME = "hopline"


def instrument(
    client: Client | AsyncClient, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Makes a span of each operation of a client and, below it, one of each request, and keeps the metrics `hopline.request.duration`,
    `hopline.purchases` and `hopline.spent_usd`. Nothing of it holds a secret.

    Args:
        client: The client; `to_sync` and `to_async` of it are instrumented, too.
        tracer_provider: Who makes the spans; the global one if omitted.
        meter_provider: Who keeps the metrics; the global one if omitted.
    """
    tracer = get_tracer(_NAME, VERSION, tracer_provider)
    meter = get_meter(_NAME, VERSION, meter_provider)
    duration = meter.create_histogram("hopline.request.duration", "s", "How long requests took")
    purchases = meter.create_counter("hopline.purchases", "{purchase}", "Purchases, by what is known of them")
    spent = meter.create_counter("hopline.spent_usd", "{USD}", "What the service said that purchases cost")

    @contextmanager
    def span(operation: str) -> Iterator[Callable[[HoplineError], None]]:
        with tracer.start_as_current_span(f"hopline {operation}", record_exception=False, set_status_on_exception=False) as current:
            current.set_attribute("hopline.operation", operation)

            def failed(error: HoplineError) -> None:
                current.set_status(StatusCode.ERROR, str(error))
                current.set_attributes({"error.type": error.kind, "hopline.effect": error.effect, "hopline.advice": error.advice})

            try:
                yield failed
            except BaseException as error:
                current.set_status(StatusCode.ERROR)
                current.set_attribute("error.type", type(error).__name__)
                raise

    def answered(event: Event) -> None:
        about: dict[str, str | int] = {"hopline.operation": event.operation, "http.request.method": event.method or ""}
        if event.http_status is not None:
            about["http.response.status_code"] = event.http_status
        if event.failure is not None or (event.http_status or 0) >= 400:
            about["error.type"] = event.failure or str(event.http_status)
        took, end = event.duration or 0, time_ns()
        duration.record(took, about)
        one = tracer.start_span(f"{event.method} {event.operation}", kind=SpanKind.CLIENT, start_time=end - round(took * 1e9))
        one.set_attributes({**about, "url.path": event.path or ""})
        if "error.type" in about:
            one.set_status(StatusCode.ERROR)
        one.end(end)

    def listen(event: Event) -> None:
        match event.event:
            case "answered":
                answered(event)
            case "accepted" | "ordered":
                purchases.add(1, {"hopline.operation": event.operation, "result": "accepted"})
                if event.estimated_charge_usd is not None:
                    spent.add(float(event.estimated_charge_usd), {"hopline.operation": event.operation})
            case "in_doubt":
                purchases.add(1, {"hopline.operation": event.operation, "result": "in_doubt"})

    client._engine.span = span
    client._engine.listen(listen)
