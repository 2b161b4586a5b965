// Fetches the URLs of its command line with Crawlee, through at most three sessions.
import { HttpCrawler } from "@crawlee/http"; // or any other crawler over HTTP, such as the CheerioCrawler of "crawlee"
import { AgentClient, FolderStore } from "hopline";
import { HoplineHttpClient } from "hopline/crawlee";

const agent = new AgentClient({ dailyCapUsd: 20, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 3, session_type: "dynamic", product_no: "dynamic-world", quantity: 0.5, protocol: "http" });
const crawler = new HttpCrawler({
  // Where no request can get a session any more, the crawl stops, and the pages stay in Crawlee's queue.
  httpClient: new HoplineHttpClient(pool, { onStuck: (why) => void crawler.stop(why) }),
  requestHandler: ({ request, response }) => console.log(request.url, response.statusCode),
});
await crawler.run(process.argv.slice(2));
await agent.close();
