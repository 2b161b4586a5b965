import Foundation
import Hopline
import Kit

private struct Listed: Decodable {
    let order_no: String
}

/// Places an order under an intent. The program looks up each doubt that it finds, and settles it as a person would: an order of
/// this user that was not there before is the one.
func order(_ folder: String, for user: Int, _ points: Points, isFatal: Bool) async throws {
    let store = Watched(try FolderStore(folder)) { _ in points.passed() }
    let reseller = try ResellerClient(store: store, transport: PointedTransport(points: points))
    let before = "\(folder).before"
    if isFatal {
        var known: [String] = []
        for try await item in try reseller.walkStaticOrders(userId: user) { known.append(try item.decode(Listed.self).order_no) }
        try known.joined(separator: "\n").write(toFile: before, atomically: true, encoding: .utf8)
    }
    _ = try await reseller.resumeAll()
    for saved in try await reseller.saved() where saved.holds == .inDoubtForGood {
        let known = try String(contentsOfFile: before, encoding: .utf8).split(separator: "\n").map(String.init)
        let found = try await reseller.reconcile(saved.record).candidates.map { try $0.item.decode(Listed.self).order_no }
        let mine = found.first { !known.contains($0) }
        // The sandbox is on this machine: what it does not show will not arrive.
        try await reseller.settle(saved.record, happened: mine != nil, became: mine, early: true)
        if mine != nil, case .order(let order) = try await reseller.resume(saved.record) { return say("\(order.orderNo) settled") }
    }
    let placed = try await reseller.placeOrder(
        poolId: "static-us", userId: user, unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: .month, intent: "order")
    say("\(placed.orderNo) placed")
    await reseller.close()
}
