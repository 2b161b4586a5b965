// Programs of callers, as the compiler sees them.
import { AgentClient, FolderStore, HoplineError, ProxySettings, ResellerClient, Secret, Walk, isShared, meta, needsProjectId, operations, parseIpRange, sessionEvent } from "hopline";
import core from "hopline/core.wasm";
import { AgentClient as Within, load } from "hopline/inline";
import { refuse, relay, toNode } from "hopline/backend";
import type { OperationName, Relay } from "hopline/backend";
import type { Advice, ClientEvent, Effect, ErrorFields, Lease, LeaseAdvice, LoggedEvent, OpenSession, OrderReply, Phase, Pool, PoolStatus, Product, ProductList, Quote, Seen, Session, SessionStatus, Store, Undocumented, Until } from "hopline";

const own: Store = {
  async claim(names, most) {
    return most > 1 ? { claimed: new Map(names.map((name) => [name, undefined])) } : { busy: new Uint8Array() };
  },
  async put(name, data, { new: isNew, keepFor, release }) {
    return isNew && release && name.length + data.length > (keepFor ?? 0) ? "done" : "lost";
  },
  async delete() {
    return "done";
  },
  async release(names) {
    void names?.length;
  },
  async list(space, { after, open }) {
    return { entries: open ? [] : [{ name: after ?? space, data: new Uint8Array(), whose: "free" }], more: false };
  },
  async spend(_, { day = 0, amount, cap }) {
    return cap === amount ? { over: amount, day } : { granted: day };
  },
};
const leased: Store = {
  ...own,
  onLost(lost) {
    lost(["a.i1"]);
    lost();
  },
  vouches: () => true,
};
const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store: own, fetch, retry: { attempts: 2 } });
void [new FolderStore("records"), leased];

export async function buy(signal: AbortSignal): Promise<number> {
  const { items } = await agent.listProducts({ type: "dynamic" });
  const price: number | undefined = items[0]?.price;
  const open: OpenSession = await agent.openSession({ session_type: "dynamic", product_no: "p", quantity: "0.5" }, { intent: "job-17", credentials: true, signal });
  await agent.createSession({ session_type: "static", product_no: "p", quantity: 2 });
  const status: SessionStatus | (string & {}) = open.session.status;
  if (status === "active" || status === "something new") await open.rotate({ reason: "http_403" }, { timeoutMs: 1000 });
  const password: Secret | null | undefined = open.session.proxy?.password;
  const raw: string | undefined = meta(open.session)?.raw;
  const advice = await open.observe({ status: 403 });
  if (advice?.verdict === "rotate") await open.rotate({ reason: advice.reason });
  if (advice?.verdict === "rotated") status satisfies typeof advice.session.status;
  await agent.waitSession(open.session_id, { autoRotate: true });
  await open[Symbol.asyncDispose]();
  return (price ?? 0) + (raw?.length ?? 0) + (password?.reveal().length ?? 0);
}

export async function account(): Promise<string> {
  const capped = new AgentClient({ dailyCapUsd: "20.50", backendReady: true });
  const walk: Walk<Product, ProductList> = capped.walkProducts({ country: "US" }, { maxPages: 3, position: "{}", timeoutMs: 1000 });
  let last: Product | undefined;
  for await (const product of walk) last = product;
  for await (const page of capped.walkPublicProducts().pages()) last = page.items[0];
  const end: "last_page" | "short_page" | "repeated_cursor" | "repeated_page" | "page_cap" | undefined = walk.end;
  const position: string | undefined = walk.position;
  if (last === undefined) return `${end} ${position}`;
  const quote: Quote = await capped.quote(last, "0.5");
  const open = await capped.openSession({ session_type: "dynamic", product_no: quote.product_no }, { maxUnitPrice: quote.unit_price, expectedChargeUsd: "2.05", intent: "a", deadlineMs: 1 });
  await open.renew({ duration: 1 }, { expectedChargeUsd: 10, retryPaid: false, idempotencyKey: "k" });
  const until: Until = { at: "/balance", atLeast: "20" };
  const phase: Phase | undefined = meta(await capped.getAccount({}, { until, deadlineMs: 1000 }))?.phase;
  await capped.updateBudget({ daily_limit_usd: "50", key_limit_usd: null });
  await capped.request("POST", "/notes", { query: { a: "b" }, body: { n: 1 }, safety: "keyed" }, { intent: "note" });
  await capped.reportSessionEvent({ session_id: open.session_id, event: sessionEvent({ status: 403, seen: "block", target: new URL("https://shop.example"), mine: [1] }) });
  const settings = new ProxySettings(open.session.proxy);
  const port: string = (await settings.onLoopback({ port: 0 })).url;
  const proxy: { server: string; username: string; password: string } = settings.playwright();
  return [phase, port, settings.url, settings.curl, settings.undici().token, proxy.server].join();
}

