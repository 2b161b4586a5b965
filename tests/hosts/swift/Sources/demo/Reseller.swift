import Foundation
import Hopline
import Kit

/// A proxy as the list of static orders shows it; the contract leaves its form open.
private struct Instance: Decodable {
    let ip: String
    let port: Int
    let username: Secret
    let password: Secret
    let exit_ip: String
    let expires_at: String
}

private struct Listed: Decodable {
    let instances: [Instance]
}

private func instances(_ order: OrderReply) throws -> [Instance] {
    try order.order.items.flatMap { try $0.decode(Listed.self).instances }
}

/// A static order's whole life: bought for a sub-user, used, renewed, cancelled.
func tellReseller(_ sandbox: Sandbox, _ folder: String) async throws {
    print("\nhopline for swift: a static order's whole life\n")
    let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let reseller = try sandbox.reseller(store: FolderStore(folder))
    let before = try await reseller.getCurrentBalance().raw.decode(Balance.self).balance
    row("login", "as \(sandbox.ready.username), by itself; the token prints as \(reseller.token.map { "\($0)" } ?? "nothing")")
    row("balance", "\(usd(before)) USD")
    let events = reseller.events()
    let listening = Task {
        for await event in events {
            switch event.what {
            case .ordered(let number): row("ordered", number)
            case .orderStatus(let number, let status, _): row(status.rawValue, number)
            default: break
            }
        }
    }

    let user = try await reseller.createUser(username: "demo-user", password: Secret("a-password"), intent: "demo-user")
    guard let id = user.id else { throw Unmet("a sub-user has a number") }
    row("sub-user", "\(user.username ?? "?"), number \(id)")
    try await reseller.adjustSubUserBalance(userId: id, amount: 30, remark: "to begin with", intent: "demo-funds")
    let teller = try await Teller {
        guard let balance = try await reseller.listSubUsers(search: "demo-user").items.first?.balance else { throw Unmet("the sub-user is listed") }
        return balance
    }
    row("funded", "with \(usd(await teller.balance)) USD")

    let offered = try await reseller.queryProducts(proxyType: [103]).items.filter { ($0.stock ?? 0) > 0 && !needsProjectId($0) }
    guard let product = offered.min(by: { $0.price ?? 0 < $1.price ?? 0 }), let pool = product.productId, let price = product.price, let unit = product.unit
    else { throw Unmet("a static product is offered") }
    row("product", "\(pool) at \(usd(price)) USD a \(unit.rawValue), of \(offered.count) in stock; \(product.stock ?? 0) addresses are left")
    let placed = try await teller.step("place") {
        try await reseller.placeOrder(
            poolId: pool, userId: id, unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: unit, intent: "demo-order")
    }
    try ensure(placed.phase == .ready, "the order is usable")
    guard let proxy = try instances(placed).first else { throw Unmet("an active order shows its proxies") }
    row("proxy", "SOCKS5 at \(proxy.ip):\(proxy.port), with a username and a password, until \(proxy.expires_at.prefix(10))")

    let visit = { @Sendable in
        try await curl(site, through: Hopline.Proxy(host: proxy.ip, port: proxy.port, protocol: .socks5, username: proxy.username, password: proxy.password))
    }
    let seen = try await teller.step("fetch") { try await visit() }
    row("fetch", "the site answers \(seen.status) to exit \(try JSONDecoder().decode(Visit.self, from: Data(seen.text.utf8)).address)")
    try await teller.step("renew") {
        _ = try await reseller.renewStaticOrder(orderNo: placed.orderNo, duration: 1, unit: unit, cycleTimes: 1, intent: "demo-renewal")
    }
    let renewed = try instances(await reseller.waitOrder(orderNo: placed.orderNo))
    row("renew", "it now lasts until \(renewed.first?.expires_at.prefix(10) ?? "?")")
    try await teller.step("cancel") { _ = try await reseller.cancelStaticOrder(orderNo: placed.orderNo, intent: "demo-cancel") }
    try ensure((try? await visit())?.status != 200, "the proxy of a cancelled order refuses")
    row("cancel", "the order is over, and its proxy refuses the password")
    for saved in try await reseller.saved() {
        row("record", "\(saved.intent ?? "?"): \(saved.operation) was accepted\(saved.orderNo.map { ", as \($0)" } ?? "")")
    }
    let after = try await reseller.getCurrentBalance().raw.decode(Balance.self).balance
    await reseller.close()
    await listening.value
    await teller.show()

    let backend = try await sandbox.state().backend
    let entries = backend.entries.filter { $0.order_no == placed.orderNo }.map { "\($0.type) \($0.user_id) \(-$0.amount)" }
    try ensure(entries == ["purchase \(id) \(price)", "renewal \(id) \(price)"], "a purchase and a renewal of \(price) USD each, and not \(entries)")
    let orders = backend.static_orders.filter { $0.user_id == id }
    try ensure(orders.map { "\($0.order_no) \($0.status)" } == ["\(placed.orderNo) cancelled"], "one order, which was cancelled, and not \(orders)")
    try ensure(orders.allSatisfy { $0.traffic_bytes > 0 }, "the site was fetched through its proxy")
    let left = await teller.balance
    try ensure(backend.users.map(\.balance) == [left] && left == 30 - price * 2 && before - after == 30, "nobody else paid anything")
    try ensure(renewed.first.map { $0.expires_at > proxy.expires_at } == true, "the renewal made it last longer")
    print()
    row("checked", "one order, one purchase, one renewal; the service's own books say the same\n")
}
