// Checks a relay, whoever wrote it, against the rules of a backend: it is asked as a page asks it, and what it sends on is watched by a service that
// stands in its way. `cargo xtask relay-check URL` runs it; core/docs/backend.md has the rules.
import { once } from "node:events";
import { createServer, request } from "node:http";
import { request as requestOverTls } from "node:https";
import { fileURLToPath } from "node:url";

/** The codes that a refusal of a relay may have, and those of the service, which would end a purchase that an earlier request may have made. */
const MAY_REFUSE = new Set(["AUTH_INVALID_KEY", "AUTH_INSUFFICIENT_PERMISSION", "ROUTE_NOT_FOUND", "RATE_LIMIT_EXCEEDED"]);
const OF_SERVICE = new Set([
  "ACCOUNT_DISABLED", "AUTH_EXPIRED_TOKEN", "BACKEND_ERROR", "BACKEND_TIMEOUT", "BUDGET_EXCEEDED", "IDEMPOTENCY_CONFLICT", "INSUFFICIENT_BALANCE", "INTERNAL_ERROR",
  "INVALID_REFERRAL_CODE", "INVALID_REQUEST", "PRICE_MISMATCH", "PRODUCT_NOT_FOUND", "PRODUCT_OUT_OF_STOCK", "SESSION_EXPIRED", "SESSION_LIMIT_REACHED", "SESSION_NOT_FOUND", "TRIAL_NOT_ELIGIBLE",
]);
const REFUSALS = new Set([401, 403, 404, 413, 422, 429]);

/** The key that the relay is started with. It must not come back to a page. */
export const KEY = "relay-check-key-4711";

/** The order that each probe asks for. */
const ORDER = JSON.stringify({ session_type: "dynamic", product_no: "dynamic-world", quantity: 1 });
/** An answer in spaces that a relay which reads and writes it anew would lose. */
const SOLD = '{ "success" : true,"data":{"session_id":"ses_relay_check","session_type":"dynamic","status":"active","price":1.10},"error":null }';

/** The service that the relay sends to: what came, and what the next requests are answered. */
export async function service(port = 0) {
  const came = [];
  let answer;
  const server = createServer((given, response) => {
    const chunks = [];
    given.on("error", () => {});
    given.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
      came.push({ method: given.method, path: given.url, headers: given.headers, body: Buffer.concat(chunks).toString() });
      answer(given, response);
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const answers = (next) => {
    came.length = 0;
    answer = next;
  };
  answers((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(SOLD));
  return { came, answers, url: `http://127.0.0.1:${server.address().port}/v1`, end: () => (server.closeAllConnections(), server.close()) };
}

/** Asks as it is told, without mending the path, and returns the answer; `undefined` in place of a status if the connection broke. */
function ask(base, { method = "POST", path = "/sessions", headers, body = method === "POST" ? ORDER : undefined }) {
  const { protocol, hostname, port, pathname } = new URL(base);
  return new Promise((resolve) => {
    const asked = (protocol === "https:" ? requestOverTls : request)({ hostname, port, method, path: pathname.replace(/\/$/, "") + path, headers, agent: false });
    const lost = () => resolve({ status: undefined, headers: {}, text: "" });
    asked.on("error", lost).on("response", (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk)).on("error", lost);
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }));
    });
    asked.end(body);
  });
}

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
const isEnvelope = (text) => typeof parsed(text)?.success === "boolean" || typeof parsed(text)?.code === "number";

/**
 * Checks a relay that sends to that service, and returns the rules with what breaks them. `login` are the headers of a person who may buy, and
 * `patience` is the time for which a relay must wait for an answer, in milliseconds.
 */
