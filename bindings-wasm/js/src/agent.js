import { agentOperations, agentWalks } from "../gen/operations.js";
import { about } from "./answers.js";
import { Client, equip } from "./client.js";
import { Engine } from "./engine.js";
import { asked, refuse } from "./error.js";
import { host } from "./host.js";
import { meant } from "./names.js";
import { runtime } from "./runtime.js";
import { seenOf } from "./seen.js";
import { OpenSession } from "./session.js";
import { Sessions } from "./sessions.js";
import { encode, flag, object, signalOf, text } from "./values.js";

/** The HTTP clients that a session's proxy may be for. */
const USE_WITH = ["undici", "playwright", "curl"];

/** The client of one account at the agent API. hopline.d.ts documents it. */
const agent = /* @__PURE__ */ equip(
  class AgentClient extends Client {
    #engine;

    constructor(options) {
      const engine = new Engine("agent", options);
      const sessions = new Sessions();
      engine.heard = (session, operation) => sessions.hear(session, operation === "rotate_session");
      super(engine, (client, { data, facts, phase, ends = false }) => {
        const { session_id, session_type, charged_usd } = facts;
        const follows = () => engine.ask("terminate_session", (core) => core.follows(session_id));
        return new OpenSession(client, sessions, { session_id, charged_usd, phase, session: data ?? facts, ends: ends && session_type === "dynamic" ? follows : undefined });
      });
      this.#engine = engine;
    }

    async openSession(params, options = {}) {
      object("open_session", "options", options);
      const { keep, ...rest } = options;
      const { useWith } = rest;
      if (useWith !== undefined && !USE_WITH.includes(useWith)) {
        throw refuse("invalid", "open_session", `\`useWith\` must be one of ${USE_WITH.map((word) => `\`${word}\``).join(", ")}${typeof useWith === "string" ? meant(useWith, false, USE_WITH) : ""}`, { field: "useWith" });
      }
      const ends = !flag("open_session", "keep", keep);
      try {
        return await this.wait("open_session", params, rest, { ends });
      } catch (error) {
        const isNamed = rest.intent !== undefined || rest.idempotencyKey !== undefined;
        // Nothing else leads to it, so it ends as it does where its scope is left.
        if (error.session && ends && !isNamed) {
          await error.session.dispose().catch((failure) => (error.message += `; and the session could not be ended: ${failure.message}`));
        }
        throw error;
      }
    }

    async waitSession(session_id, options) {
      return this.wait("wait_session", { session_id }, options);
    }

    async releaseSession(session_id) {
      return this.#engine.ask("release_session", (core) => core.releaseSession(text("release_session", "session_id", session_id)));
    }

    async openPool(name, options = {}) {
      return host.openPool(this, this.#engine, name, options);
    }

    async quote(product, quantity) {
      await this.#engine.usable("quote");
      const raw = asked(() => runtime.hostText("quote", encode("quote", "product", product), encode("quote", "quantity", quantity)), { given: { product, quantity } });
      return about(JSON.parse(raw), { facts: "{\"attempts\":0}", raw });
    }

    async observe(session_id, seen, options = {}) {
      const signal = signalOf("observe", options);
      await this.#engine.usable("observe");
      const what = seenOf(seen);
      const { advice, result } = await this.#engine.ask("observe", (core, now, wait) => {
        const told = asked(() => core.observe(String(session_id), what, ...now), { given: { seen } });
        const { command, ...advice } = told ?? {};
        return { advice: told && advice, result: command === undefined ? undefined : wait(command) };
      }, signal);
      if (!result) return advice;
      return { ...advice, verdict: "rotated", session: await this.#engine.answer(result, signal, "rotate_session") };
    }
  },
  agentOperations,
  agentWalks,
);

// A variable of the name of the class would make a bundler rename the class.
export { agent as AgentClient };
