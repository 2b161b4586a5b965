import { disposable } from "./hide.js";

/** A session as it was when waiting for it ended, and what can be done with it. hopline.d.ts documents it. */
const session = /* @__PURE__ */ disposable("dispose", class OpenSession {
  #client;
  /** Asks whether its client still follows it, where the end of a scope ends it. */
  #ends;

  constructor(client, { session_id, phase, session, ends }) {
    this.#client = client;
    this.#ends = ends;
    Object.assign(this, { session_id, phase, session });
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  wait(options) {
    return this.#client.waitSession(this.session_id, options);
  }

  async rotate(params, options) {
    // Whoever has the login needs the new one: the old one is of no use any more.
    const include_credentials = this.session.proxy?.password ? true : undefined;
    return this.#rotated(await this.#client.rotateSession({ include_credentials, ...params, session_id: this.session_id }, options));
  }

  renew(params, options) {
    return this.#client.renewSession({ ...params, session_id: this.session_id }, options);
  }

  async terminate(options) {
    const ended = await this.#client.terminateSession({ session_id: this.session_id }, options);
    this.#ends = undefined;
    this.phase = "ended";
    // The contract does not say what the answer holds.
    if (typeof ended?.status === "string") this.session = { ...this.session, status: ended.status };
    return ended;
  }

  async observe(seen, options) {
    const verdict = await this.#client.observe(this.session_id, seen, options);
    if (verdict?.session) this.#rotated(verdict.session);
    return verdict;
  }

  async release() {
    const held = await this.#client.releaseSession(this.session_id);
    // It is for others now: the end of a scope does not end it.
    this.#ends = undefined;
    return held;
  }

  async dispose() {
    // What others may have by now, or what is over, is not this client's to end.
    if (this.#ends && (await this.#ends())) await this.terminate();
    // A client that is closed has let go of it already.
    else await this.release().catch(() => {});
  }

  #rotated(session) {
    this.session = session;
    return session;
  }
});
// A variable of the name of the class would make a bundler rename the class.
export { session as OpenSession };
