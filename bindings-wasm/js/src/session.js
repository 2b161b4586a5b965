import { disposable } from "./hide.js";
import { ProxySettings } from "./proxy.js";

/** A session that was opened: its state, and its operations. hopline.d.ts documents it. */
const session = /* @__PURE__ */ disposable("dispose", class OpenSession {
  #client;
  /** The client's knowledge of all sessions. */
  #sessions;
  /** Returns whether its client still follows it, if the end of a scope ends it. */
  #ends;

  constructor(client, sessions, { session_id, charged_usd, phase, session, ends }) {
    this.#client = client;
    this.#sessions = sessions;
    this.#ends = ends;
    this.session_id = session_id;
    this.charged_usd = charged_usd ?? undefined;
    sessions.show(this, { phase, session });
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  wait(options) {
    return this.#client.waitSession(this.session_id, options);
  }

  /** The proxy in the formats of HTTP clients. */
  get proxy() {
    return new ProxySettings(this.session.proxy);
  }

  rotate(params, options) {
    return this.#client.rotateSession({ ...this.#login, ...params, session_id: this.session_id }, options);
  }

  refresh(options) {
    return this.#client.getSession({ ...this.#login, session_id: this.session_id }, options);
  }

  renew(params, options) {
    return this.#client.renewSession({ ...params, session_id: this.session_id }, options);
  }

  async terminate(options) {
    const ended = await this.#client.terminateSession({ session_id: this.session_id }, options);
    this.#ends = undefined;
    // The contract does not document the answer.
    const session = typeof ended?.status === "string" ? { ...this.session, status: ended.status } : this.session;
    this.#sessions.tell(this.session_id, { phase: "ended", session });
    return ended;
  }

  observe(seen, options) {
    return this.#client.observe(this.session_id, seen, options);
  }

  async release() {
    const held = await this.#client.releaseSession(this.session_id);
    // The session is for others now: the end of a scope does not end it.
    this.#ends = undefined;
    return held;
  }

  async dispose() {
    // A session that others may have by now, or that is over, is not this client's to end.
    if (this.#ends && (await this.#ends())) await this.terminate();
    // A client that is closed has released it already.
    else await this.release().catch(() => {});
  }

  /** A caller that has the login needs the newest one: an older one is of no use any more. */
  get #login() {
    return this.session.proxy?.password ? { include_credentials: true } : {};
  }
});
// A variable of the name of the class would make a bundler rename the class.
export { session as OpenSession };
