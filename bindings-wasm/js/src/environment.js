// The variables of the environment that a server's clients take their options from.
import { host } from "./host.js";

/** By API: which option comes from which variable. */
const VARIABLES = {
  agent: { apiKey: "HOPLINE_API_KEY", baseUrl: "HOPLINE_BASE_URL" },
  reseller: { username: "HOPLINE_USERNAME", password: "HOPLINE_PASSWORD", baseUrl: "HOPLINE_BACKEND_URL" },
};

/** All or nothing: a given token must not be renewed with another login. */
const LOGIN = ["username", "password", "token"];

/** Makes the clients of this environment take their options from its variables. */
export function readEnvironment() {
  host.environment = (api, given) => {
    const variables = globalThis.process?.env ?? {};
    // A file or a shell may have left a line break behind it.
    const trimmed = (option, text) => (option === "password" ? text.replace(/^[\r\n]+|[\r\n]+$/g, "") : text.trim());
    const hasLogin = LOGIN.some((option) => option in given);
    // A blank one is refused by its name: a key that is lost on its way must not make a client without one.
    const found = Object.entries(VARIABLES[api]).filter(([option, name]) => name in variables && !(hasLogin && LOGIN.includes(option)));
    return Object.fromEntries(found.map(([option, name]) => [option, trimmed(option, variables[name])]));
  };
  host.variable = (api, option) => VARIABLES[api][option];
  host.elsewhere = (api) => `, or set ${VARIABLES[api].baseUrl}`;
  host.unauthorized = (api, { apiKey, username, token }) => {
    if (apiKey ?? username ?? token) return "";
    const [missing, options] = api === "agent" ? ["key", "`apiKey`"] : ["login", "`username` and `password`"];
    const variables = Object.entries(VARIABLES[api]).flatMap(([option, name]) => (option === "baseUrl" ? [] : [name]));
    return `; this client has no ${missing}: give ${options}, or set ${variables.join(" and ")}`;
  };
}
