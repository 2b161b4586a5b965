/**
 * What differs from place to place: the defaults of the environment, which failures of its `fetch` sent nothing and what
 * else is to be said of them, how the core is loaded (a promise, or nothing where it is here), and what an address without
 * a host belongs to.
 */
export const host = { environment: () => ({}), failures: {}, load: () => undefined, resolve: (baseUrl) => baseUrl };
