import Foundation
import Hopline
import Kit
import Testing

/// Real processes that are killed in the middle of a purchase: one charge, whatever the moment.
@Suite("a process that is killed", .serialized)
struct CrashTests {
    private func start(_ sandbox: Sandbox, _ folder: Folder, _ arguments: Int...) throws -> Child {
        try Child(program("buyer"), [folder.path] + arguments.map(String.init), environment: sandbox.environment)
    }

    @Test("buys once when it is started again, at whatever point it was killed")
    func everyPoint() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        var point = 0
        while true {
            let folder = Folder()
            let killed = try start(sandbox, folder, point, 1, point)
            let said = await killed.text()
            let ended = await killed.wait()
            if ended == 0 { break }
            #expect(ended == -9, "point \(point)")
            let again = try start(sandbox, folder, point, 1)
            let bought = await again.text()
            #expect(await again.wait() == 0, "point \(point)")
            #expect(Set((said + bought).split(separator: "\n")).count == 1, "point \(point): \(said)\(bought)")
            point += 1
            #expect(try await sandbox.charges() == point, "point \(point)")
        }
        #expect(point >= 8, "a purchase has a claim, a put, a send, more puts and a read")
        let state = try await sandbox.state()
        #expect(state.charges.count == point + 1 && state.sessions.count == point + 1)
    }

    @Test("places one order when it is started again, at whatever point it was killed")
    func everyPointOfAnOrder() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--balance", "100000")
        let user = try await sandbox.reseller().funded(with: 1000)
        func start(_ folder: Folder, _ point: Int?) throws -> Child {
            try Child(program("buyer"), [folder.path, "order", "\(user)"] + (point.map { ["\($0)"] } ?? []), environment: sandbox.environment)
        }
        var (point, doubts) = (0, 0)
        while true {
            let folder = Folder()
            defer { try? FileManager.default.removeItem(atPath: "\(folder.path).before") }
            let killed = try start(folder, point)
            _ = await killed.text()
            let ended = await killed.wait()
            if ended == 0 { break }
            #expect(ended == -9, "point \(point)")
            let again = try start(folder, nil)
            let said = await again.text().split(separator: "\n").last.map { $0.split(separator: " ") } ?? []
            #expect(await again.wait() == 0 && said.count == 2, "point \(point)")
            if said.last == "settled" { doubts += 1 }
            point += 1
            let purchases = try await sandbox.purchases()
            #expect(purchases.count == point && purchases.last == said.first.map(String.init), "point \(point)")
        }
        #expect(point >= 8 && doubts >= 1, "an order has puts, a login, a send and reads: \(point), \(doubts)")
        #expect(try await sandbox.purchases().count == point + 1)
    }

    @Test("shares its folder with three others, each killed and started again, and every job is bought once")
    func four() async throws {
        let each = 25
        let sandbox = try await Sandbox(
            "--provisioning-ms", "100-600", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000")
        let folder = Folder()
        try await sandbox.fault("create_session", times: 10, ["kind": "drop_after"])
        var processes = try (0..<4).map { try start(sandbox, folder, $0 * each, each) }
        for place in processes.indices {
            #expect(await processes[place].line() == "begun")
            try await until("some jobs are bought, and others are not") { try await sandbox.charges() >= 10 * (place + 1) }
            processes[place].kill()
            _ = await processes[place].wait()
            processes[place] = try start(sandbox, folder, place * each, each)
            try await sandbox.fault(nil, times: 5, ["kind": "drop_after"])
        }
        var came: Set<String> = []
        for process in processes {
            for _ in 0...each { await came.insert(process.line()) }
        }
        for process in processes {
            process.finish()
            #expect(await process.wait() == 0)
        }
        let state = try await sandbox.state()
        #expect(state.charges.count == 4 * each && state.sessions.count == 4 * each)
        #expect(came.subtracting(["begun", "busy"]).isSubset(of: state.sessions.map(\.session_id)))
        let agent = try sandbox.client(store: folder.store)
        let saved = try await agent.saved()
        #expect(saved.count == 4 * each && Set(saved.compactMap(\.intent)).count == 4 * each)
        #expect(Set(saved.map(\.holds)) == [.session])
    }

    @Test("leaves a purchase without an intent to whoever resumes all")
    func withoutIntent() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        try await sandbox.fault("create_session", ["kind": "drop_after"])
        let first = try sandbox.client(store: folder.store, options: ClientOptions(attempts: 1))
        let error = try await failure { try await first.open() }
        #expect(error.kind == .inDoubt && error.record != nil)
        await first.close()
        let second = try sandbox.client(store: folder.store)
        #expect(try await second.saved().map(\.record) == [error.record], "it is listed before it is taken up")
        let results = try await second.resumeAll()
        guard results.count == 1, case .success(.session(let open)) = results[0] else { throw Unmet("one session: \(results)") }
        #expect(open.phase == .ready)
        #expect(try open.release())
        try await until("it is let go of") { try await second.saved().allSatisfy { $0.whose != .mine } }
        #expect(try await second.forget(second.saved()[0].record))
        #expect(try folder.records.isEmpty)
        #expect(try await sandbox.charges() == 1)
    }
}
