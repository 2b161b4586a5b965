import { refuse } from "./error.js";

/** How each protocol stands in a URL: `h` leaves names for the proxy to look up. */
const SCHEMES = { socks5: "socks5h", http: "http", https: "https" };

/** A session's proxy as the clients that people use with it want it. hopline.d.ts documents it. */
export class ProxySettings {
  /** A function, since the consoles of browsers show private members. */
  #login;
  #scheme;

  constructor(proxy) {
    const { host, port, protocol, username, password, full_url } = proxy ?? {};
    // A host is what goes into a URL and a configuration as it is.
    if (!/^[\w.:[\]-]+$/.test(host ?? "") || !Number.isInteger(port) || !Object.hasOwn(SCHEMES, protocol)) {
      throw refused("proxy", "`proxy` must be that of a session, with its host, its port and a protocol that is known");
    }
    if (!username || !password) {
      throw refused("proxy", "`proxy` has no username and password; ask for them with `credentials`, or with `include_credentials` when reading an active session");
    }
    Object.assign(this, { host, port, protocol });
    this.#login = () => [String(username), String(password)];
    // Whether an HTTP proxy is reached over TLS is for the service's own URL to say, where there is one.
    this.#scheme = protocol === "socks5" ? SCHEMES.socks5 : (/^https?(?=:)/.exec(full_url)?.[0] ?? SCHEMES[protocol]);
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  get url() {
    const login = this.#login().map(encodeURIComponent).join(":");
    return `${this.#scheme}://${login}@${this.#address}`;
  }

  get curl() {
    const quoted = (text) => `"${text.replace(/[\\"]/g, "\\$&")}"`;
    return `proxy = ${quoted(this.url)}\n`;
  }

  undici() {
    this.#http("undici takes a SOCKS5 proxy with a password only as an experiment, if at all");
    const bytes = new TextEncoder().encode(this.#login().join(":"));
    return { uri: `${this.#scheme}://${this.#address}`, token: `Basic ${btoa(String.fromCharCode(...bytes))}` };
  }

  playwright() {
    this.#http("Playwright takes no password for a SOCKS5 proxy");
    const [username, password] = this.#login();
    return { server: `${this.#scheme}://${this.#address}`, username, password };
  }

  get #address() {
    const { host, port } = this;
    return `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
  }

  #http(why) {
    if (this.protocol === "socks5") throw refused("protocol", `${why}; buy the session with \`protocol\` http or https`);
  }
}

function refused(field, what) {
  return refuse("invalid", "proxy", what, { field });
}
