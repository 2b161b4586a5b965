// Buys a session for no more than it was quoted, changes its exit when a site blocks it, and ends it. Kill it at any moment and
// start it again: it goes on with the same session, and buys no other.

import Foundation
import Hopline

// All clients of this folder together buy for no more than 50 USD in a UTC day.
let agent = try AgentClient(store: FolderStore("hopline-records"), dailyCapUsd: 50)

/// The session of an intent: the one that was begun before, or else the cheapest that is offered now.
func session(_ intent: String) async throws -> OpenSession {
    // First, since a price list may have changed meanwhile, and the same intent stands for the same purchase.
    if case .session(let begun)? = try await agent.resume(intent: intent) { return begun }
    var offered: [Product] = []
    for try await product in try agent.walkProducts(type: .dynamic) where product.available { offered.append(product) }
    guard let cheapest = offered.min(by: { $0.price < $1.price }) else { fatalError("no product is available") }
    let price = try quote(cheapest, quantity: 2)
    print(price.quantity, price.unit, "of", price.productNo, "cost", price.total, price.currency)
    return try await agent.openSession(
        sessionType: .dynamic, productNo: price.productNo, quantity: price.quantity, intent: intent, maxUnitPrice: price.unitPrice)
}

do {
    print("account", try await agent.getAccount().apiKeyPrefix ?? "?", "with the budget", try await agent.getBudget().raw.text)
    // The intent is your own name for this purchase. Whoever starts it again gets the same session.
    let session = try await session("job-17")
    guard session.phase == .ready else { fatalError("\(session) can't be used yet, or any more: start the program again, or look at it") }
    print(session.sessionId, "is", session.phase, "at", session.proxy?.host ?? "?", session.proxy?.password ?? "?")
    _ = try session.proxy?.url().reveal()  // for your own HTTP client

    // A site that you visit through it answered 403.
    if case .rotate(let reason) = try await session.observe(.status(403)) {
        let rotated = try await session.rotate(reason: reason, intent: "job-17, second exit")
        print("rotated, since", reason.rawValue, "and is", rotated.status.rawValue)
    }
    print("health", try await agent.getSessionHealth(sessionId: session.sessionId).raw.text)
    try await session.terminate()
    print("the session is over")
} catch let error as HoplineError where error.kind == .ended {
    print("job-17 was done before; the next job needs an intent of its own")
} catch let error as HoplineError {
    print(error)  // one sentence: what happened, whether money may have moved, what to do next
    if error.effect == .unknown { print("start the program again: it asks about the same purchase") }
}
await agent.close()
