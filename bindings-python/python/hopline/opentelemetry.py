"""Spans and metrics of a client, for OpenTelemetry: `pip install hopline[opentelemetry]`.

    from hopline.opentelemetry import instrument

    with hopline.AgentClient() as agent:
        instrument(agent)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter
from opentelemetry.trace import SpanKind, StatusCode, Tracer, TracerProvider, get_tracer

from . import _run
from ._answers import read
from ._commands import begin
from ._hopline import VERSION
from ._told import Event, HoplineError, PoolStatus, read_pool_status
from ._value import Reply

if TYPE_CHECKING:
    from ._answers import Span
    from ._async_client import AsyncClient
    from ._engine import Engine
    from ._sync_client import Client

_NAME = "hopline"
_POOL = "hopline.pool.name"
_STATES = ("ready", "leased", "creating", "changing", "resting", "in_doubt", "empty", "with_others", "free_in_store", "unknown")


def instrument(
    client: Client | AsyncClient, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Makes a span of each operation of a client and, below it, one of each request; and keeps metrics of its requests and purchases, its
    store, and its pools. None of them holds a secret.

    Args:
        client: The client; `to_sync` and `to_async` of it are instrumented, too.
        tracer_provider: The provider of spans. Default: the global one.
        meter_provider: The provider of metrics. Default: the global one.
    """
    engine = client._engine
    tracer, meter = get_tracer(_NAME, VERSION, tracer_provider), get_meter(_NAME, VERSION, meter_provider)
    engine.span = _spans(tracer)
    engine.listen(_listener(tracer, meter))
    engine.leases.watch = _Watch(meter)
    _observe_pools(meter, weakref.ref(engine))


def _spans(tracer: Tracer) -> Callable[[str], Span]:
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

    return span


def _listener(tracer: Tracer, meter: Meter) -> Callable[[Event], None]:
    duration = meter.create_histogram("hopline.request.duration", "s", "How long requests took")
    purchases = meter.create_counter("hopline.purchases", "{purchase}", "Purchases, by what is known of them")
    spent = meter.create_counter("hopline.spent_usd", "{USD}", "What the service said that purchases cost")
    bought = meter.create_counter("hopline.pool.purchases", "{purchase}", "Purchases of pools, by what is known of them")
    created = meter.create_histogram("hopline.pool.create.duration", "s", "How long it took until a purchase of a pool could be used")
    rotated = meter.create_counter("hopline.pool.rotations", "{rotation}", "Sessions of pools that were given another exit")
    leaked = meter.create_counter("hopline.pool.leases.leaked", "{lease}", "Leases that were not back in time")
    since: dict[str, float] = {}

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

    def of_pool(event: Event) -> None:
        """The events of a pool have the intent `pool/<name>`, and those of its purchases `pool/<name>/<slot>#<number>`."""
        prefix, _, rest = (event.intent or "").partition("/")
        if prefix != "pool":
            return
        pool, session_id = {_POOL: rest.rpartition("/")[0] if "#" in rest else rest}, event.session_id or ""
        match event.event:
            case "accepted" | "in_doubt":
                bought.add(1, {**pool, "result": event.event})
                if event.event == "accepted":
                    since[session_id] = monotonic()
            case "status" if event.phase != "pending" and (began := since.pop(session_id, None)) is not None:
                created.record(monotonic() - began, pool)
            case "pool_rotated":
                rotated.add(1, {**pool, "reason": event.cause or ""})
            case "lease_leaked":
                leaked.add(1, pool)

    def listen(event: Event) -> None:
        of_pool(event)
        match event.event:
            case "answered":
                answered(event)
            case "charged":
                purchases.add(1, {"hopline.operation": event.operation, "result": "accepted"})
                if event.charged_usd is not None:
                    spent.add(float(event.charged_usd), {"hopline.operation": event.operation})
            case "in_doubt":
                purchases.add(1, {"hopline.operation": event.operation, "result": "in_doubt"})

    return listen


class _Watch:
    """The pools' work with leases, and the store's calls. Named after OpenTelemetry's metrics of connection pools."""

    def __init__(self, meter: Meter) -> None:
        self._waits = meter.create_histogram("hopline.pool.acquire.duration", "s", "How long it took to acquire a lease")
        self._uses = meter.create_histogram("hopline.pool.lease.duration", "s", "How long leases were out")
        self._timeouts = meter.create_counter("hopline.pool.acquire.timeouts", "{timeout}", "Acquires that were granted no lease")
        self._seen = meter.create_counter("hopline.pool.observations", "{observation}", "What was seen through leases")
        self._calls = meter.create_counter("hopline.store.calls", "{call}", "Calls of the store")
        self._lost = meter.create_counter("hopline.store.claims.lost", "{claim}", "Claims that ended while their owner lived")

    def acquired(self, pool: str, seconds: float, is_granted: bool) -> None:
        self._waits.record(seconds, {_POOL: pool})
        if not is_granted:
            self._timeouts.add(1, {_POOL: pool})

    def returned(self, pool: str, seconds: float) -> None:
        self._uses.record(seconds, {_POOL: pool})

    def observed(self, pool: str, seen: str) -> None:
        self._seen.add(1, {_POOL: pool, "seen": seen.strip('"{}').removeprefix('status": ')})

    def stored(self, call: str) -> None:
        self._calls.add(1, {"call": call})

    def lost(self, names: int) -> None:
        self._lost.add(names)


def _observe_pools(meter: Meter, client: weakref.ref[Engine]) -> None:
    """Pools are read when metrics are read, in the thread that reads them."""

    def gauge(name: str, unit: str, about: str, of: Callable[[PoolStatus], Iterable[tuple[float, dict[str, str]]]]) -> None:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(value, {_POOL: pool, **more}) for pool, status in _statuses(client()).items() for value, more in of(status)
            ]

        meter.create_observable_gauge(name, [observe], unit, about)

    gauge(
        "hopline.pool.sessions",
        "{session}",
        "Slots of a pool, by their state",
        lambda status: [(getattr(status, state), {"state": state}) for state in _STATES],
    )
    gauge("hopline.pool.waiting", "{request}", "Those who wait for a lease", lambda status: [(status.waiting, {})])
    gauge("hopline.pool.spent_usd", "{USD}", "What was bought today (UTC)", lambda status: [(float(status.spent_today_usd), {})])
    gauge(
        "hopline.pool.held",
        "1",
        "Whether a pool does not buy, by reason and by who can end that",
        lambda status: [] if status.hold is None else [(1, {"reason": status.hold.reason, "needs": status.hold.needs})],
    )
    gauge(
        "hopline.pool.blocked_everywhere",
        "{target}",
        "Targets that block every exit",
        lambda status: [(len(status.blocked_everywhere), {})],
    )


def _statuses(engine: Engine | None) -> dict[str, PoolStatus]:
    found: dict[str, PoolStatus] = {}
    for number, name in () if engine is None else list(engine.leases.pools.items()):
        carrier = engine.carrier() if engine is not None else None
        if engine is None or carrier is None or engine.is_closed():
            return found
        try:
            taken = _run.run(engine, carrier, "pool_status", begin("pool_status", {"pool": number}, {}))
            found[name] = read_pool_status(read(taken, Reply).raw)
        except HoplineError:  # the client was closed meanwhile
            continue
    return found
