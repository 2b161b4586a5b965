import Foundation
@testable import Hopline
import Kit
import Testing

@Suite("a pool of sessions")
struct PoolTests {
    private func pool(_ agent: AgentClient, size: Int = 1, keepReady: Int? = nil, idleRelease: Duration? = nil) async throws -> Pool {
        let cap = try #require(Decimal(string: "100"))
        let options = PoolOptions(
            size: size, sessionType: .dynamic, productNo: "dynamic-world", protocol: .http, dailyCapUsd: cap, keepReady: keepReady,
            idleRelease: idleRelease)
        return try await agent.openPool("shop", options)
    }

    @Test("keeps nothing of its own requests that fail, for as long as it works")
    func failing() async throws {
        let sent = Counter()
        let transport = Sending { _ in
            sent.add(1)
            throw Unmet("there is no network")
        }
        let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", transport: transport, options: ClientOptions(attempts: 1))
        _ = try await pool(agent, size: 3, keepReady: 3)
        try await until("it has tried to buy") { sent.total > 0 && agent.driver.lock.withLock { agent.driver.out.isEmpty } }
        let kept = agent.driver.lock.withLock { agent.driver.transportTrouble.count + agent.driver.storeTrouble.count }
        #expect(kept == 0)
        let error = try await failure { try await agent.getBalance() }
        #expect(error.notes.joined().contains("there is no network"), "a caller is told: \(error.debugDescription)")
        await agent.close()
    }

