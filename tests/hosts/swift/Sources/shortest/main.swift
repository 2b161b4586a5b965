import Foundation
import Hopline

let (url, curl) = (CommandLine.arguments[1], Process())
let agent = try AgentClient(store: FolderStore("hopline-records"), dailyCapUsd: 20)
let session = try await agent.openSession(quantity: Decimal(string: "0.5"), intent: "prices", ifEnded: .buy, product: Cheapest(type: .dynamic, maxUnitPrice: 5), useWith: .curl)
(curl.executableURL, curl.standardInput) = (URL(fileURLWithPath: "/usr/bin/curl"), try session.proxy?.curlInput())
curl.arguments = ["--config", "-", "--silent", "--show-error", "--output", "page.html", "--write-out", "%{http_code} ", url]
try curl.run()
curl.waitUntilExit()
print("for", session.chargedUsd ?? 0, "USD")
try await session.terminate()
await agent.close()
