// An API that notes what it is asked, and answers as it is told to.
import { once } from "node:events";
import { createServer } from "node:http";

/** The requests that came, and the base URL. `answer` gets each request and its response. */
export async function noting(t, answer) {
  const asked = [];
  const note = async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    answer(request, response);
  };
  const api = createServer((request, response) => note(request, response).catch(() => response.destroy())).listen(0, "127.0.0.1");
  await once(api, "listening");
  t.after(() => (api.closeAllConnections(), api.close()));
  return { asked, baseUrl: `http://127.0.0.1:${api.address().port}/v1` };
}
