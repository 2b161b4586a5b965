import { relay } from "hopline/backend";

let made;
// Built without the account's key, which is there when it runs.
const handle = (request) => (made ??= relay({ mount: "/api/v1", allow: ["createSession", "getSession"], authorize: () => ({ account: "ann" }) }))(request);

export { handle as GET, handle as POST, handle as PUT, handle as DELETE };
