const { AgentClient } = require("hopline");

const agent = new AgentClient();
// The contract does not document the members of this answer, so its type is `unknown`.
agent.getBalance().then((/** @type {any} */ { balance }) => console.log(`${balance} USD`));
