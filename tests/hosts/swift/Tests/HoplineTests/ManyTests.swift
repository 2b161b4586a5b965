import Foundation
import Hopline
import Kit
import Testing

@Suite("many at once")
struct ManyTests {
    @Test("two hundred sessions of one client end as they should, though answers are lost")
    func many() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "100-600", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000"), Folder())
        // One in twenty of each kind of answer.
        for (operation, times) in ["create_session": 10, "get_session": 20, "terminate_session": 10] {
            try await sandbox.fault(operation, times: times, ["kind": "drop_after"])
        }
        let agent = try sandbox.client(store: folder.store, options: ClientOptions(window: .seconds(300), timeout: .seconds(120)))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for job in 0..<200 {
                group.addTask {
                    let open = try await agent.open("job-\(job)", credentials: true)
                    guard open.phase == .ready, open.proxy?.password != nil else { throw Unmet("job \(job) is usable") }
                    try await open.terminate()
                }
            }
            try await group.waitForAll()
        }
        await agent.close()
        let state = try await sandbox.state()
        #expect(state.charges.count == 200 && state.sessions.count == 200)
        #expect(Set(state.sessions.map(\.status)) == ["terminated"])
    }

    @Test("two thousand sessions are followed at once by one client")
    func thousands() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "500", "--session-limit", "5000", "--rate-limit", "1000000", "--balance", "1000000")
        let agent = try sandbox.client(options: ClientOptions(window: .seconds(300), timeout: .seconds(120)))
        let ready = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for job in 0..<2000 {
                group.addTask { if try await agent.open("job-\(job)").phase == .ready { ready.add(1) } }
            }
            try await group.waitForAll()
        }
        #expect(ready.total == 2000)
        #expect(try await sandbox.charges() == 2000)
    }

    @Test("an intent that is started eight times at once buys once, and is the same later")
    func oneIntent() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        try await sandbox.fault("create_session", ["kind": "delay", "ms": 300])
        let agent = try sandbox.client()
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 { group.addTask { try await agent.open("job-1").sessionId } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await ids.contains(agent.open("job-1").sessionId), "and again after that")
        let error = try await failure { try await agent.openSession(sessionType: .static, productNo: "static-us", intent: "job-1") }
        #expect(error.kind == .invalid && error.message.contains("another request"))
        #expect(try await sandbox.charges() == 1)
    }

    @Test("an intent that another living client of the store holds is refused with its session, and free after it")
    func twoClients() async throws {
        let (sandbox, folder, shelf) = (try await Sandbox("--provisioning-ms", "0"), Folder(), OwnShelf())
        let stores: [(String, () throws -> any Store)] = [("own", { OwnStore(shelf) }), ("folder", { try folder.store })]
        for (name, store) in stores {
            let (first, second) = (try sandbox.client(store: store()), try sandbox.client(store: store()))
            let bought = try await first.open(name)
            #expect(try await second.saved().map(\.whose) == [.other])
            #expect(try await first.saved().map(\.whose) == [.mine])
            let error = try await failure { try await second.open(name) }
            #expect(error.kind == .busy && error.effect == .none && error.intent == name && error.sessionId == bought.sessionId, "\(error.debugDescription)")
            #expect(try await second.waitSession(sessionId: bought.sessionId).phase == .ready, "it may be watched")
            await first.close()
            #expect(try await second.saved().map(\.whose) == [.free])
            #expect(try await second.open(name).sessionId == bought.sessionId)
            await second.close()
        }
        #expect(try await sandbox.charges() == 2)
    }

    @Test("an intent that is waited for is had as soon as its session is released")
    func waited() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let (first, second) = (try sandbox.client(store: folder.store), try sandbox.client(store: folder.store))
        let bought = try await first.open("job-1")
        let waiting = Task {
            try await second.openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-1", waitForIntent: true)
        }
        let refused = try await failure { try await second.open("job-1") }
        #expect(refused.kind == .busy)
        #expect(try bought.release() && !bought.release())
        #expect(try await waiting.value.sessionId == bought.sessionId)
        let other = try await failure { try await first.open("job-1") }
        #expect(other.kind == .busy)
        #expect(try await sandbox.charges() == 1)
    }

    @Test("an intent that was refused or forgotten is free for others at once")
    func released() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let (first, second) = (try sandbox.client(store: folder.store), try sandbox.client(store: folder.store))
        let refused = try await failure { try await first.openSession(sessionType: .dynamic, productNo: "no-such", intent: "job-1") }
        #expect(refused.kind == .refused && !refused.isRefusedByUs && refused.code == "PRODUCT_NOT_FOUND")
        try await until("it is free") { (try? await second.open("job-1")) != nil }
        let open = try await first.open("job-2")
        let record = { try await first.saved().first { $0.sessionId == open.sessionId }?.record }
        let held = try #require(try await record())
        let kept = try await failure { try await first.forget(held) }
        #expect(kept.kind == .refused && kept.isRefusedByUs && kept.sessionId == open.sessionId, "\(kept.debugDescription)")
        #expect(try open.release())
        // A released record is put once more, which changes it.
        try await until("it is let go of") { try await first.saved().allSatisfy { $0.whose != .mine } }
        let free = try #require(try await record())
        #expect(try await first.forget(free))
        try await until("it is free") { (try? await second.open("job-2")) != nil }
        #expect(try await sandbox.charges() == 3)
    }
}
