import type { MeterProvider, TracerProvider } from "@opentelemetry/api";
import type { AgentClient, Pool, ResellerClient } from "hopline";

/** The providers of metrics and spans. Default: the global ones. */
export interface Providers {
  meterProvider?: Pick<MeterProvider, "getMeter"> | undefined;
  tracerProvider?: Pick<TracerProvider, "getTracer"> | undefined;
}

/**
 * Makes spans and metrics of the work of a client and its pools, until the returned function is called. Each operation is a span such as
 * `hopline create_session`, below the span that is active where the call began; its failure is in `error.type`, `hopline.effect` and
 * `hopline.advice`. Each request to the service is a span such as `POST create_session` below its operation. They hold no secret.
 *
 * Metrics: `hopline.request.duration` by operation, method and status; `hopline.purchases` by operation and result, `hopline.spent_usd`;
 * `hopline.pool.acquire.duration`, `.lease.duration`, `.create.duration`, `.acquire.timeouts`, `.purchases` by result, `.rotations` by
 * reason, `.observations` by observation, `.leases.leaked`; `hopline.store.calls` by call, `hopline.store.claims.lost`. Durations are
 * seconds.
 */
export function instrument(client: AgentClient | ResellerClient, providers?: Providers): () => void;

/**
 * Observes the status of a pool whenever metrics are collected, until the returned function is called: `hopline.pool.sessions` by state,
 * whose sum is the pool's size, `.waiting`, `.spent_usd` of the day (UTC), `.held` by reason and by the party that can end it, and
 * `.blocked_everywhere`, the number of targets that block every exit.
 */
export function observePool(pool: Pool, providers?: Pick<Providers, "meterProvider">): () => void;
