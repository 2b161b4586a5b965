// Looks at the account, sets its limits, buys a session for no more than it was quoted, changes its exit when a site blocks it,
// ends it, and tops the account up. Killed at any moment and started again, it goes on with the same purchase and the same
// top-up: the folder remembers. Only the watch of the balance begins anew, from what the balance is then.

import Foundation
import Hopline

struct Balance: Decodable {
    let balance: Decimal
}

// This client buys for no more than 50 USD in a UTC day.
let agent = try AgentClient(store: FolderStore("hopline-records"), dailyCapUsd: 50)
do {
    print("account", try await agent.getAccount().apiKeyPrefix ?? "?", "with the budget", try await agent.getBudget().raw.text)
    // What is left out stays as it is, a value is set, null is sent as null.
    try await agent.updateBudget(keyLimitUsd: .null, dailyLimitUsd: .set(100))

    var offered: [Product] = []
    for try await product in try agent.walkProducts(type: .dynamic) where product.available { offered.append(product) }
    guard let cheapest = offered.min(by: { $0.price < $1.price }) else { fatalError("nothing is offered") }
    let price = try quote(cheapest, quantity: 2)
    print(price.quantity, price.unit, "of", price.productNo, "cost", price.total, price.currency)

    // The intent is your own name for this purchase: whoever starts it again gets the same session.
    let session = try await agent.openSession(
        sessionType: .dynamic, productNo: price.productNo, quantity: price.quantity, intent: "job-17", maxUnitPrice: price.unitPrice,
        credentials: true)
    print(session.sessionId, "is", session.phase, "at", session.proxy?.host ?? "?", session.proxy?.password ?? "?")
    _ = try session.proxy?.url().reveal()  // for your own HTTP client
    // Tell what your own requests through it meet, and do as advised.
    let event = try sessionEvent(status: 403, latency: .milliseconds(120), target: "shop.example")
    try await agent.reportSessionEvent(sessionId: session.sessionId, event: event)
    if case .rotate(let reason) = try await session.observe(.status(403)) {
        try await session.rotate(reason: reason)
    }
    print("health", try await agent.getSessionHealth(sessionId: session.sessionId).raw.text)
    try await session.terminate()

    // What the contract does not show is read as a type of your own.
    let before = try await agent.getBalance().raw.decode(Balance.self).balance
    let order = try await agent.createRecharge(amountUsd: 20, intent: "top-up-17")
    print("pay", order.amountUsdt ?? 20, "USDT on", order.network ?? "?", "to", order.walletAddress ?? "?")
    let paid = try await agent.getBalance(until: Until(at: "/balance", atLeast: before + 20), deadline: .seconds(600))
    print("the top-up is", paid.phase ?? .unknown, try await agent.listTransactions().raw.text)
} catch let error as HoplineError {
    print(error)  // one sentence: what happened, whether money may have moved, what to do next
    if error.effect == .unknown { print("start it again: it asks about the same purchase") }
}
await agent.close()
