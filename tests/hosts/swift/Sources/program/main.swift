// Buys a session, uses it, changes its exit when a site blocks it, and ends it. Killed at any moment and started again, it
// goes on with the same purchase: the folder remembers.

import Foundation
import Hopline

struct Balance: Decodable {
    let balance: Decimal
}

let agent = try AgentClient(store: FolderStore("hopline-records"))
do {
    let offered = try await agent.listProducts(type: .dynamic).items
    guard let cheapest = offered.min(by: { $0.price < $1.price }) else { fatalError("nothing is offered") }
    // The intent is your own name for this purchase: whoever starts it again gets the same session.
    let session = try await agent.openSession(
        sessionType: .dynamic, productNo: cheapest.productNo, quantity: 1, intent: "job-17", credentials: true)
    print(session.sessionId, "is", session.phase, "at", session.proxy?.host ?? "?", session.proxy?.password ?? "?")
    if let url = session.proxy?.fullUrl {
        let _forYourHTTPClient = url.reveal()
        _ = _forYourHTTPClient
    }
    // Tell what your own requests through it meet, and do as advised.
    if case .rotate(let reason) = try session.observe(.status(403)) {
        try await session.rotate(reason: reason)
    }
    try await session.terminate()
    // What the contract does not show is read as a type of your own.
    print("the balance is now", try await agent.getBalance().raw.decode(Balance.self).balance)
} catch let error as HoplineError {
    print(error)  // one sentence: what happened, whether money may have moved, what to do next
    if error.effect == .unknown { print("start it again, or resume", error.record ?? "it") }
}
await agent.close()
