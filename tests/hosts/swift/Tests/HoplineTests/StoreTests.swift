import Foundation
@testable import Hopline
import Kit
import Testing

/// A client that buys, and whose first put is under way until the gate opens.
private func buyer(_ wire: Wire, _ shelf: OwnShelf, puttingUntil gate: Gate) async throws -> (AgentClient, Task<Reply<Session>, any Error>) {
    let puts = Counter()
    let store = Watched(OwnStore(shelf)) { call in
        guard call == "put" else { return }
        puts.add(1)
        await gate.pass()
    }
    let agent = try client(wire.url, store: store)
    let buying = Task { try await agent.buy("job-1") }
    try await until("a put is under way") { puts.total == 1 }
    return (agent, buying)
}

@Suite("what every store must do")
struct StoreSuiteTests {
    static let cases = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../store").standardized

    private func run(_ name: String, leavesOut: Int, _ subject: (CaseClock) -> StoreSubject) async throws {
        let (count, leftOut, failures) = try await StoreSuite.run(Self.cases, subject)
        print("store suite, \(name): \(count) cases, \(leftOut) left out, \(failures.count) failed")
        #expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
        #expect(leftOut == leavesOut)
    }

    @Test("is done by a folder")
    func folder() async throws {
        try await run("folder", leavesOut: try needing(["dies", "leases"])) { clock in
            let folder = Folder()
            let damage = { (name: String, how: String) in
                let files = FileManager.default.enumerator(at: URL(fileURLWithPath: "\(folder.path)/names"), includingPropertiesForKeys: nil)
                let file = try #require(files?.compactMap { $0 as? URL }.first { $0.lastPathComponent == name })
                let data = try Data(contentsOf: file)
                let damaged = ["cut": data.prefix(data.count / 2), "empty": Data(), "garbage": Data(repeating: 0xee, count: data.count)]
                try #require(damaged[how]).write(to: file)
            }
            return StoreSubject(open: { try FolderStore(folder.path) { clock.now } }, damage: damage)
        }
    }

    @Test("is done by a store of one's own, and noticed where it is not")
    func own() async throws {
        try await run("own", leavesOut: try needing(["dies", "leases", "damage"])) { clock in
            let shelf = OwnShelf(clock)
            return StoreSubject(open: { OwnStore(shelf) })
        }
        // Each client has a shelf of its own here, so that nobody finds anything busy.
        let broken = try await StoreSuite.run(Self.cases) { clock in StoreSubject(open: { OwnStore(OwnShelf(clock)) }) }
        #expect(!broken.failures.isEmpty)
    }

    /// How many cases need something of that.
    private func needing(_ needs: Set<String>) throws -> Int {
        let files = try FileManager.default.contentsOfDirectory(at: Self.cases, includingPropertiesForKeys: nil).filter { $0.pathExtension == "json" }
        return try files.reduce(0) { sum, file in
            let cases = try JSONDecoder().decode(JSON.self, from: Data(contentsOf: file))["cases"]?.array ?? []
            return sum + cases.filter { !needs.isDisjoint(with: ($0["needs"]?.array ?? []).compactMap(\.string)) }.count
        }
    }
}

@Suite("a store that several clients share")
struct StoreTests {
    @Test("a folder that nobody holds any more has let go of its names at once, though a thread of its last call still has it")
    func droppedFolder() async throws {
        let (folder, name) = (Folder(), "5e.i00000000000000000000000000000001")
        var first: FolderStore? = try folder.store
        let held = first?.folder
        guard case .claimed = try await first?.claim([name], most: 1) else { throw Unmet("it is free") }
        first = nil
        guard case .claimed = try await folder.store.claim([name], most: 1) else { throw Unmet("it is free again") }
        withExtendedLifetime(held) {}
    }

