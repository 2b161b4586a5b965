/**
 * What differs from place to place: the defaults of the environment, where else than among the options a base URL may be,
 * what to say of a request that had no key and was refused, which failures of its `fetch` sent nothing and what else is to be said of them, what an error says of a session, how the core is loaded (a promise, or
 * nothing where it is here), and what an address without a host belongs to.
 */
export const host = { environment: () => ({}), elsewhere: () => "", unauthorized: () => "", failures: {}, load: () => undefined, resolve: (baseUrl) => baseUrl, seen: ({ name }) => (name === "TimeoutError" ? "timeout" : "target") };