export async function resell(signal: AbortSignal): Promise<string> {
  const reseller = new ResellerClient({ username: "me", password: "mine", token: "t", tokenCodes: ["4010"], baseUrl: "https://api.example/api" });
  const { items } = await reseller.queryProducts({ proxyType: [103, 104], language: "en" });
  const [product] = items;
  const projectId = product && needsProjectId(product) && isShared(product) ? { projectId: "shop" } : {};
  const user = await reseller.createUser({ username: "ann", password: "secret-1", balance: "12.50" }, { intent: "ann" });
  const name: string | null | undefined = user.username;
  const wanted = { poolId: "p", userId: user.id ?? 0, unitPrice: 0, totalAmount: "0", ipCount: 1, cycleTimes: 1, duration: 1, unit: "month" as const, ...projectId };
  const placed: OrderReply = await reseller.placeOrder(wanted, { intent: "job-17", deadlineMs: 1000, ends: ["failed"], signal });
  const again: OrderReply = await reseller.waitOrder(placed.order_no, { timeoutMs: 1000 });
  const accepted = await reseller.createStaticOrder(wanted);
  const waits: boolean | null | undefined = accepted.async;
  const found = await reseller.reconcile("r", { attempts: 1 });
  const matched: string[] | undefined = found.candidates[0]?.matched;
  for await (const { username } of reseller.walkSubUsers({ pageSize: 10 }, { maxPages: 2 })) if (username === name) break;
  await reseller.checkUsdtOrder({ parameters: { order_no: "o" } }, { until: { at: "/status", is: ["paid"] } });
  await reseller.editSubUserAccount({ user_id: 7, password: "secret-2" });
  const range: { text: string; first?: string; last?: string } = parseIpRange("192.0.2.0/30");
  const api: "agent" | "reseller" = operations.renewStaticOrder.api;
  await reseller[Symbol.asyncDispose]();
  return [again.phase, placed.order.orderNo, waits, matched, range.first, api, reseller.token].join();
}

export async function goOn(): Promise<string> {
  const open = await agent.resume("r", { deadlineMs: 1000 });
  // @ts-expect-error It may be the answer of another operation.
  void open.session_id;
  const reseller = new ResellerClient();
  const placed = await reseller.resumeIntent("job-17");
  // @ts-expect-error The intent may stand for nothing.
  void placed.order;
  if (placed === undefined || !("order" in placed)) return "session" in open ? open.session_id : String(meta(open)?.attempts);
  const [all] = await reseller.resumeAll();
  return all?.status === "fulfilled" && "order" in all.value ? all.value.order_no : placed.order_no;
}

export async function listen(): Promise<void> {
  for await (const event of agent.events()) {
    const told: ClientEvent = event;
    if (told.event === "priced") console.log(told.unit_price satisfies string);
    if (told.event === "status") console.log(told.status === "active" || told.status === "a new one");
    if (told.event === "watched") console.log(told.value satisfies string | undefined);
    if (told.event === "order_status") console.log(told.order_no, told.phase satisfies string);
    if (told.event === "repeating") console.log(told.because.kind, told.delay_ms);
  }
}