    @Test("an intent in doubt is found while others look at the folder")
    func lookers() async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        let looking = Task {
            let looker = try client(wire.url, store: folder.store)
            while !Task.isCancelled { _ = try await looker.saved() }
        }
        var keys: Set<String> = []
        for job in 0..<40 {
            for _ in 0..<2 {
                let agent = try client(wire.url, store: folder.store)
                let error = try await failure { try await agent.buy("job-\(job)") }
                #expect(error.kind == .inDoubt, "\(error.debugDescription)")
                keys.insert(error.idempotencyKey ?? "")
                await agent.close()
            }
        }
        looking.cancel()
        // Its last look may have been cancelled.
        _ = await looking.result
        #expect(keys.count == 40, "each was taken up, and none bought anew")
    }

    @Test("what a living process holds is its own, and free once it is killed")
    func otherProcess() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let process = try Child(program("buyer"), [folder.path, "1", "2"], environment: sandbox.environment)
        let lines = await [process.line(), process.line(), process.line()]
        #expect(lines[0] == "begun")
        let agent = try sandbox.client(store: folder.store)
        let saved = try await agent.saved()
        #expect(saved.map(\.whose) == [.other, .other] && Set(saved.compactMap(\.sessionId)) == Set(lines.dropFirst()), "\(saved)")
        #expect(try await agent.resumeAll().isEmpty)
        // The resumed operation may have been done.
        for (error, effect) in [
            (try await failure { try await agent.open("job-1") }, HoplineError.Effect.none),
            (try await failure { try await agent.forget(saved[0].record) }, .none),
            (try await failure { try await agent.resume(saved[0].record) }, .unknown),
        ] {
            #expect(error.kind == .busy && error.effect == effect, "\(error.debugDescription)")
        }
        process.kill()
        _ = await process.wait()
        #expect(try await agent.saved().map(\.whose) == [.free, .free])
        #expect(try await lines.contains(agent.open("job-1").sessionId))
        #expect(try await sandbox.charges() == 2)
    }

    @Test("a folder that is taken away and made anew is locked anew")
    func madeAnew() async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        for _ in 0..<2 {
            let agent = try client(wire.url, store: folder.store)
            _ = try await failure { try await agent.buy("job-1") }
            #expect(try folder.records.count == 1)
            await agent.close()
            try FileManager.default.removeItem(atPath: folder.path)
        }
    }

    @Test("a folder of the user's own is made where the system keeps such, for nobody else")
    func applicationSupport() async throws {
        let name = "hopline-\(UUID().uuidString)"
        let above = try FileManager.default.url(for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
        let folder = above.appendingPathComponent(name).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let wire = try Wire(asked: { connection, _ in connection.close() })
        for _ in 0..<2 {
            let agent = try client(wire.url, store: FolderStore.applicationSupport(name))
            _ = try await failure { try await agent.buy("job-1") }
            #expect(try await agent.saved().map(\.intent) == ["job-1"])
            await agent.close()
        }
        #expect(try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int == 0o700)
    }

    @Test("what the store said of one call is not said of failures that have nothing to do with it")
    func said() async throws {
        struct Full: Error {}
        let (wire, fails) = (try Wire(asked: { connection, _ in connection.close() }), Counter())
        fails.add(1)
        let agent = try client(wire.url, store: Watched(OwnStore(OwnShelf())) { if $0 == "put" && fails.total > 0 { throw Full() } })
        let first = try await failure { try await agent.buy("job-1") }
        #expect(first.kind == .store && first.effect == .none && first.notes == ["the store said: Full"], "\(first.debugDescription)")
        fails.add(-1)
        for error in [try await failure { try await agent.buy("job-2") }, try await failure { try await agent.getBalance() }] {
            #expect(error.kind != .store && !error.notes.contains { $0.contains("store") }, "\(error.debugDescription)")
        }
    }

    @Test("whatever call of the store fails, before or after it was done, what was sent once is sent with the same key", arguments: [false, true])
    func fails(_ inFolder: Bool) async throws {
        // Each call passes twice, and a purchase that ends in doubt has a claim, puts and a release.
        var (moment, sent) = (1, 0)
        while true {
            let (wire, folder, shelf, passed) = (try Wire(asked: { connection, _ in connection.close() }), Folder(), OwnShelf(), Counter())
            let store = { () throws -> any Store in inFolder ? try folder.store : OwnStore(shelf) }
            let failing = moment
            let watched = Watched(try store()) { _ in
                passed.add(1)
                if passed.total == failing { throw StoreFailure("the disk is full") }
            }
            let first = try client(wire.url, store: watched)
            let error = try await failure { try await first.buy("job-1") }
            await first.close()
            let isSent = !wire.seen.isEmpty
            // Before the name was claimed nobody knows what an earlier call has done.
            #expect(error.effect == (isSent || failing <= 2 ? .unknown : .none), "\(failing): \(error.debugDescription)")
            if error.kind == .store { #expect(error.notes == ["the store said: the disk is full"], "\(failing): \(error.debugDescription)") }
            let again = try await failure { try await client(wire.url, store: store()).buy("job-1") }
            #expect(again.kind == .inDoubt, "\(failing): \(again.debugDescription)")
            if isSent {
                sent += 1
                let keys = Set(wire.seen.compactMap { $0.lowercased().components(separatedBy: "idempotency-key: ").dropFirst().first?.prefix { $0 != "\r" } })
                #expect(keys.count == 1, "\(failing): \(keys)")
            }
            if passed.total < failing { break }
            moment += 1
        }
        #expect(moment >= 7 && sent >= 1, "\(moment), \(sent)")
    }

    @Test("a client that nobody holds any more lets go of everything")
    func dropped() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        do {
            let agent = try sandbox.client(store: OwnStore(shelf))
            try await agent.open("job-1")
            #expect(shelf.owned.count == 1)
        }
        try await until("it is free") { shelf.owned.isEmpty }
        #expect(try await sandbox.client(store: OwnStore(shelf)).open("job-1").phase == .ready)
        #expect(try await sandbox.charges() == 1)
    }

    @Test("a client whose store hangs is closed in time, and says of what was under way that it may be so")
    func hanging() async throws {
        let (wire, shelf, gate) = (try Wire(), OwnShelf(), Gate())
        let (agent, buying) = try await buyer(wire, shelf, puttingUntil: gate)
        await agent.close(timeout: .milliseconds(200))
        let error = try await failure { try await buying.value }
        #expect(error.kind == .store || error.kind == .cancelled, "\(error.debugDescription)")
        #expect(wire.seen.isEmpty)
        try await until("it is free") { shelf.owned.isEmpty }
        await gate.open()
    }

    @Test("a call waits for its store for as long as it may, and no other call comes before the one that is late", arguments: [true, false])
    func late(recovers: Bool) async throws {
        let (wire, shelf, gate, put, deleted) = (try Wire(), OwnShelf(), Gate(), Counter(), Counter())
        let store = Watched(OwnStore(shelf), atEnds: false) {
            if $0 == "put" {
                put.add(1)
                await gate.pass()
            }
            if $0 == "delete" { deleted.add(1) }
        }
        let agent = try Patience.$longest.withValue(recovers ? .seconds(10) : .milliseconds(200)) { try client(wire.url, store: store) }
        let buying = Task { try await failure { try await agent.buy() } }
        if recovers {
            // Between the end of the put's time and that of the deletion.
            try await until("the put is asked for") { put.total > 0 }
            try await Task.sleep(for: .seconds(15))
            #expect(deleted.total == 0, "the deletion waits for what it deletes")
            await gate.open()
        }
        let error = try await buying.value
        #expect(error.kind == .store && error.effect == (recovers ? .none : .unknown), "\(error.debugDescription)")
        #expect(deleted.total == (recovers ? 1 : 0))
        await gate.open()
        try await until("the late record is there") { (try? await agent.saved().count) == (recovers ? 0 : 1) }
        #expect(wire.seen.isEmpty)
        await agent.close()
    }

    @Test("a host that is never called again after a command owns nothing that is not held")
    func owned() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        let agent = try sandbox.client(store: OwnStore(shelf), options: ClientOptions(attempts: 1))
        func check(_ command: String, holds: Int, _ work: () async throws -> Void) async throws {
            do { try await work() } catch let error as HoplineError { #expect(error.kind != .misuse, "\(command): \(error.debugDescription)") }
            try await until("after \(command) \(holds) names are owned: \(shelf.owned)") { shelf.owned.count == holds }
        }
        try await check("a read", holds: 0) { _ = try await agent.getBalance() }
        try await check("a purchase without an intent", holds: 0) { try await agent.buy() }
        try await check("a purchase", holds: 0) { try await agent.buy("job-1") }
        try await check("a refusal", holds: 0) { try await agent.createSession(sessionType: .dynamic, productNo: "none", intent: "job-2") }
        try await sandbox.fault("create_session", ["kind": "drop_after"])
        try await check("a doubt", holds: 0) { try await agent.buy("job-3") }
        try await sandbox.fault("create_session", ["kind": "drop_before"])
        try await check("a doubt without an intent", holds: 0) { try await agent.buy() }
        try await sandbox.fault("create_session", ["kind": "delay", "ms": 600_000])
        let cancelled = Task { try await agent.buy("job-4") }
        try await until("it is sent") { try await sandbox.charges() == 4 }
        cancelled.cancel()
        try await check("a cancelled purchase", holds: 0) { _ = try await cancelled.value }
        try await check("a list", holds: 0) {
            let doubts = try await agent.saved().filter { $0.holds == .inDoubt }
            #expect(doubts.count == 3)
        }
        let open = try await agent.open("job-5")
        try await check("an open session", holds: 1) {}
        try await check("a rotation", holds: 1) { try await open.rotate() }
        try await check("a resumed session", holds: 1) { _ = try await agent.resume(intent: "job-5") }
        try await check("a session that is released", holds: 0) {
            let wasFollowed = try open.release()
            #expect(wasFollowed)
        }
        try await check("a session that is resumed again", holds: 1) { _ = try await agent.resume(intent: "job-5") }
        try await check("its end", holds: 0) { try await open.terminate() }
        try await check("nothing that is resumed", holds: 0) {
            let nothing = try await agent.resume(intent: "job-6")
            #expect(nothing == nil)
        }
        let doubts = try await agent.saved().filter { $0.holds == .inDoubt }
        try await check("a doubt that is settled", holds: 0) { try await agent.settle(doubts[0].record, happened: true) }
        try await check("a doubt that can't be settled so soon", holds: 0) { try await agent.settle(doubts[1].record, happened: false) }
        let done = try #require(try await agent.saved().first { $0.holds == .accepted })
        try await check("a record that is forgotten", holds: 0) {
            let wasForgotten = try await agent.forget(done.record)
            #expect(wasForgotten)
        }
        try await check("records that are resumed", holds: 0) { _ = try await agent.resumeAll() }
        await agent.close()
        #expect(shelf.owned.isEmpty)
    }

    @Test("a reseller's client owns nothing after a command, either")
    func ownedByReseller() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        let reseller = try sandbox.reseller(store: OwnStore(shelf))
        let user = try await reseller.funded()
        try await reseller.place(user, intent: "order-1")
        try await until("an order is not held") { shelf.owned.isEmpty }
        try await sandbox.fault("create_static_order", ["kind": "drop_after"])
        let record = try #require(try await failure { try await reseller.place(user, intent: "order-2") }.record)
        try await until("a doubt is not held") { shelf.owned.isEmpty }
        let found = try await reseller.reconcile(record)
        try await until("what was looked up is not held") { shelf.owned.isEmpty }
        let number = try #require(found.candidates.first { $0.record == nil }).item.decode(Listed.self).order_no
        #expect(try await reseller.settle(record, happened: true, became: number))
        try await until("what was settled is not held") { shelf.owned.isEmpty }
        #expect(try await reseller.place(user, intent: "order-2").orderNo == number)
        try await until("the order is not held") { shelf.owned.isEmpty }
    }
}

