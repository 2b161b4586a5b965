/** A session as it was when waiting for it ended, and what can be done with it. hopline.d.ts documents it. */
export class OpenSession {
  #client;
  #ends;

  constructor(client, { session_id, phase, session, ends }) {
    this.#client = client;
    this.#ends = ends;
    Object.assign(this, { session_id, phase, session });
  }

  wait(options) {
    return this.#client.waitSession(this.session_id, options);
  }

  rotate(params, options) {
    return this.#client.rotateSession({ ...params, session_id: this.session_id }, options);
  }

  renew(params, options) {
    return this.#client.renewSession({ ...params, session_id: this.session_id }, options);
  }

  async terminate(options) {
    const ended = await this.#client.terminateSession({ session_id: this.session_id }, options);
    this.#ends = false;
    return ended;
  }

  observe(seen, options) {
    return this.#client.observe(this.session_id, seen, options);
  }

  async dispose() {
    if (this.#ends) await this.terminate();
  }
}

if (Symbol.asyncDispose) OpenSession.prototype[Symbol.asyncDispose] = OpenSession.prototype.dispose;
