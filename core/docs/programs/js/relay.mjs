// HOPLINE_BASE_URL=https://host/v1 HOPLINE_API_KEY=… PORT=8080 node relay.mjs
import { createServer } from "node:http";
import { refuse, relay, toNode } from "hopline/backend";

const handle = relay({
  mount: "/api/v1",
  allow: ["getBalance", "listProducts", "createSession", "getSession", "terminateSession"],
  // Your login goes here: who asks, or `refuse(401, "log in first")`. Here everybody who reaches the server is Ann.
  authorize: () => ({ account: "ann" }),
  // Limits of your own. Nothing is passed on before they agree.
  check: ({ operation, body }) => {
    if (operation === "createSession" && /** @type {any} */ (body).quantity > 5) return refuse(422, "5 GB at most");
  },
});
const server = createServer(toNode(handle));
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log(server.address()));