export async function check(url, service, { login = {}, patience = 20_500 } = {}) {
  const { origin } = new URL(url);
  const page = { origin, "sec-fetch-site": "same-origin", "content-type": "application/json", accept: "application/json", ...login };
  const results = [];
  const rule = async (number, what, probe) => {
    const faults = [];
    await probe((isKept, fault) => isKept || faults.push(fault));
    results.push({ number, what, faults });
  };
  const json = { "content-type": "application/json" };
  const answering = (status, headers = json, text = SOLD) => service.answers((_, response) => response.writeHead(status, headers).end(text));

  answering(202);
  const first = await ask(url, { headers: { ...page, "idempotency-key": "relay-check-0" } });
  if (service.came.length === 0) {
    const why = `POST /sessions with ${Object.keys(login).join(", ") || "no login"} was answered by ${first.status ?? "a broken connection"}, and nothing came to ${service.url}`;
    return [{ number: 0, what: "the relay lets a purchase through", faults: [`${why}; allow createSession and getSession, send to that address, and give a login by --header`] }];
  }

  await rule(1, "it passes `Idempotency-Key` on", async (holds) => {
    answering(202);
    await ask(url, { headers: { ...page, "idempotency-key": "relay-check-1" } });
    holds(service.came[0]?.headers["idempotency-key"] === "relay-check-1", `the service got ${JSON.stringify(service.came[0]?.headers["idempotency-key"]) ?? "none"}`);
    holds(service.came[0]?.body === ORDER, "the service got another body than the page sent");
  });

  await rule(2, "it never repeats a request, and follows no redirect", async (holds) => {
    for (const status of [500, 503, 429]) {
      answering(status, json, '{"success":false,"error":{"code":"BACKEND_ERROR","message":"no"}}');
      await ask(url, { headers: { ...page, "idempotency-key": `relay-check-2-${status}` } });
      holds(service.came.length === 1, `after HTTP ${status} the service got ${service.came.length} requests`);
    }
    service.answers((given) => given.socket.destroy());
    await ask(url, { headers: { ...page, "idempotency-key": "relay-check-2-lost" } });
    holds(service.came.length === 1, `after a lost answer the service got ${service.came.length} requests`);
    for (const status of [302, 307]) {
      service.answers((given, response) => (given.url.includes("elsewhere") ? response.writeHead(202, json).end(SOLD) : response.writeHead(status, { location: `${service.url}/elsewhere` }).end()));
      await ask(url, { headers: { ...page, "idempotency-key": `relay-check-2-${status}` } });
      holds(service.came.length === 1, `it followed a redirect of HTTP ${status}`);
    }
  });

  await rule(3, "it passes the answer back unchanged", async (holds) => {
    const date = "Thu, 01 Jan 2026 00:00:00 GMT";
    for (const [status, text] of [[202, SOLD], [402, '{"success":false, "error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}'], [429, '{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"no"}}']]) {
      answering(status, { "content-type": "application/json; charset=utf-8", "retry-after": "7", date }, text);
      const back = await ask(url, { headers: { ...page, "idempotency-key": `relay-check-3-${status}` } });
      holds(back.status === status, `HTTP ${status} came back as ${back.status ?? "a broken connection"}`);
      holds(back.text === text, `the body of HTTP ${status} came back as another text`);
      holds(/^application\/json/.test(back.headers["content-type"]), `the \`Content-Type\` of HTTP ${status} came back as ${back.headers["content-type"]}`);
      holds(back.headers["retry-after"] === "7", `the \`Retry-After\` of HTTP ${status} came back as ${back.headers["retry-after"]}`);
      holds(back.headers.date === date, `the \`Date\` of HTTP ${status} came back as ${back.headers.date}`);
    }
  });

  await rule(4, "it answers a lost answer without an envelope, and waits longer than the client", async (holds) => {
    service.answers((given) => given.socket.destroy());
    const lost = await ask(url, { headers: { ...page, "idempotency-key": "relay-check-4-lost" } });
    holds(!isEnvelope(lost.text), "a lost answer came back in an envelope, which says that the operation has ended");
    holds(lost.status === undefined || lost.status >= 500, `a lost answer came back as HTTP ${lost.status}`);
    service.answers((_, response) => setTimeout(() => response.writeHead(202, json).end(SOLD), patience));
    const late = await ask(url, { headers: { ...page, "idempotency-key": "relay-check-4-late" } });
    holds(late.status >= 200 && late.status < 300, `an answer after ${patience / 1000} seconds came back as ${late.status === undefined ? "a broken connection" : `HTTP ${late.status}`}`);
  });

  await rule(5, "it refuses before it passes on, in words of its own", async (holds) => {
    answering(202);
    const wrong = { "another path": { path: "/relay-check/nothing" }, "another method": { method: "DELETE", path: "/sessions" } };
    for (const [what, given] of Object.entries(wrong)) {
      answering(202);
      const back = await ask(url, { ...given, headers: { ...page, "idempotency-key": "relay-check-5" } });
      holds(service.came.length === 0, `${what} (${given.method ?? "POST"} ${given.path}) reached the service`);
      holds(service.came.length > 0 || REFUSALS.has(back.status), `${what} was refused by HTTP ${back.status}, and not by one of ${[...REFUSALS].join(", ")}`);
      const code = parsed(back.text)?.error?.code;
      holds(!OF_SERVICE.has(code) || MAY_REFUSE.has(code), `${what} was refused by the code ${code}, which is the service's and ends a purchase`);
    }
  });

  await rule(6, "it passes no other path and no other header on, and no cookies", async (holds) => {
    const { "content-type": _, ...reading } = page;
    for (const path of ["/sessions/..%2frelay-check%2fnothing", "/sessions/%2e%2e/relay-check/nothing", "/../internal", "/sessions/a%2fb", "//internal"]) {
      answering(200);
      await ask(url, { method: "GET", path, headers: reading });
      holds(service.came.length === 0, `GET ${path} reached the service as ${service.came[0]?.path}`);
    }
    answering(202, { ...json, "set-cookie": "theirs=1" });
    const own = { cookie: "session=canary-cookie", "x-api-key": "canary-key", "x-forwarded-for": "10.9.8.7", "x-relay-check": "canary-header", forwarded: "for=10.9.8.7" };
    const back = await ask(url, { headers: { ...page, ...own, "idempotency-key": "relay-check-6" } });
    const seen = service.came[0]?.headers ?? {};
    for (const [name, value] of Object.entries(own)) holds(seen[name] !== value && !String(seen[name]).includes(value), `the page's \`${name}\` reached the service`);
    for (const [name, value] of Object.entries(login)) holds(seen[name.toLowerCase()] !== value, `the page's \`${name}\`, a login of this server, reached the service`);
    holds(back.headers["set-cookie"] === undefined || !String(back.headers["set-cookie"]).includes("theirs=1"), "a cookie of the service came back");
  });

  await rule(7, "it keeps the key, and the decision who may use it", async (holds) => {
    answering(202);
    const back = await ask(url, { headers: { ...page, "idempotency-key": "relay-check-7" } });
    const key = Object.values(service.came[0]?.headers ?? {}).find((value) => String(value).includes(KEY));
    holds(key !== undefined, `the service got no key; start the relay with the key ${KEY}`);
    holds(!JSON.stringify(back).includes(KEY), "the key came back to the page");
    const foreign = { "a page of another site": { ...page, origin: "https://evil.example", "sec-fetch-site": "cross-site" }, "a form of another site": { ...page, origin: "null", "content-type": "text/plain", "sec-fetch-site": "cross-site" } };
    if (Object.keys(login).length > 0) foreign["a request without the login"] = Object.fromEntries(Object.entries(page).filter(([name]) => !(name in login)));
    for (const [who, headers] of Object.entries(foreign)) {
      answering(202);
      await ask(url, { headers: { ...headers, "idempotency-key": "relay-check-7" } });
      holds(service.came.length === 0, `${who} reached the service`);
    }
  });
  return results;
}

