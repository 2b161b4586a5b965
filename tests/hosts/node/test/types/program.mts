// What callers write, as the compiler sees it.
import { AgentClient, FolderStore, HoplineError, MemoryStore, type ClientEvent, type OpenSession, type SessionStatus, type Store } from "hopline";

const own: Store = {
  async open(client) {
    client.take([["r1", "{}"]]);
  },
  async keep(record, data) {
    void [record.length, data.length];
  },
  async remove() {},
};
const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store: own, fetch, retry: { attempts: 2 } });
void [new MemoryStore(), new FolderStore("records")];

export async function buy(signal: AbortSignal): Promise<number> {
  const { items } = await agent.listProducts({ type: "dynamic" });
  const price: number | undefined = items[0]?.price;
  const open: OpenSession = await agent.openSession({ session_type: "dynamic", product_no: "p", quantity: "0.5" }, { intent: "job-17", credentials: true, signal });
  await agent.createSession({ session_type: "static", product_no: "p", quantity: 2 });
  const status: SessionStatus | (string & {}) = open.session.status;
  if (status === "active" || status === "something new") await open.rotate({ reason: "http_403" }, { timeoutMs: 1000 });
  const password: string | null | undefined = open.session.proxy?.password;
  const raw: string = open.session.raw;
  const advice = await open.observe({ status: 403 });
  if (advice?.verdict === "rotate") await open.rotate({ reason: advice.reason });
  await open[Symbol.asyncDispose]();
  return (price ?? 0) + raw.length + (password?.length ?? 0);
}

export async function listen(): Promise<void> {
  for await (const event of agent.events()) {
    const told: ClientEvent = event;
    if (told.event === "repeating") console.log(told.because.kind, told.delay_ms);
  }
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

// What the compiler must not let pass.
// @ts-expect-error a word that the contract does not name is never sent
void agent.createSession({ session_type: "other", product_no: "p" });
// @ts-expect-error a parameter is missing
void agent.getSession({});
// @ts-expect-error no such parameter
void agent.getSession({ session_id: "s", colour: 1 });
// @ts-expect-error no such option
void agent.getBalance({}, { attempt: 1 });
// @ts-expect-error no such client option
void new AgentClient({ apikey: "key" });
// @ts-expect-error an error is not made by callers
void new HoplineError();