    @Test("buys nothing when it is opened, lends, gives a blocked session a new exit, and releases all when it is closed")
    func life() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "50"), Folder())
        let agent = try sandbox.client(store: folder.store)
        let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        try await sandbox.control("target", ["block_first_exit": true])
        let shop = try await pool(agent)
        let before = try await shop.status()
        #expect(before.size == 1 && before.unknown == 1 && before.waiting == 0 && before.slots.isEmpty && before.hold == nil)
        #expect(try await sandbox.charges() == 0)

        // The closure of a lease may use variables around it.
        var (statuses, proxies): ([Int], [Proxy]) = ([], [])
        let first = try await shop.withLease(target: "localhost") { lease in
            #expect(lease.isValid && lease.slot == 0 && lease.target == "localhost")
            try lease.data["cookie"] = "canary"
            proxies.append(try lease.proxy)
            statuses.append(try await curl(site, through: proxies[0]).status)
            #expect(try lease.observe(.status(403)) == .giveBack)
            #expect(try await shop.status().leased == 1)
            return lease
        }
        #expect(try !first.isValid && first.observe(.captcha) == .giveBack, "it was given back")
        // No caller waits.
        try await until("it was rotated") { try await sandbox.state().sessions.map(\.rotations) == [1] }
        let second = try await shop.withLease(target: "localhost") { lease in
            proxies.append(try lease.proxy)
            statuses.append(try await curl(site, through: proxies[1]).status)
            #expect(try lease.observe(.status(200)) == .keep && lease.observe(URLError(.networkConnectionLost)) == .keep)
            #expect(try lease.data["cookie"] == nil, "it has another exit")
            try lease.data["cookie"] = "canary"
            return lease
        }
        let cookie = try await shop.withLease { try $0.data["cookie"] as? String }
        #expect(cookie == "canary", "it has the same exit")
        #expect(!shown(second).contains("canary"))
        #expect(statuses == [403, 200] && second.sessionId == first.sessionId && second.generation > first.generation)
        let password = try #require(proxies[1].password)
        #expect(password != proxies[0].password)
        for shown in [shown(second), shown(shop)] { #expect(!shown.contains(password.reveal())) }
        await shop.close()
        await shop.close()
        #expect(try await failure { try await shop.withLease { $0.sessionId } }.kind == .misuse)

        // A session that lives on is lent by the client that opens the pool next.
        let other = try sandbox.client(store: folder.store)
        let again = try await pool(other)
        #expect(try await again.withLease { $0.sessionId } == first.sessionId)
        try await again.drain()
        let state = try await sandbox.state()
        #expect(state.charges.count == 1 && state.sessions.map(\.status) == ["terminated"])
        await agent.close()
        await other.close()
    }

    @Test("takes the cheapest product for each purchase, and the next one where that is sold out")
    func cheapest() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let choice = Cheapest(type: .dynamic, maxUnitPrice: 5)
        let shop = try await agent.openPool("shop", PoolOptions(size: 1, product: choice, dailyCapUsd: 100))
        try await sandbox.fault("create_session", ["kind": "error", "code": "PRODUCT_OUT_OF_STOCK", "stored": true])
        let session = try await shop.withLease { $0.sessionId }
        #expect(try await sandbox.state().sessions.map(\.session_id) == [session])
        #expect(try await sandbox.state().charges.map(\.amount) == [try #require(Decimal(string: "4.25"))], "the next one costs more")
        await shop.close()
        await agent.close()
    }

    @Test("keeps sessions ready though nobody calls, stops while it is paused, and says why it holds")
    func background() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "50", "--session-limit", "2")
        let agent = try sandbox.client()
        let events = agent.events()
        let shop = try await pool(agent, size: 3, keepReady: 2)
        try await until("two are bought") { try await sandbox.charges() == 2 }
        let status = try await shop.waitReady(2)
        #expect(status.ready == 2 && status.slots.count == 2)

        try await shop.pause()
        #expect(try await shop.status().hold?.reason == .paused)
        try await shop.resume()
        #expect(try await shop.status().hold == nil)

        let gate = Gate()
        let holders = (0..<2).map { _ in Task { try await shop.withLease { _ in await gate.pass() } } }
        try await until("both are lent") { try await shop.status().leased == 2 }
        let none = try await failure { try await shop.withLease(timeout: .milliseconds(500)) { _ in } }
        #expect(none.kind == .unavailable && none.effect == .none)
        await gate.open()
        for holder in holders { try await holder.value }
        await agent.close()
        var held: [PoolHoldReason] = []
        for await event in events {
            guard case .poolHeld(let reason, _) = event.what else { continue }
            #expect(event.level == .info)
            held.append(reason)
        }
        #expect(held.contains(.sessionLimit))
        #expect(try await sandbox.state().sessions.allSatisfy { $0.status == "active" }, "closing a client ends no session")
    }

    @Test("loses no lease of ten thousand tasks that are cancelled while they wait or have one")
    func cancelled() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--rate-limit", "1000000", "--balance", "100000")
        let agent = try sandbox.client()
        let shop = try await pool(agent, size: 4)
        let (granted, ended) = (Counter(), Counter())
        for _ in 0..<20 {
            let tasks = (0..<500).map { number in
                Task {
                    try await shop.withLease(timeout: .seconds(120)) { _ in
                        granted.add(1)
                        try await Task.sleep(for: .milliseconds(number % 3))
                    }
                }
            }
            for (number, task) in tasks.enumerated() {
                // So that some have begun, some wait and some have a lease; one of fifty is not cancelled.
                if number % 50 == 0 { try await Task.sleep(for: .milliseconds(1)) } else { task.cancel() }
            }
            for task in tasks {
                switch await task.result {
                case .success: ended.add(1)
                case .failure(let error as HoplineError):
                    #expect(error.kind == .cancelled && error.effect == .none)
                    ended.add(1)
                case .failure(let error):
                    #expect(error is CancellationError)
                    ended.add(1)
                }
            }
        }
        #expect(ended.total == 10_000 && granted.total >= 200)
        let status = try await shop.status()
        #expect(status.leased == 0 && status.waiting == 0)
        // Each session that there may be is lent at once.
        try await together(shop, 4)
        #expect(try await sandbox.charges() == 4)
        await agent.close()
    }

    @Test("of two clients of a store has one limit, and needs a cap")
    func shared() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let (one, other) = (try sandbox.client(store: folder.store), try sandbox.client(store: folder.store))
        let uncapped = PoolOptions(size: 1, sessionType: .dynamic, productNo: "dynamic-world")
        #expect(try await failure { try await one.openPool("shop", uncapped) }.field == "dailyCapUsd")
        let (here, there) = (try await pool(one, size: 2), try await pool(other, size: 2))
        let ids = try await here.withLease { first in
            try await there.withLease { second in
                let third = try await failure { try await there.withLease(timeout: .milliseconds(300)) { _ in } }
                #expect(third.kind == .unavailable)
                #expect(try await there.status(everywhere: true).leased == 1)
                return [first.sessionId, second.sessionId]
            }
        }
        #expect(Set(ids).count == 2)
        #expect(try await sandbox.charges() == 2)
        try await here.drain()
        try await there.drain()
        try await until("the sessions of both are over") { try await living(sandbox) == 0 }
        await one.close()
        await other.close()
    }

    @Test("drains everywhere: what other clients lend, what they keep idle, and what is nobody's", arguments: [false, true])
    func drained(closes: Bool) async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        // The client reads nothing more in its store while it is deaf, so it hears of the drain only after that.
        let (deaf, hears) = (Counter(), Gate())
        let store = Watched(try folder.store, atEnds: false) { if $0 == "claim" && deaf.total > 0 { await hears.pass() } }
        let (one, other) = (try sandbox.client(store: store), try sandbox.client(store: folder.store))
        // Four sessions are there, of which nobody has any.
        let before = try await pool(other, size: 4)
        try await together(before, 4)
        await before.close()
        // This client takes three of them, and keeps them: one is lent by the time that the pool is drained, and two are idle.
        let here = try await pool(one, size: 4, idleRelease: .seconds(3600))
        try await together(here, 3)
        let gate = Gate()
        let holder = Task { try await here.withLease(key: "a") { _ in await gate.pass() } }
        try await until("one is lent") { try await here.status().leased == 1 }
        #expect(try await here.status().ready == 2)
        deaf.add(1)

        let there = try await other.joinPool("shop")
        #expect(try await other.listPools().map(\.name) == ["shop"])
        try await there.drain(everywhere: true)
        #expect(try await living(sandbox) == 3, "what was nobody's is over, and what another client has lives")
        await hears.open()
        // The client hears of it when it closes the pool, or reads the pool's record, each few seconds.
        if closes {
            async let closed: Void = here.close()
            await gate.open()
            await closed
        } else {
            try await until("it lends no more") {
                do {
                    try await here.withLease { _ in }
                    return false
                } catch let error as HoplineError where error.kind == .misuse {
                    return true
                }
            }
            await gate.open()
        }
        try await holder.value
        try await until("no session lives") { try await living(sandbox) == 0 }
        for shop in [here, there] {
            try await until("it is closed") { await isClosed(shop) }
        }
        #expect(try await sandbox.charges() == 4)
        await one.close()
        await other.close()
    }

    private func isClosed(_ shop: Pool) async -> Bool {
        do {
            _ = try await shop.status()
            return false
        } catch {
            return error.kind == .misuse
        }
    }

    private func living(_ sandbox: Sandbox) async throws -> Int {
        try await sandbox.state().sessions.filter { $0.status != "terminated" }.count
    }

    /// So many leases at once.
    private func together(_ shop: Pool, _ count: Int) async throws {
        let holding = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await shop.withLease { _ in
                        holding.add(1)
                        try await until("all have a lease") { holding.total == count }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("closing does not wait for a lease that is not given back for longer than its grace")
    func leaked() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let shop = try await pool(agent)
        let (gate, granted) = (Gate(), Gate())
        let holder = Task {
            try await shop.withLease { lease in
                await granted.open()
                await gate.pass()
                return lease.isValid
            }
        }
        await granted.pass()
        await shop.close(grace: .milliseconds(100))
        await gate.open()
        #expect(try await !holder.value)
        await agent.close()
    }

    @Test("lets go of a lease's data when it is closed or drained, also of what holds the pool")
    func circle() async throws {
        final class Holder: Sendable {
            let shop: Pool
            init(_ shop: Pool) { self.shop = shop }
        }
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        for end in [{ (shop: Pool) in await shop.close() }, { (shop: Pool) in try await shop.drain() }] as [(Pool) async throws -> Void] {
            let agent = try sandbox.client()
            weak var held: Holder?
            do {
                let shop = try await pool(agent, size: 1)
                try await shop.withLease { lease in
                    let holder = Holder(shop)
                    held = holder
                    try lease.data["holder"] = holder
                }
                #expect(held != nil)
                try await end(shop)
            }
            #expect(held == nil, "nothing holds it any more")
            await agent.close()
        }
    }

    @Test("keeps data for the next client, lends no session that was discarded, and refuses the use of a lease that is over")
    func data() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        func opened<Value: Sendable>(_ use: (Pool) async throws -> Value) async throws -> Value {
            let agent = try sandbox.client(store: folder.store)
            let value = try await use(try await pool(agent, size: 2))
            await agent.close()
            return value
        }
        let first = try await opened { shop in
            let first = try await shop.withLease { lease in
                try lease.data["cookies"] = ["a": "1"] as [String: String]
                try lease.data["visits"] = 2
                try lease.data["mixed"] = [true, Int64(-7), 0.5, Float(0.25), JSON.null, ["deep"]] as [any Sendable]
                try lease.data["endless"] = [Double.infinity, Double.nan]
                try lease.data["endless too"] = Decimal.nan
                try lease.data["client"] = Gate()
                return lease
            }
            try await shop.withLease { lease in
                let data = try lease.data
                #expect(lease.sessionId == first.sessionId && data["client"] is Gate && data["visits"] as? Int == 2)
            }
            return first
        }
        for failed in [
            try await failure { try first.proxy }, try await failure { try first.data }, try await failure { try first.discard() },
        ] {
            #expect(failed.kind == .misuse && failed.effect == .none && failed.message.contains("given back"))
        }
        #expect(first.retryAt == nil)
        let stored = { (lease: Lease) in
            let data = try lease.data
            #expect(lease.sessionId == first.sessionId)
            #expect(data["cookies"] as? [String: String] == ["a": "1"] && data["visits"] as? Int == 2)
            let mixed = try #require(data["mixed"] as? [any Sendable])
            #expect(mixed.count == 6 && mixed[0] as? Bool == true && mixed[1] as? Int == -7 && mixed[4] as? JSON == .null)
            #expect(mixed[2...3].map { $0 as? Decimal } == ["0.5", "0.25"].map { Decimal(string: $0) } && mixed[5] as? [String] == ["deep"])
            #expect(data["client"] == nil && data["endless"] == nil && data["endless too"] == nil && data["long"] == nil)
        }
        try await opened { shop in
            try await shop.withLease { lease in
                try stored(lease)
                try lease.data["long"] = String(repeating: "x", count: 5000)
            }
            let long = try await shop.withLease { try $0.data["long"] as? String }
            #expect(long?.count == 5000, "what is too long stays here")
        }
        try await opened { shop in
            try await shop.withLease { lease in
                try stored(lease)
                try lease.discard()
            }
            try await until("it is over") { try await shop.status().slots.allSatisfy { $0.sessionId != first.sessionId } }
            let blocked = try await shop.withLease(target: "shop.example") { lease in
                #expect(lease.retryAt == nil)
                let advice = try lease.observe(.block)
                let again = try #require(lease.retryAt)
                #expect(advice == .giveBack && again > Date())
                return lease
            }
            let (other, again) = (blocked.sessionId, blocked.retryAt)
            #expect(try again != nil && blocked.observe(.status(200)) == .giveBack && blocked.retryAt == again, "it stays after the lease")
            #expect(other != first.sessionId)
            let another = try await shop.withLease(avoid: other) { $0.sessionId }
            #expect(another != other && another != first.sessionId)
        }
    }

    @Test("finds the data that another client has changed meanwhile")
    func changed() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let (one, other) = (try sandbox.client(store: folder.store), try sandbox.client(store: folder.store))
        let (here, there) = (try await pool(one, idleRelease: .zero), try await pool(other, idleRelease: .zero))
        try await here.withLease { lease in
            let data = try lease.data
            (data["cookie"], data["client"]) = ("old", Gate())
        }
        try await here.withLease { try $0.data["long"] = String(repeating: "x", count: 5000) }
        let found = try await there.withLease { lease in
            let data = try lease.data
            defer { data["cookie"] = "new" }
            return data["cookie"] as? String
        }
        let again = try await here.withLease { try $0.data }
        #expect(found == "old" && again["cookie"] as? String == "new" && again["client"] is Gate && again["long"] == nil)
        await one.close()
        await other.close()
    }
}