// Each word has a case, and the compiler knows that there is no other.
const NEXT: { [Word in Advice]: boolean } = {
  stop: false, reauthenticate: false, check_base_url: false, change_request: false, read_session: true, recharge: false, raise_budget: false, read_prices: true,
  terminate_session: true, wait: true, retry_later: true, resume: true, check_account: false, wait_for_other: true, reconcile: false, wait_order: true, new_intent: true,
  new_client: true, new_store: true, mend_store: false, read_raw: true, nothing: true, wait_session: true, terminate_again: true,
};

export function next(error: HoplineError): boolean {
  const fields: ErrorFields & { name: string; stack?: string } = error.toJSON();
  const effect: Effect = fields.effect;
  if (error.code === "INSUFFICIENT_BALANCE" || error.code === "A_NEW_ONE") return effect === "none";
  return error.advice !== undefined && NEXT[error.advice];
}

export async function undocumented(): Promise<string> {
  const { balance } = await agent.getBalance<{ balance: number }>();
  const health: unknown = await agent.getSessionHealth({ session_id: "s" });
  const session: Session = await agent.getSession({ session_id: "s" });
  const zone: unknown = (session as Undocumented<Session>).zone;
  await agent.openSession({ session_type: "dynamic", product_no: "p" }, { intent: null });
  for await (const { type } of new ResellerClient().walkConsumption<{ type: string }>()) return type;
  return [balance satisfies number, health, zone].join();
}

export function narrow(error: unknown): string {
  if (!(error instanceof HoplineError)) throw error;
  switch (error.kind) {
    case "in_doubt":
      return error.record ?? error.message;
    case "refused":
      return error.code ?? "";
    default:
      return error.effect satisfies "none" | "unknown" | "done";
  }
}

// Programs that the compiler must refuse.
// @ts-expect-error no such word of advice
void (new Error() as HoplineError).advice satisfies "buy_again";
// @ts-expect-error the contract does not document what is in it
void (await agent.getBalance()).balance;
// @ts-expect-error a word that the contract does not name is never sent
void agent.createSession({ session_type: "other", product_no: "p" });
// @ts-expect-error a parameter is missing
void agent.getSession({});
// @ts-expect-error no such parameter
void agent.getSession({ session_id: "s", colour: 1 });
// @ts-expect-error no such option
void agent.getBalance({}, { attempt: 1 });
// @ts-expect-error a limit of the price belongs to a purchase
void agent.renewSession({ session_id: "s", duration: 1 }, { maxUnitPrice: 4 });
// @ts-expect-error a write is not watched
void agent.createRecharge({ amount: 10 }, { until: { at: "/status", is: ["paid"] } });
// @ts-expect-error a watch looks somewhere
void agent.getBalance({}, { until: { atLeast: 1 } });
// @ts-expect-error an intent names a write
void agent.getBalance({}, { intent: "job-17" });
// @ts-expect-error this has no idempotency key
void agent.terminateSession({ session_id: "s" }, { idempotencyKey: "k" });
// @ts-expect-error only lists are walked
void agent.walkTransactions();
// @ts-expect-error a page is watched by nobody
void agent.walkProducts({}, { until: { at: "/total", atLeast: 1 } });
// @ts-expect-error a walk is begun by a client
void new Walk();
// @ts-expect-error no such method
void agent.request("TRACE", "/a");
// @ts-expect-error no such safety
void agent.request("POST", "/a", { safety: "hopefully" });
// @ts-expect-error no such fact
void sessionEvent({ seen: "nothing" });
// @ts-expect-error no such client option
void new AgentClient({ apikey: "key" });
// @ts-expect-error a login belongs to the other API
void new AgentClient({ username: "me", password: "mine" });
// @ts-expect-error a key belongs to the other API
void new ResellerClient({ apiKey: "key" });
// @ts-expect-error what is always the same is nobody's to say
void new ResellerClient().createDynamicOrder({ orderType: "dynamic_proxy" });
// @ts-expect-error a walk begins its pages itself
void new ResellerClient().walkSubUsers({ page: 2 });
// @ts-expect-error the reseller API has no keys
void new ResellerClient().renewStaticOrder({ orderNo: "o", duration: 1, unit: "month", cycleTimes: 1 }, { idempotencyKey: "k" });
// @ts-expect-error a unit is a word
void new ResellerClient().renewStaticOrder({ orderNo: "o", duration: 1, unit: 3, cycleTimes: 1 });
// @ts-expect-error nor is a secret
void new Secret("s");
// @ts-expect-error an answer is what the service wrote, and nothing else
void (await agent.listProducts()).raw;
// @ts-expect-error an error is not made by callers
void new HoplineError();

