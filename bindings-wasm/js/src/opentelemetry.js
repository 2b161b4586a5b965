// The entry `hopline/opentelemetry`: what `onEvent` of a client tells, as metrics and spans. opentelemetry.d.ts documents it.
import { SpanKind, SpanStatusCode, metrics, trace } from "@opentelemetry/api";

const NAME = "hopline";

/** What the package calls a whole number of something, in the notation of UCUM. */
const count = (what) => ({ unit: `{${what}}` });

/** Metrics and spans of a client and its pools, until what this gives is called. */
export function instrument(client, { meterProvider = metrics, tracerProvider = trace } = {}) {
  const meter = meterProvider.getMeter(NAME);
  const tracer = tracerProvider.getTracer(NAME);
  const histogram = (name) => meter.createHistogram(`hopline.${name}`, { unit: "s" });
  const counter = (name, options) => meter.createCounter(`hopline.${name}`, options);
  const requests = histogram("request.duration");
  const [acquire, lease, create] = ["acquire", "lease", "create"].map((what) => histogram(`pool.${what}.duration`));
  const timeouts = counter("pool.acquire.timeouts", count("timeout"));
  const purchases = counter("pool.purchases", count("purchase"));
  const spent = counter("pool.spent_usd", { unit: "USD" });
  const rotations = counter("pool.rotations", count("rotation"));
  const observations = counter("pool.observations", count("observation"));
  const leaked = counter("pool.leases.leaked", count("lease"));
  const calls = counter("store.calls", count("call"));
  const lost = counter("store.claims.lost", count("loss"));
  /** By send: its span. */
  const spans = new Map();
  /** By session that was bought and is not usable yet: since when. */
  const begun = new Map();

  const seconds = (event) => event.duration_ms / 1000;
  /** Of a purchase of a pool: the pool's name. */
  const poolOf = ({ intent }) => /^pool\/(.*)\/\d+#\d+$/.exec(intent)?.[1];
  const bought = (event, result) => {
    const pool = poolOf(event);
    if (pool === undefined) return;
    purchases.add(1, { "hopline.pool.name": pool, result });
    const charge = Number(event.estimated_charge_usd);
    if (charge > 0) spent.add(charge, { "hopline.pool.name": pool });
  };

  /** By event: what is made of it. */
  const heard = {
    sent: ({ operation, send }) => {
      spans.set(send, tracer.startSpan(`hopline ${operation}`, { kind: SpanKind.CLIENT, attributes: { "hopline.operation": operation } }));
    },
    answered: (event) => {
      const { operation, send, status, failure } = event;
      const told = { ...(status !== undefined && { "http.response.status_code": status }), ...(failure !== undefined && { "error.type": failure }) };
      requests.record(seconds(event), { "hopline.operation": operation, ...told });
      if (operation === "rotate_session" && status < 300) rotations.add(1);
      const span = spans.get(send);
      spans.delete(send);
      span?.setAttributes(told);
      if (failure !== undefined || status >= 400) span?.setStatus({ code: SpanStatusCode.ERROR });
      span?.end();
    },
    accepted: (event) => {
      bought(event, "accepted");
      begun.set(event.session_id, performance.now());
    },
    status: ({ session_id, phase }) => {
      if (phase === "pending" || !begun.has(session_id)) return;
      create.record((performance.now() - begun.get(session_id)) / 1000, { phase });
      begun.delete(session_id);
    },
    in_doubt: (event) => bought(event, "in_doubt"),
    stored: ({ call, failed }) => calls.add(1, { call, failed }),
    claims_lost: () => lost.add(1),
    lease_leaked: () => leaked.add(1),
    lease_acquired: (event) => acquire.record(seconds(event), { "hopline.pool.name": event.pool }),
    acquire_failed: ({ pool, kind }) => kind === "unavailable" && timeouts.add(1, { "hopline.pool.name": pool }),
    lease_released: (event) => lease.record(seconds(event), { "hopline.pool.name": event.pool }),
    lease_observed: ({ pool, seen, advice }) => observations.add(1, { "hopline.pool.name": pool, seen, advice }),
  };
  return client.onEvent((event) => heard[event.event]?.(event));
}

/** How a pool is whenever metrics are collected, until what this gives is called. */
export function observePool(pool, { meterProvider = metrics } = {}) {
  const meter = meterProvider.getMeter(NAME);
  const sessions = meter.createObservableGauge("hopline.pool.sessions", count("session"));
  const waiting = meter.createObservableGauge("hopline.pool.waiting", count("caller"));
  const attributes = { "hopline.pool.name": pool.name };
  const observe = async (result) => {
    const status = await pool.status();
    for (const state of STATES) result.observe(sessions, status[state], { ...attributes, state });
    result.observe(waiting, status.waiting, attributes);
  };
  meter.addBatchObservableCallback(observe, [sessions, waiting]);
  return () => meter.removeBatchObservableCallback(observe, [sessions, waiting]);
}

/** What the sessions of a pool can be doing; they add up to its size. */
const STATES = ["ready", "leased", "creating", "resting", "in_doubt", "empty", "elsewhere"];
