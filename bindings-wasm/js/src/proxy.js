import { ask } from "./ask.js";
import { refuse } from "./error.js";
import { Secret } from "./secret.js";

/** A session's proxy in the formats of HTTP clients. hopline.d.ts documents it. */
export class ProxySettings {
  /** A function, since the consoles of browsers show private members. */
  #as;

  constructor(proxy) {
    const { host, port, protocol, username, password, full_url } = proxy ?? {};
    for (const [field, given] of Object.entries({ username, password, full_url })) {
      const isCopy = given === String(Secret.prototype) || (typeof given?.serial === "number" && !(given instanceof Secret));
      if (isCopy) throw refuse("invalid", "proxy", `the text of \`${field}\` was lost when it was copied: structuredClone, postMessage and JSON drop it; pass the answer itself, or read the session again with \`include_credentials\``, { field });
    }
    this.#as = (client) => ask("proxy", { client, proxy: { host, port, protocol, username, password, full_url } });
    // Faults of the proxy are reported now.
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