/** `relay-check URL [--service PORT] [--header "Name: value"]…` */
async function command([url, ...options]) {
  const [login, more] = [{}, {}];
  for (let n = 0; n < options.length; n += 2) {
    const [option, value = ""] = [options[n], options[n + 1]];
    if (option === "--service") more.port = Number(value);
    else if (option === "--header") login[value.split(":", 1)[0].toLowerCase()] = value.slice(value.indexOf(":") + 1).trim();
    else throw new Error(`there is no option ${option}`);
  }
  if (!URL.canParse(url ?? "")) throw new Error('say where the relay is: relay-check http://127.0.0.1:8080/api/v1 [--service PORT] [--header "Name: value"]');
  const upstream = await service(more.port ?? 8650);
  console.log(`The relay at ${url} must send to ${upstream.url}, with the key ${KEY}, and allow createSession and getSession.\n`);
  try {
    const results = await check(url, upstream, { login });
    for (const { number, what, faults } of results) console.log([`${faults.length === 0 ? "kept  " : "BROKEN"} ${number}. ${what}`, ...faults.map((fault) => `          ${fault}`)].join("\n"));
    if (Object.keys(login).length === 0) console.log("\nNot checked: that only people who have logged in may buy. Give the login of one by --header.");
    return results.every(({ faults }) => faults.length === 0) ? 0 : 1;
  } finally {
    upstream.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await command(process.argv.slice(2)).catch(({ message }) => (console.error(message), 2));
}
