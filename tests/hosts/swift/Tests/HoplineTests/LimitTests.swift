import Foundation
import Hopline
import Kit
import Testing

extension AgentClient {
    /// The price of a unit of the tests' product.
    func price() async throws -> Decimal {
        for try await product in try walkProducts() where product.productNo == "dynamic-world" { return product.price }
        throw Unmet("the product is offered")
    }
}

func number(_ text: String) throws -> Decimal {
    try #require(Decimal(string: text))
}

@Suite("limits on what is paid, and reads that are repeated until something holds")
struct LimitTests {
    @Test("nothing is bought above the price that the caller pays")
    func unitPrice() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let events = agent.events()
        let price = try await agent.price()
        let below = price - (try number("0.01"))
        let errors = [
            try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "dynamic-world", maxUnitPrice: below) },
            try await failure { try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", maxUnitPrice: below) },
        ]
        for error in errors {
            #expect(error.kind == .refused && error.isRefusedByUs && error.effect == .none && error.advice == .readPrices && error.message.contains("\(price)"), "\(error)")
        }
        #expect(try await sandbox.charges() == 0)
        try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", maxUnitPrice: price)
        #expect(try await sandbox.charges() == 1)
        await agent.close()
        var told: Set<Decimal> = []
        for await event in events { if case .priced(let unitPrice) = event.what { told.insert(unitPrice) } }
        #expect(told == [price])
    }

    @Test("a client buys no more than its cap a day, also after a restart")
    func dailyCap() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let price = try await sandbox.client().price()
        let capped = { try sandbox.client(store: folder.store, dailyCapUsd: price * 2) }
        let first = try capped()
        try await first.buy()
        let errors = [
            try await failure { try await first.createSession(sessionType: .dynamic, productNo: "dynamic-world", quantity: 2) },
            try await failure {
                try await first.createSession(sessionType: .dynamic, productNo: "dynamic-world", expectedChargeUsd: price * 2)
            },
        ]
        for error in errors { #expect(error.kind == .refused && error.isRefusedByUs && error.effect == .none && error.message.contains("of the daily cap of"), "\(error)") }
        await first.close()
        let uncapped = try sandbox.client(store: folder.store)
        #expect(try await uncapped.resumeAll().isEmpty)
        // Without an intent: what was spent is known before the first call.
        let second = try capped()
        #expect(try await second.buy().estimatedChargeUsd == price)
        let over = try await failure { try await second.buy() }
        #expect(over.message.contains("of the daily cap of"))
        await second.close()
        let third = try capped()
        let still = try await failure { try await third.buy("job-1") }
        #expect(still.message.contains("of the daily cap of"))
        #expect(try await sandbox.charges() == 2)
    }

    @Test("what another client of the store has spent counts, whether it lives or not")
    func spentByAnother() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let price = try await sandbox.client().price()
        let capped = { try sandbox.client(store: folder.store, dailyCapUsd: price) }
        let (one, other) = (try capped(), try capped())
        try await one.buy("job-1")
        for _ in 0..<2 {
            let error = try await failure { try await other.buy("job-2") }
            #expect(error.message.contains("of the daily cap of"))
            await one.close()
        }
        #expect(try await sandbox.charges() == 1)
    }

    @Test("a store that can't count is an error before anything is bought")
    func uncounted() async throws {
        struct Unreadable: Error {}
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let store = Watched(try folder.store) { if $0 == "spend" { throw Unreadable() } }
        let error = try await failure { try await sandbox.client(store: store, dailyCapUsd: 100).buy("job-1") }
        #expect(error.kind == .store && error.effect == .none && error.notes == ["the store said: Unreadable"], "\(error.debugDescription)")
        #expect(try await sandbox.charges() == 0)
        #expect(try folder.records.isEmpty)
    }

    @Test("tasks at once stay under one cap")
    func together() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let price = try await sandbox.client().price()
        let agent = try sandbox.client(dailyCapUsd: price * 3)
        let bought = await withTaskGroup(of: Bool.self) { group in
            for job in 0..<12 {
                group.addTask {
                    do {
                        try await agent.createSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-\(job)", maxUnitPrice: price)
                        return true
                    } catch {
                        return (error as? HoplineError)?.advice != .raiseBudget
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(try await sandbox.charges() == 3 && bought == 3)
    }

    @Test("an account that is known not to be ready buys nothing, and a renewal says what it is to cost")
    func others() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let unready = try await failure { try await sandbox.client(backendReady: false).buy() }
        #expect(unready.effect == .none && unready.isRefusedByUs)
        #expect(try await sandbox.charges() == 0)
        let agent = try sandbox.client(dailyCapUsd: 1000)
        let open = try await agent.openSession(sessionType: .static, productNo: "static-us", duration: 1, expectedChargeUsd: 10)
        try await open.renew(duration: 1, expectedChargeUsd: number("5.50"))
        let error = try await failure { try await agent.renewSession(sessionId: open.sessionId, duration: 1, expectedChargeUsd: 10_000) }
        #expect(error.message.contains("of the daily cap of"))
        #expect(try await sandbox.charges() == 2)
    }

    @Test("a balance is watched until it has grown, and any read for words")
    func watching() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "100")
        let agent = try sandbox.client()
        let events = agent.events()
        let balance = { (read: Reply<Undocumented>) in try read.raw.decode(JSON.self)["balance"]?.decimal }
        let before = try #require(try await balance(agent.getBalance()))
        let more = try number("12.50")
        let grown = Until(at: "/balance", atLeast: before + more)
        let order = try await agent.createRecharge(amountUsd: more, intent: "top-up")
        let waited = try await agent.getBalance(until: grown, deadline: .milliseconds(200))
        #expect(try waited.phase == .pending && balance(waited) == before)
        try await sandbox.control("pay", ["order_id": .string(order.orderId)])
        let ended = try await agent.getBalance(until: grown, deadline: .seconds(30))
        #expect(try ended.phase == .ready && balance(ended) == before + more)
        #expect(try await agent.getBalance().phase == nil)
        let session = try await agent.buy()
        let read = try await agent.getSession(sessionId: session.sessionId, until: Until(at: "/status", is: ["active"]), deadline: .seconds(30))
        #expect(session.phase == .pending && read.phase == .ready && read.status == .active)
        let never = Task { try await agent.getBalance(until: Until(at: "/balance", atLeast: 1_000_000_000)) }
        try await Task.sleep(for: .milliseconds(100))
        never.cancel()
        let cancelled = try await failure { try await never.value }
        #expect(cancelled.kind == .cancelled && cancelled.effect == .none)
        await agent.close()
        var values: [String?] = []
        for await event in events { if case .watched(let value) = event.what { values.append(value) } }
        #expect(values.contains("active") || values.contains("creating"), "\(values)")
    }

    @Test("a limit that is none, and a condition that can't hold, are refused by their names")
    func misuse() async throws {
        let agent = try client("https://api.example/v1")
        let bad: [(String, HoplineError)] = [
            ("maxUnitPrice", try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "p", maxUnitPrice: -1) }),
            ("maxUnitPrice", try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "p", maxUnitPrice: .nan) }),
            ("expectedChargeUsd", try await failure { try await agent.renewSession(sessionId: "s", duration: 1, expectedChargeUsd: -1) }),
            ("until", try await failure { try await agent.getBalance(until: Until(at: "balance", atLeast: 1)) }),
            ("until", try await failure { try await agent.getBalance(until: Until(at: "/balance")) }),
            ("until", try await failure { try await agent.getBalance(until: Until(at: "/balance", atLeast: .nan)) }),
            ("deadline", try await failure { try await agent.getBalance(until: Until(at: "/x", is: ["y"]), deadline: .seconds(-1)) }),
        ]
        for (field, error) in bad {
            #expect(error.kind == .invalid && error.effect == .none && error.field == field, "\(field): \(error.debugDescription)")
        }
        let never = Duration.seconds(-1)
        let options = [
            ClientOptions(maxInFlight: -1), ClientOptions(maxInFlight: 0), ClientOptions(maxBody: -1), ClientOptions(attempts: -1), ClientOptions(attempts: 0),
            ClientOptions(window: never), ClientOptions(timeout: never), ClientOptions(backoff: never), ClientOptions(throttledBackoff: never),
            ClientOptions(maxBackoff: never), ClientOptions(conflict: never),
        ]
        for (number, given) in options.enumerated() {
            let error = try await failure { try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", options: given) }
            #expect(error.kind == .invalid && error.field != nil, "\(number): \(error.debugDescription)")
        }
        let changes: [(inout PoolOptions) -> Void] = [
            { $0.size = -1 }, { $0.dailyCapUsd = .nan }, { $0.maxUnitPrice = .nan }, { $0.expectedChargeUsd = .nan }, { $0.quantity = .nan }, { $0.quantity = -1 },
            { $0.keepReady = -1 }, { $0.keepReady = 3 }, { $0.maxWaiters = -1 }, { $0.leasesPerSession = -1 }, { $0.rotateAfterUses = -1 },
            { $0.rotateAfter = never }, { $0.idleRelease = never }, { $0.maxLease = never },
        ]
        for (number, change) in changes.enumerated() {
            var given = PoolOptions(size: 2, sessionType: .dynamic, productNo: "p", dailyCapUsd: 10)
            change(&given)
            let error = try await failure { try await agent.openPool("shop", given) }
            #expect(error.kind == .invalid && error.field != nil, "\(number): \(error.debugDescription)")
        }
        let pool = try await agent.openPool("shop", PoolOptions(size: 2, sessionType: .dynamic, productNo: "p", dailyCapUsd: 10))
        let calls: [() async throws -> Any] = [
            { try await agent.createSession(sessionType: .dynamic, productNo: "p", quantity: .nan) }, { try await agent.updateBudget(dailyLimitUsd: .set(.nan)) },
            { try await agent.createRecharge(amountUsd: .nan) }, { try await agent.getBalance(options: CallOptions(timeout: never)) },
            { try await agent.resumeAll(deadline: never) }, { try await agent.openSession(sessionType: .dynamic, productNo: "p", deadline: never) },
            { try await pool.withLease(timeout: never) { _ in } }, { try await pool.waitReady(-1) }, { try await pool.waitReady(timeout: never) },
            { try await pool.drain(grace: never) },
        ]
        for (number, call) in calls.enumerated() {
            let error = try await failure { try await call() }
            #expect(error.kind == .invalid && error.field != nil && error.effect == .none, "\(number): \(error.debugDescription)")
        }
        for cap in [Decimal.nan, -1] {
            let error = try await failure {
                try AgentClient(apiKey: "canary-key", baseURL: "https://api.example/v1", dailyCapUsd: cap)
            }
            #expect(error.kind == .invalid && !error.debugDescription.contains("canary"), "\(error.debugDescription)")
        }
    }
}
