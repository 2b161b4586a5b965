import { ask } from "./ask.js";

/** A session's proxy as the clients that people use with it want it. hopline.d.ts documents it. */
export class ProxySettings {
  /** A function, since the consoles of browsers show private members. */
  #as;

  constructor(proxy) {
    const { host, port, protocol, username, password, full_url } = proxy ?? {};
    this.#as = (client) => ask("proxy", { client, proxy: { host, port, protocol, username, password, full_url } });
    // Whatever is wrong with it is told now.
    this.#as("any");
    Object.assign(this, { host, port, protocol });
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  get url() {
    return this.#as("any").url;
  }

  get curl() {
    return this.#as("curl").curl;
  }

  undici() {
    const { server, authorization } = this.#as("undici");
    return { uri: server, token: authorization };
  }

  playwright() {
    const { server, username, password } = this.#as("playwright");
    return { server, username, password };
  }
}
