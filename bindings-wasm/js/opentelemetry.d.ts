import type { MeterProvider, TracerProvider } from "@opentelemetry/api";
import type { AgentClient, Pool, ResellerClient } from "hopline";

/** Where metrics and spans go; those that are registered globally where they are left out. */
export interface Providers {
  meterProvider?: Pick<MeterProvider, "getMeter"> | undefined;
  tracerProvider?: Pick<TracerProvider, "getTracer"> | undefined;
}

/**
 * Makes spans and metrics of what a client and its pools do, until the function that this gives is called. Each operation
 * is a span such as `hopline create_session`, below the span that is active where the call began; how it failed is in `error.type`, `hopline.effect`
 * and `hopline.advice`. Each request to the service is a span such as `POST create_session` below its operation. Nothing in them is secret.
 *
 * Metrics: `hopline.request.duration` by operation, method and status; `hopline.purchases` by operation and result, `hopline.spent_usd`;
 * `hopline.pool.acquire.duration`, `.lease.duration`, `.create.duration`, `.acquire.timeouts`, `.purchases` by result,
 * `.rotations` by reason, `.observations` by what was seen, `.leases.leaked`; `hopline.store.calls` by call, `hopline.store.claims.lost`. Durations are seconds.
 */
export function instrument(client: AgentClient | ResellerClient, providers?: Providers): () => void;

/**
 * Observes how a pool is whenever metrics are collected, until the function that this gives is called: `hopline.pool.sessions` by state,
 * whose sum is the pool's size, `.waiting`, `.spent_usd` of the day (UTC), `.held` by reason and who can end it, and
 * `.blocked_everywhere`, how many targets block every exit.
 */
export function observePool(pool: Pool, providers?: Pick<Providers, "meterProvider">): () => void;