export async function pooled(signal: AbortSignal): Promise<unknown> {
  const stop = agent.onEvent((event: LoggedEvent) => {
    if (event.event === "answered") console.log(event.duration_ms.toFixed(), event.level satisfies "debug" | "info" | "warn");
  });
  const logged = new AgentClient({ log: console, dailyCapUsd: 5 });
  const pool: Pool = await logged.openPool("shop", { size: 5, session_type: "dynamic", product_no: "p", quantity: "0.5", keepReady: 2, replace: "failing", idleReleaseMs: 1000 });
  const status = await pool.withLease({ target: "shop.example", signal }, async (lease: Lease) => {
    lease.data.cookie = "a";
    const advice: LeaseAdvice = lease.observe(await fetch("https://shop.example"));
    return advice === "keep" && lease.valid ? lease.proxy.url : lease.sessionId;
  });
  const lease = await pool.acquire({ key: "ann", timeoutMs: 10 });
  lease.observe(new Error("it broke"));
  lease[Symbol.dispose]();
  await pool.waitReady(2, { timeoutMs: 1000, signal });
  const { hold, in_doubt, slots }: PoolStatus = await pool.status({ everywhere: true });
  if (hold?.needs === "person" && hold.reason === "not_ready") console.log(hold.why, in_doubt, slots[0]?.session_id);
  await pool.drain({ graceMs: 1, includeStatic: true });
  await pool[Symbol.asyncDispose]();
  stop();
  return status satisfies string;
}

export async function handled(): Promise<number> {
  const open = await agent.waitSession("s", { credentials: true });
  for (const seen of [403, "proxy", new Error(), new Response(), { statusCode: 200 }] satisfies Seen[]) await open.observe(seen);
  await open.refresh({ attempts: 1 });
  return open.generation + open.proxy.port;
}

// @ts-expect-error no such word for what was seen
void (await agent.waitSession("s")).observe("nothing");
// @ts-expect-error an option is spelled as options are
void agent.openPool("shop", { size: 1, session_type: "dynamic", product_no: "p", max_waiters: 1 });

const names: OperationName[] = ["getBalance", "createSession"];
const handle: Relay = relay({
  mount: "/api/v1",
  allow: names,
  apiKey: async (request) => request.headers.get("x-tenant") ?? "",
  authorize: (request, { operation, params }) => (params["session_id"] === operation ? false : request.headers.has("cookie") ? { account: "ann" } : refuse(401, "log in first", { retryAfter: 1 })),
  check: ({ account, body }) => (account === body ? refuse(422, "no") : undefined),
  onAnswer: ({ status, ms }) => void (status + ms),
});
export const served: Promise<Response> = handle(new Request("https://app.example/"));
export const node = toNode(handle);
// @ts-expect-error: who may spend must be said.
relay({ mount: "/api/v1", allow: names });
// @ts-expect-error: there is no such operation.
relay({ mount: "/api/v1", allow: ["get_balance"], authorize: () => false });
// @ts-expect-error: such a status ends a purchase.
refuse(402, "no money");

/** The core that a program has. */
export async function loads(): Promise<AgentClient> {
  await load(core);
  await load(new Uint8Array());
  await load(fetch("/core.wasm"));
  await load();
  // @ts-expect-error: a text is none.
  await load("core.wasm");
  return new Within();
}
