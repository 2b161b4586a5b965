// Orders an address for a sub-user and waits until it can be used. Killed at any moment and started again, it goes on with the
// same order.

import Foundation
import Hopline

let reseller = try ResellerClient(store: FolderStore("hopline-records"))  // HOPLINE_BACKEND_URL, HOPLINE_USERNAME, HOPLINE_PASSWORD
do {
    guard let user = try await reseller.listSubUsers(search: "shop").items.first?.id else { fatalError("there is no such sub-user") }
    let offered = try await reseller.queryProducts(proxyType: [103], standardCountryCode: "US").items
    guard let product = offered.first(where: { ($0.stock ?? 0) > 0 && !needsProjectId($0) })?.productId else { fatalError("nothing is in stock") }
    let placed = try await reseller.placeOrder(
        poolId: product, userId: user, unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: .month, intent: "job-17")
    // The contract shows no more of an order than its number and its status: the rest is read as a type of your own.
    print(placed.orderNo, "is", placed.phase, "and shows", try placed.order.items.map { try $0.decode(JSON.self)["ip_count"]?.decimal ?? 0 })
} catch let error as HoplineError where error.kind == .inDoubt {
    // Nobody knows whether it was placed, and it is never placed twice: look what may have become of it, then `settle` it.
    for candidate in try await reseller.reconcile(error.record ?? "").candidates {
        print(error, "; this one agrees in", candidate.matched, try candidate.item.decode(JSON.self)["order_no"]?.string ?? "?")
    }
}
await reseller.close()