/// iOS ends an app that is suspended while it has a file lock in an App Group container.
@Suite("an app that is suspended")
struct SuspensionTests {
    @Test("lets go of everything, and takes its sessions back when it wakes", arguments: [false, true])
    func held(_ inFolder: Bool) async throws {
        let (sandbox, folder, shelf) = (try await Sandbox("--provisioning-ms", "0"), Folder(), OwnShelf())
        let store = { () throws -> any Store in inFolder ? try folder.store : OwnStore(shelf) }
        let (app, other) = (try sandbox.client(store: store()), try sandbox.client(store: store()))
        let open = try await app.open("job-1")
        let second = try await app.open("job-2")
        try await app.suspend()
        #expect(try await other.saved().map(\.whose) == [.free, .free])
        #expect(try await other.open("job-2").sessionId == second.sessionId)
        // A call meanwhile waits until the app is back, unless it is cancelled: what its intent stands for is not known then.
        let buying = Task { try await app.buy("job-3") }
        let reading = Task { try await app.getBalance() }
        let cancelled = Task { try await app.buy("job-4") }
        try await until("all three wait") { app.driver.lock.withLock { app.driver.waiting.count } == 3 }
        cancelled.cancel()
        let error = try await failure { try await cancelled.value }
        #expect(error.kind == .cancelled && error.effect == .unknown, "\(error.debugDescription)")
        #expect(try await sandbox.charges() == 2)
        await app.wake()
        _ = try await (buying.value, reading.value)
        try await until("the session that nobody took is had again") {
            try await other.saved().filter { $0.whose == .other }.map(\.sessionId) == [open.sessionId]
        }
        #expect(try await app.observe(sessionId: second.sessionId, seen: .captcha) == nil, "the other is another client's")
        #expect(try await app.observe(sessionId: open.sessionId, seen: .status(200)) == .keep)
        #expect(try await failure { try await app.open("job-2") }.kind == .busy)
        #expect(try await sandbox.charges() == 3)
    }

