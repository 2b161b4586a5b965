import Foundation
@testable import Hopline
import HoplineCore
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
            await agent.close()
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.filter { $0.hasSuffix(".record") }.count == 1)
        #expect(try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int == 0o700)
    }

    @Test("what the store said of one record is not said of failures that have nothing to do with it")
    func said() async throws {
        struct Full: Error {}
        let (wire, fails) = (try Wire(asked: { connection, _ in connection.close() }), Counter())
        fails.add(1)
        let agent = try client(wire.url, store: Watched(shelf: MemoryStore().open()) { if $0 == "save" && fails.total > 0 { throw Full() } })
        let first = try await failure { try await agent.buy("job-1") }
        #expect(first.kind == .store && first.effect == .none && first.notes == ["the store said: Full"], "\(first.debugDescription)")
        fails.add(-1)
        for error in [try await failure { try await agent.buy("job-2") }, try await failure { try await agent.getBalance() }] {
            #expect(error.kind != .store && !error.notes.contains { $0.contains("store") }, "\(error.debugDescription)")
        }
    }

    /// A core whose lists can't be read.
    final class Unreadable: HoplineCore.Client, @unchecked Sendable {
        override func savedList() -> String { #"[{"record":"r","holds":"something_new"}]"# }
        override func restore(records: [HoplineCore.Record], sameAccount: Bool) -> String { "{}" }
    }

    @Test("a list that can't be read is an error, and not an empty one")
    func unreadable() async throws {
        let shelf = try MemoryStore().open()
        let make = { @Sendable () throws -> HoplineCore.Client in
            try Unreadable(options: #"{"base_url":"https://api.example/v1","api_key":"key"}"#, entropy: Data(count: 16))
        }
        let records = try Records(make(), shelf, sameAccount: false, capped: false, reader: make)
        try shelf.keep("r", Data())
        shelf.release("r")
        for result in [await records.free("saved").map { _ in }, await records.adopt("resume") { _ in true }.map { .failure($0) } ?? .success(())] {
            guard case .failure(let error) = result else { throw Unmet("the list can't be read") }
            #expect(error.kind == .misuse && error.message.contains("can't be read"), "\(error.debugDescription)")
        }
    }
}
