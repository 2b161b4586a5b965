// The entry `hopline/opentelemetry`: the events of a client as metrics and spans. opentelemetry.d.ts documents it.
import { SpanKind, SpanStatusCode, context, metrics, trace } from "@opentelemetry/api";

const [NAME, POOL] = ["hopline", "hopline.pool.name"];

/** Makes metrics and spans of a client and its pools, until the returned function is called. */
export function instrument(client, { meterProvider = metrics, tracerProvider = trace } = {}) {
  const meter = meterProvider.getMeter(NAME);
  const tracer = tracerProvider.getTracer(NAME);
  const histogram = (name) => meter.createHistogram(`hopline.${name}`, { unit: "s" });
  const counter = (name, what) => meter.createCounter(`hopline.${name}`, { unit: `{${what}}` });
  const requests = histogram("request.duration");
  const purchases = counter("purchases", "purchase");
  const spent = counter("spent_usd", "USD");
  const [acquire, lease, create] = ["acquire", "lease", "create"].map((what) => histogram(`pool.${what}.duration`));
  const timeouts = counter("pool.acquire.timeouts", "timeout");
  const bought = counter("pool.purchases", "purchase");
  const rotations = counter("pool.rotations", "rotation");
  const observations = counter("pool.observations", "observation");
  const leaked = counter("pool.leases.leaked", "lease");
  const calls = counter("store.calls", "call");
  const lost = counter("store.claims.lost", "claim");
  /** By send, and by command: its span. */
  const [spans, operations] = [new Map(), new Map()];
  /** By session that was bought and is not usable yet: the time of its purchase, and its pool. */
  const begun = new Map();

  const seconds = (event) => event.duration_ms / 1000;
  const ofPool = ({ pool }) => ({ [POOL]: pool });
  /** Of a purchase of a pool: the pool's name. */
  const poolOf = ({ intent }) => /^pool\/(.*)\/\d+#\d+$/.exec(intent)?.[1];
  const purchase = (event, result) => {
    purchases.add(1, { "hopline.operation": event.operation, result });
    const charge = Number(event.charged_usd);
    if (charge > 0) spent.add(charge, { "hopline.operation": event.operation });
  };
  const ofItsPool = (event, result) => {
    const pool = poolOf(event);
    if (pool !== undefined) bought.add(1, { [POOL]: pool, result });
    return pool;
  };

  /** By event: its metrics and spans. */
  const heard = {
    began({ operation, command }) {
      operations.set(command, tracer.startSpan(`hopline ${operation}`, { attributes: { "hopline.operation": operation } }));
    },
    ended({ command, kind, effect, advice }) {
      const span = operations.get(command);
      operations.delete(command);
      if (kind !== undefined) {
        span?.setAttributes({ "error.type": kind, "hopline.effect": effect, "hopline.advice": advice });
        span?.setStatus({ code: SpanStatusCode.ERROR });
      }
      span?.end();
    },
    sent({ operation, command, method, path, send }) {
      const attributes = { "hopline.operation": operation, "http.request.method": method, "url.path": path };
      // A repeat runs in the context of its caller, whose span need not be the operation's.
      const [above, now] = [operations.get(command), context.active()];
      spans.set(send, tracer.startSpan(`${method} ${operation}`, { kind: SpanKind.CLIENT, attributes }, above ? trace.setSpan(now, above) : now));
    },
    answered(event) {
      const { operation, method, send, status, failure } = event;
      const error = failure ?? (status >= 400 ? String(status) : undefined);
      const told = { ...(status !== undefined && { "http.response.status_code": status }), ...(error !== undefined && { "error.type": error }) };
      requests.record(seconds(event), { "hopline.operation": operation, "http.request.method": method, ...told });
      const span = spans.get(send);
      spans.delete(send);
      span?.setAttributes(told);
      if (error !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR });
      span?.end();
    },
    accepted(event) {
      const pool = ofItsPool(event, "accepted");
      if (pool !== undefined) begun.set(event.session_id, { pool, at: performance.now() });
    },
    status({ session_id, phase }) {
      const known = begun.get(session_id);
      if (phase === "pending" || !known) return;
      create.record((performance.now() - known.at) / 1000, ofPool(known));
      begun.delete(session_id);
    },
    charged: (event) => purchase(event, "accepted"),
    in_doubt(event) {
      purchase(event, "in_doubt");
      ofItsPool(event, "in_doubt");
    },
    stored: ({ call }) => calls.add(1, { call }),
    claims_lost: ({ claims }) => lost.add(claims),
    // The event is the pool's, whose name is everything behind "pool/" there.
    pool_rotated: ({ intent, cause }) => rotations.add(1, { [POOL]: intent.slice("pool/".length), reason: cause }),
    lease_leaked: () => leaked.add(1),
    lease_acquired: (event) => acquire.record(seconds(event), ofPool(event)),
    acquire_failed(event) {
      acquire.record(seconds(event), ofPool(event));
      if (event.kind === "unavailable") timeouts.add(1, ofPool(event));
    },
    lease_released: (event) => lease.record(seconds(event), ofPool(event)),
    lease_observed: (event) => observations.add(1, { ...ofPool(event), seen: String(event.seen) }),
  };
  return client.onEvent((event) => heard[event.event]?.(event));
}

/** Observes the status of a pool whenever metrics are collected, until the returned function is called. */
export function observePool(pool, { meterProvider = metrics } = {}) {
  const meter = meterProvider.getMeter(NAME);
  const gauge = (name, what) => meter.createObservableGauge(`hopline.pool.${name}`, { unit: `{${what}}` });
  const gauges = [gauge("sessions", "session"), gauge("waiting", "request"), gauge("spent_usd", "USD"), gauge("held", "pool"), gauge("blocked_everywhere", "target")];
  const [sessions, waiting, spent, held, blocked] = gauges;
  const attributes = { [POOL]: pool.name };
  const observe = async (result) => {
    const status = await pool.status();
    for (const state of STATES) result.observe(sessions, status[state], { ...attributes, state });
    result.observe(waiting, status.waiting, attributes);
    result.observe(spent, status.spent_today_usd, attributes);
    if (status.hold) result.observe(held, 1, { ...attributes, reason: status.hold.reason, needs: status.hold.needs });
    result.observe(blocked, status.blocked_everywhere.length, attributes);
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}

/** The states of a pool's slots; they add up to its size. */
const STATES = ["ready", "leased", "creating", "changing", "resting", "in_doubt", "empty", "with_others", "free_in_store", "unknown"];
