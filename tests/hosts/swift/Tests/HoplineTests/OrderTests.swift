import Foundation
import Hopline
import Kit
import Testing

@Suite("static orders of the reseller API")
struct OrderTests {
    @Test("an order lives from its placing to its end")
    func life() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "100-300")
        let reseller = try sandbox.reseller()
        let events = reseller.events()
        let user = try await reseller.funded()
        let product = try #require(try await reseller.queryProducts(proxyType: [103]).items.first { $0.productId == "static-us" })
        #expect(product.unit == .month && product.price != nil && !needsProjectId(product))
        let placed = try await reseller.place(user, intent: "order-1")
        #expect(placed.phase == .ready && placed.order.status == .active && placed.order.orderNo == placed.orderNo)
        #expect(try await reseller.saved().map(\.orderNo) == [placed.orderNo])

        let instance = try placed.instance()
        let proxy = Hopline.Proxy(host: instance.ip, port: instance.port, protocol: .socks5, username: instance.username, password: instance.password)
        let seen = try await curl(sandbox.ready.target_url, through: proxy)
        #expect(seen.status == 200 && seen.text.contains(instance.exit_ip))

        try await reseller.renewStaticOrder(orderNo: placed.orderNo, duration: 1, unit: .month, cycleTimes: 1)
        let renewed = try await reseller.waitOrder(orderNo: placed.orderNo)
        #expect(try renewed.instance().expires_at > instance.expires_at)
        try await reseller.cancelStaticOrder(orderNo: placed.orderNo)
        let ended = try await reseller.waitOrder(orderNo: placed.orderNo, deadline: .seconds(10), ends: ["cancelled"])
        #expect(ended.phase == .ended && ended.order.status == StaticOrderStatus(rawValue: "cancelled"))
        #expect(try await isRefused(sandbox.ready.target_url, through: proxy), "the proxy of a cancelled order refuses its credentials")
        var kinds: [String?] = []
        for try await entry in try reseller.walkConsumption(orderNo: placed.orderNo) { kinds.append(try entry.decode(JSON.self)["type"]?.string) }
        #expect(Set(kinds) == ["purchase", "renewal"] && kinds.count == 2)
        await reseller.close()
        var told: [String] = []
        for await event in events {
            switch event.what {
            case .ordered(let orderNo): told.append("ordered \(orderNo)")
            case .orderStatus(_, let status, let phase): told.append("\(status.rawValue) \(phase)")
            default: break
            }
        }
        #expect(told.first == "ordered \(placed.orderNo)" && told.contains("active ready") && told.contains("cancelled ended"), "\(told)")
        #expect(try await sandbox.purchases() == [placed.orderNo])
    }

    @Test("the same intent is placed once, in other clients too")
    func once() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let first = try sandbox.reseller(store: folder.store)
        let user = try await first.funded()
        var numbers = [try await first.place(user, intent: "order-1").orderNo, try await first.place(user, intent: "order-1").orderNo]
        await first.close()
        numbers.append(try await sandbox.reseller(store: folder.store).place(user, intent: "order-1").orderNo)
        #expect(Set(numbers) == Set(try await sandbox.purchases()) && Set(numbers).count == 1)
        #expect(try await sandbox.times("create_static_order") == 1)
    }

    @Test("an order whose answer was lost is looked up by another client and settled")
    func lost() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let first = try sandbox.reseller(store: folder.store)
        let user = try await first.funded()
        try await sandbox.fault("create_static_order", ["kind": "drop_after"])
        let error = try await failure { try await first.place(user, intent: "order-1") }
        #expect(error.kind == .inDoubt && error.effect == .unknown && error.advice == .reconcile, "\(error.debugDescription)")
        let record = try #require(error.record)
        #expect(try await first.saved().map(\.holds) == [.inDoubtForGood])
        await first.close()

        let second = try sandbox.reseller(store: folder.store)
        let found = try await second.reconcile(record)
        #expect(found.operation == "create_static_order" && found.complete && found.candidates.count == 1)
        let candidate = try #require(found.candidates.first)
        #expect(candidate.read == "list_static_orders" && candidate.matched.contains("userId"))
        let number = try candidate.item.decode(Listed.self).order_no
        #expect(try await sandbox.purchases() == [number])
        let empty = try await failure { try await second.settle(record, happened: true, became: "") }
        #expect(empty.kind == .invalid && empty.message.contains("settle: `became` must not be empty"), "\(empty.debugDescription)")
        let contrary = try await failure { try await second.settle(record, happened: false, became: number) }
        #expect(contrary.field == "became", "\(contrary.debugDescription)")
        #expect(try await second.settle(record, happened: true, became: number))
        let again = try await failure { try await second.settle(record, happened: true) }
        #expect(again.kind == .refused && again.message.contains("has changed since you read it"), "\(again.debugDescription)")
        let placed = try await second.place(user, intent: "order-1")
        #expect(placed.orderNo == number && placed.phase == .ready)
        #expect(try await sandbox.times("create_static_order") == 1)
    }

    @Test("an order that never arrived has no candidate and may be placed anew")
    func neverArrived() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let reseller = try sandbox.reseller()
        let user = try await reseller.funded()
        try await sandbox.fault("create_static_order", ["kind": "drop_before"])
        let record = try #require(try await failure { try await reseller.place(user, intent: "order-1") }.record)
        #expect(try await reseller.reconcile(record).candidates.isEmpty)
        let soon = try await failure { try await reseller.settle(record, happened: false) }
        #expect(soon.kind == .refused && soon.effect == .none, "\(soon.debugDescription)")
        let (from, until) = (try #require(try await reseller.saved().first?.settleFrom), try #require(soon.retryAt))
        #expect(abs(from.timeIntervalSince(until)) < 60 && from.timeIntervalSinceNow > 3000, "both are an hour after the send")
        #expect(try await reseller.settle(record, happened: false, early: true))
        #expect(try await reseller.place(user, intent: "order-1").phase == .ready)
        #expect(try await sandbox.purchases().count == 1)
        for client in [reseller, try sandbox.client()] as [HoplineClient] {
            let misused = try await failure { try await client.reconcile("none") }
            #expect(misused.kind == .misuse && misused.message.contains("not the name of a record"), "\(misused.debugDescription)")
        }
    }

    @Test("no write is repeated by itself", arguments: ["drop_after", "truncate", "html"])
    func writes(_ kind: String) async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller(options: ClientOptions(attempts: 5))
        let user = try await reseller.funded()
        let fault: JSON = kind == "html" ? ["kind": "html", "status": 502, "after": true] : ["kind": .string(kind)]
        try await sandbox.fault("adjust_sub_user_balance", fault)
        let error = try await failure { try await reseller.adjustSubUserBalance(userId: user, amount: 1, remark: "a gift") }
        #expect(error.kind == .inDoubt, "\(error.debugDescription)")
        let found = try await reseller.reconcile(try #require(error.record))
        #expect(found.candidates.contains { $0.matched.contains("remark") })
        #expect(try await sandbox.times("adjust_sub_user_balance") == 2)
    }

    @Test("an order outlives the task that waits for it, and its intent goes on with it in another client")
    func cancelled() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "10000"), Folder())
        let first = try sandbox.reseller(store: folder.store)
        let user = try await first.funded()
        let waiting = Task { try await first.place(user, intent: "order-1") }
        try await until("it is placed") { try await first.saved().contains { $0.holds == .underWay && $0.orderNo != nil } }
        waiting.cancel()
        let error = try await failure { try await waiting.value }
        #expect(error.kind == .cancelled && error.effect == .done && error.orderNo != nil, "\(error.debugDescription)")
        let saved = try #require(try await first.saved().first)
        #expect(saved.operation == "create_static_order" && saved.orderNo == error.orderNo, "\(saved)")
        await first.close()

        let second = try sandbox.reseller(store: folder.store)
        let placed = try await second.place(user, intent: "order-1")
        #expect(placed.phase == .ready && placed.orderNo == error.orderNo)
        #expect(try await second.forget(try #require(try await second.saved().first?.record)))
        #expect(try folder.records.isEmpty)
        #expect(try await sandbox.purchases() == [placed.orderNo])
    }

    @Test("an order whose process is gone is resumed by another")
    func resumed() async throws {
        let (sandbox, folder, left) = (try await Sandbox("--provisioning-ms", "1500"), Folder(), Folder())
        let first = try sandbox.reseller(store: folder.store)
        let user = try await first.funded()
        let waiting = Task { try await first.place(user) }
        // The files that a process which ended now would leave. Files come and go while it works, so a copy may break off.
        try await until("it is placed") {
            try? FileManager.default.removeItem(atPath: left.path)
            try? FileManager.default.copyItem(atPath: folder.path, toPath: left.path)
            return (try? left.records)?.contains { $0.contains("ORD-") } ?? false
        }
        let second = try sandbox.reseller(store: left.store)
        #expect(try await second.saved().map(\.holds) == [.order])
        guard case .success(.order(let order))? = try await second.resumeAll().first else { throw Unmet("an order is resumed") }
        let waited = try await waiting.value
        #expect(order.phase == .ready && order.orderNo == waited.orderNo)
        #expect(try await sandbox.purchases() == [order.orderNo])
    }

    @Test("a deadline ends the wait and not the order")
    func deadline() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "60000")
        let reseller = try sandbox.reseller()
        let placed = try await reseller.place(try await reseller.funded(), deadline: .milliseconds(200))
        #expect(placed.phase == .pending && placed.order.status == .processing && "\(placed)" == "\(placed.orderNo) (pending)")
        try await sandbox.control("order", ["order_no": .string(placed.orderNo), "outcome": "failed"])
        #expect(try await reseller.waitOrder(orderNo: placed.orderNo, deadline: .seconds(10), ends: ["failed"]).phase == .ended)
        #expect(try await reseller.waitOrder(orderNo: placed.orderNo, deadline: .zero).phase == .unknown)
    }

    @Test("tasks that place at once get an order for each intent")
    func together() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--balance", "100000")
        let reseller = try sandbox.reseller()
        let user = try await reseller.funded(with: 1000)
        let numbers = try await withThrowingTaskGroup(of: String.self) { group in
            for job in 0..<24 { group.addTask { try await reseller.place(user, intent: "order-\(job % 12)").orderNo } }
            return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        #expect(numbers.count == 12 && numbers.values.allSatisfy { $0 == 2 })
        #expect(Set(try await sandbox.purchases()) == Set(numbers.keys))
        #expect(try await sandbox.times("login") == 1)
    }
}
