// Makes a sub-user with money, orders a static proxy for it, reads it, renews it and gives it back. Kill it at any moment and
// start it again: nothing is done twice. What may have been done, and can't be asked about, is shown to be looked up.

import Foundation
import Hopline

/// The contract does not document what an item looks like; these are the names of the service at hand.
struct Item: Decodable {
    struct Instance: Decodable {
        let ip: String, http_port: Int, username: Secret, password: Secret
    }
    let instances: [Instance]
}

struct Entry: Decodable {
    let type: String, amount: Decimal
}

let reseller = try ResellerClient(store: FolderStore("hopline-records"))  // HOPLINE_BACKEND_URL, HOPLINE_USERNAME, HOPLINE_PASSWORD

/// The contract does not document which words end an order; these are the service's.
let over = ["failed", "cancelled"]

/// The order of an intent: the one that was begun before, or else one of a product that is in stock now.
func order(_ intent: String, for user: Int) async throws -> OrderReply {
    if case .order(let begun)? = try await reseller.resume(intent: intent, ends: over) { return begun }
    let offered = try await reseller.queryProducts(proxyType: [103], standardCountryCode: "US").items
    let found = offered.first { ($0.stock ?? 0) > 0 && !needsProjectId($0) }
    guard let product = found, let poolId = product.productId else { fatalError("nothing is in stock") }
    print(poolId, "costs", product.price ?? 0, "a", product.unit?.rawValue ?? "?")
    return try await reseller.placeOrder(
        poolId: poolId, userId: user, unitPrice: 0, totalAmount: 0,  // the service's own price
        ipCount: 1, cycleTimes: 1, duration: 1, unit: .month, intent: intent, ends: over)
}

do {
    let password = Secret(ProcessInfo.processInfo.environment["SUB_USER_PASSWORD"] ?? "")
    let made = try await reseller.createUser(username: "shop-17", password: password, intent: "user-17")
    guard let user = made.id else { fatalError("the service did not say which number it has") }
    try await reseller.adjustSubUserBalance(userId: user, amount: 50, remark: "for May", intent: "money-17")

    let placed = try await order("order-17", for: user)
    print("order", placed.orderNo, "is", placed.phase)

    if placed.phase == .ready {
        for shown in try placed.order.items.flatMap({ try $0.decode(Item.self).instances }) {
            let proxy = Proxy(host: shown.ip, port: shown.http_port, protocol: .http, username: shown.username, password: shown.password)
            print("a proxy at", proxy.host ?? "?", proxy.port ?? 0)  // proxy.url() for your own HTTP client
        }

        try await reseller.renewStaticOrder(orderNo: placed.orderNo, duration: 1, unit: .month, cycleTimes: 1, intent: "renewal-17")
        for try await entry in try reseller.walkConsumption(orderNo: placed.orderNo) {
            let entry = try entry.decode(Entry.self)
            print(entry.type, entry.amount)
        }
        try await reseller.cancelStaticOrder(orderNo: placed.orderNo, intent: "cancel-17")
    }
} catch let error as HoplineError {
    print(error)  // a sentence that says what to do next
    if error.effect == .unknown, let record = error.record {
        for candidate in try await reseller.reconcile(record).candidates {  // what it may have become, passwords included
            print(candidate.read, "agrees in", candidate.matched, "with", candidate.item.text)
        }
    }
}
await reseller.close()
