// Reads the pages that it is given through a pool of at most three sessions. Killed at any moment and started again, it goes on with
// the sessions that it has, and buys no others.

import Hopline

let agent = try AgentClient(store: FolderStore("hopline-records"))
let options = PoolOptions(size: 3, sessionType: .dynamic, productNo: "dynamic-world", dailyCapUsd: 40)
let pool = try await agent.openPool("shop", options)  // buys nothing yet

/// Your own request: the status that it met. Here nothing is sent.
func read(_ page: String, through proxy: Proxy) async throws -> Int { 200 }

await withTaskGroup(of: Void.self) { group in
    for page in CommandLine.arguments.dropFirst() {
        group.addTask {
            do {
                try await pool.withLease(target: "shop.example", timeout: .seconds(300)) { lease in
                    do {
                        let status = try await read(page, through: lease.proxy)
                        // If it is blocked, its session rests or gets another exit once it is back.
                        print(page, "met", status, "advice", try lease.observe(.status(status)))
                    } catch {
                        // The page was not read. A proxy that fails is told apart from a target that does.
                        print(page, "met", error, "advice", lease.observe(error))
                    }
                }
            } catch {
                print(page, "has no session:", error)  // a HoplineError; its retryAt says when to come again
            }
        }
    }
}
let status = try await pool.status()
print(status.ready, "sessions are ready for the next run")
await pool.close()  // they live on; drain() ends them
await agent.close()
