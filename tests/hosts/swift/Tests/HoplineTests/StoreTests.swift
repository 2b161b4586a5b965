import Foundation
import Hopline
import Kit
import Testing

@Suite("a folder that several clients share")
struct StoreTests {
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
        _ = try await looking.value
        #expect(keys.count == 40, "each was taken up, and none bought anew")
    }

    @Test("a record of a living process is neither listed nor taken up, and free once it is killed")
    func otherProcess() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let process = try Child(program("buyer"), [folder.path, "1", "2"], environment: sandbox.environment)
        let lines = [process.line(), process.line(), process.line()]
        #expect(lines[0] == "begun")
        let agent = try sandbox.client(store: folder.store)
        #expect(try await agent.saved().isEmpty)
        #expect(try await agent.resumeAll().isEmpty)
        let busy = try await failure { try await agent.open("job-1") }
        #expect(busy.kind == .busy)
        process.kill()
        _ = process.wait()
        #expect(try await agent.saved().count == 2)
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

    @Test("a client that nobody holds any more gives its records back")
    func dropped() async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        do {
            let agent = try client(wire.url, store: folder.store)
            _ = try await failure { try await agent.buy("job-1") }
        }
        let other = try client(wire.url, store: folder.store)
        try await until("it is free") { try await other.saved().map(\.intent) == ["job-1"] }
    }
}