    @Test("ends what is under way, and its intent goes on with the same purchase")
    func underWay() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        try await sandbox.fault("create_session", ["kind": "delay", "ms": 1000])
        let agent = try sandbox.client(store: OwnStore(shelf))
        let buying = Task { try await agent.buy("job-1") }
        try await until("it is sent") { try await sandbox.charges() == 1 }
        try await agent.suspend()
        #expect(shelf.owned.isEmpty)
        let error = try await failure { try await buying.value }
        #expect(error.kind == .busy && error.effect == .done && error.sessionId != nil, "\(error.debugDescription)")
        #expect(shelf.owned.isEmpty, "nothing is asked of the store")
        await agent.wake()
        #expect(try await agent.buy("job-1").sessionId == error.sessionId)
        #expect(try await sandbox.charges() == 1)
    }

    @Test("sends nothing more once its names are let go of, though the store has not answered yet")
    func notSent() async throws {
        let wire = try Wire(asked: { connection, _ in connection.close() })
        let (shelf, asked, ended, headers, gate) = (OwnShelf(), Counter(), Counter(), Gate(), Gate())
        let store = Watched(OwnStore(shelf)) { if $0 == "release" && shelf.owned.isEmpty { await gate.pass() } }
        let options = ClientOptions(headers: {
            asked.add(1)
            await headers.pass()
            return [:]
        })
        let agent = try AgentClient(apiKey: "canary-key", baseURL: wire.url, store: store, transport: network, options: options)
        let buying = Task {
            defer { ended.add(1) }
            try await agent.buy("job-1")
        }
        try await until("its headers are asked for") { asked.total == 1 }
        let suspending = Task { try await agent.suspend(timeout: .seconds(120)) }
        try await until("its names are free") { shelf.owned.isEmpty }
        await headers.open()
        try await until("it has ended, or was sent") { ended.total == 1 || !wire.seen.isEmpty }
        #expect(wire.seen.isEmpty)
        await gate.open()
        try await suspending.value
        let error = try await failure { try await buying.value }
        #expect(error.kind == .busy && error.effect == .none, "\(error.debugDescription)")
    }

    @Test("stays suspended where it is suspended again before it has woken")
    func again() async throws {
        let (sandbox, shelf, gate) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf(), Gate())
        let agent = try sandbox.client(store: Watched(OwnStore(shelf)) { if $0 == "release" { await gate.pass() } })
        try await agent.open("job-1")
        let first = Task { try await agent.suspend(timeout: .seconds(120)) }
        try await until("it is to be suspended") { agent.driver.turns == 1 }
        let waking = Task { await agent.wake() }
        try await until("it is to wake") { agent.driver.turns == 2 }
        let second = Task { try await agent.suspend(timeout: .seconds(120)) }
        try await until("it is to be suspended again") { agent.driver.turns == 3 }
        await gate.open()
        _ = try await (first.value, second.value, waking.value)
        #expect(agent.driver.isSuspended && shelf.owned.isEmpty)
        await agent.wake()
        try await until("its session is had again") { shelf.owned.count == 1 }
    }

    @Test("lets go in time though the store does not answer a call, says that it may not have all, and wakes")
    func hangs() async throws {
        let wire = try Wire(asked: { connection, _ in connection.close() })
        let (shelf, gate) = (OwnShelf(), Gate())
        let (agent, buying) = try await buyer(wire, shelf, puttingUntil: gate)
        let error = try await failure { try await agent.suspend(timeout: .milliseconds(400)) }
        #expect(error.kind == .store && error.message.contains("did not answer in time"), "\(error.debugDescription)")
        try await until("its names are free") { shelf.owned.isEmpty }
        await agent.wake()
        // Its answer to this one comes from the network.
        #expect(try await failure { try await agent.getBalance() }.kind == .unavailable)
        await gate.open()
        #expect(try await failure { try await buying.value }.kind == .busy)
        #expect(try await failure { try await agent.buy("job-1") }.kind == .inDoubt)
    }

    @Test("wakes though the store has not answered whether it let go, and sends nothing as long as it has not")
    func hangsInRelease() async throws {
        let (wire, gate) = (try Wire(asked: { connection, _ in connection.close() }), Gate())
        let agent = try client(wire.url, store: Watched(OwnStore(OwnShelf())) { if $0 == "release" { await gate.pass() } })
        let error = try await failure { try await agent.suspend(timeout: .milliseconds(400)) }
        #expect(error.kind == .store && error.message.contains("did not answer in time"), "\(error.debugDescription)")
        await agent.wake()
        let unsent = try await failure { try await agent.buy("job-1") }
        #expect(unsent.effect == .none && unsent.notes == ["the store did not vouch for its claims"], "\(unsent.debugDescription)")
        #expect(wire.seen.isEmpty)
        await gate.open()
        try await until("the store has answered") { agent.driver.releases == 0 }
        #expect(try await failure { try await agent.buy("job-1") }.kind == .inDoubt)
    }

    @Test("says so where the store can't let go")
    func fails() async throws {
        let store = Watched(OwnStore(OwnShelf())) { if $0 == "release" { throw StoreFailure("the disk is gone") } }
        let agent = try client("https://api.example/v1", store: store)
        let error = try await failure { try await agent.suspend() }
        #expect(error.kind == .store && error.message.contains("the disk is gone"), "\(error.debugDescription)")
        await agent.wake()
        await agent.close()
        #expect(try await failure { try await agent.suspend() }.kind == .misuse)
    }
}

@Suite("a store that can't be opened")
struct UnopenedTests {
    @Test("keeps a purchase from being sent, which had no effect unless its intent may stand for another one")
    func unopened() async throws {
        let store = Watched(OwnStore(OwnShelf())) { _ in throw StoreFailure("no such folder", isNotOpened: true) }
        let agent = try client("https://api.example/v1", store: store, transport: Sending { _ in throw Unmet("nothing is sent") })
        let unnamed = try await failure { try await agent.buy() }
        #expect(unnamed.kind == .store && unnamed.effect == .none && unnamed.advice == .mendStore, "\(unnamed.debugDescription)")
        let named = try await failure { try await agent.buy("job-17") }
        #expect(named.kind == .store && named.effect == .unknown && named.advice == .resume, "\(named.debugDescription)")
        #expect(unnamed.notes == ["the store said: no such folder"] && unnamed.attempts == 0, "\(unnamed.notes)")
        await agent.close()
    }
}
