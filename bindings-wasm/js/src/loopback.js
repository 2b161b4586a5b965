// `proxy.onLoopback()`, which Node has and a page has not. hopline.d.ts documents it.
import { refuse } from "./error.js";
import { disposable } from "./hide.js";
import { Port } from "./port.js";
import { ProxySettings } from "./proxy.js";
import { OpenSession } from "./session.js";
import { partsOf } from "./upstream.js";
import { object } from "./values.js";

/** By the settings of a proxy: the lease or session that they are of. Settings do not keep a lease out. */
const origins = new WeakMap();

/** A port that was opened. */
const loopback = /* @__PURE__ */ disposable("close", class Loopback {
  #port;
  /** A lease is not dropped before its port. */
  #held;
  #unheard;

  constructor(port, url, { lease, unheard }) {
    this.#port = port;
    this.#held = lease;
    this.#unheard = unheard;
    this.url = url;
  }

  async close() {
    this.#held = undefined;
    this.#unheard?.();
    await this.#port.close();
  }
});

/** Says that settings are those of a lease, whose end closes the ports of this set, as does the end of its client. */
export function ofLease(settings, lease, engine, ports) {
  origins.set(settings, { lease: new WeakRef(lease), engine, ports });
}

const ofSession = Object.getOwnPropertyDescriptor(OpenSession.prototype, "proxy");
Object.defineProperty(OpenSession.prototype, "proxy", {
  ...ofSession,
  get() {
    const settings = ofSession.get.call(this);
    origins.set(settings, { session: this });
    return settings;
  },
});

Object.defineProperty(ProxySettings.prototype, "onLoopback", { value: onLoopback, writable: true, configurable: true });

async function onLoopback(options = {}) {
  object("on_loopback", "options", options);
  const unknown = Object.keys(options).find((name) => name !== "port");
  if (unknown !== undefined) throw refuse("invalid", "on_loopback", `\`options\` has an unknown field \`${unknown}\`; there is \`port\``, { field: "options" });
  const { port: number = 0 } = options;
  if (!Number.isInteger(number) || number < 0 || number > 65_535) throw refuse("invalid", "on_loopback", "`port` must be a whole number from 0, for any free one, to 65535", { field: "port" });
  const { lease: ref, engine, ports, session } = origins.get(this) ?? {};
  const lease = ref?.deref();
  const check = () => {
    if (ref && !lease?.valid) throw refuse("misuse", "on_loopback", "the lease was given back, or is not valid any more; acquire another one, and keep it as long as its port");
  };
  check();
  const port = new Port(ref ? ofLent(ref, this) : session ? ofOpen(session) : always(this));
  const url = await port.open(number);
  try {
    // The lease may have gone back meanwhile.
    check();
  } catch (error) {
    await port.close();
    throw error;
  }
  return new loopback(port, url, { lease, unheard: ref && endsWith(port, engine, ports) });
}

/** Closes a port with its lease and with its client, until the returned function is called. */
function endsWith(port, engine, ports) {
  ports.add(port);
  const unheard = engine.atEnd(() => port.close());
  return () => {
    ports.delete(port);
    unheard();
  };
}

/** The exit of a lease, which is never another one. The port alone keeps no lease out. */
function ofLent(ref, settings) {
  const exit = { proxy: partsOf(settings.url), isValid: () => ref.deref()?.valid === true, observe: (seen) => ref.deref()?.observe(seen) };
  return () => (exit.isValid() ? exit : undefined);
}

/** The exit that a session has now. */
function ofOpen(session) {
  return () => {
    const { generation, phase } = session;
    const isValid = () => session.generation === generation && session.phase === "ready";
    return phase === "ready" && session.session.proxy ? { proxy: partsOf(new ProxySettings(session.session.proxy).url), isValid, observe() {} } : undefined;
  };
}

function always(settings) {
  const exit = { proxy: partsOf(settings.url), isValid: () => true, observe() {} };
  return () => exit;
}
