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
        let lines = await [process.line(), process.line(), process.line()]
        #expect(lines[0] == "begun")
        let agent = try sandbox.client(store: folder.store)
        #expect(try await agent.saved().isEmpty)
        #expect(try await agent.resumeAll().isEmpty)
        let busy = try await failure { try await agent.open("job-1") }
        #expect(busy.kind == .busy)
        process.kill()
        _ = await process.wait()
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

    @Test("a record whose read fails while it is taken up is found by the next call, and sends its key again", arguments: [false, true])
    func readFails(_ inFolder: Bool) async throws {
        struct Broken: Error {}
        // The 3 records are claimed one after the other, and each claim is told at its begin and its end.
        for failing in 1...6 {
            let (wire, folder, claims) = (try Wire(asked: { connection, _ in connection.close() }), Folder(), Counter())
            let store: any Store = inFolder ? folder.store : MemoryStore()
            let first = try client(wire.url, store: store)
            var keys: [String?] = []
            for job in 1...3 { keys.append(try await failure { try await first.buy("job-\(job)") }.idempotencyKey) }
            await first.close()
            let second = try client(
                wire.url,
                store: Watched(shelf: store.open()) { call in
                    guard call == "claim" else { return }
                    claims.add(1)
                    if claims.total == failing { throw Broken() }
                })
            let error = try await failure { try await second.resumeAll() }
            #expect(error.kind == .store && error.effect == .none, "\(error.debugDescription)")
            #expect(try await second.saved().count == 3)
            for job in 1...3 {
                let again = try await failure { try await second.buy("job-\(job)") }
                #expect(again.kind == .inDoubt && again.idempotencyKey == keys[job - 1], "\(failing): \(again.debugDescription)")
            }
        }
    }

    @Test("a file that can't be read while its intent is looked for is read by the next start, which sends its key again")
    func fileFails() async throws {
        let (wire, folder, looks) = (try Wire(asked: { connection, _ in connection.close() }), Folder(), Counter())
        let first = try client(wire.url, store: folder.store)
        let doubt = try await failure { try await first.buy("job-1") }
        await first.close()
        let file = "\(folder.path)/\(try #require(doubt.record)).record"
        let shelf = try folder.store.open()
        let second = try client(
            wire.url,
            store: Watched(shelf: shelf) { call in
                guard call == "free" else { return }
                looks.add(1)
                // It was listed, and is to be read once more.
                guard looks.total == 2 else { return }
                try FileManager.default.moveItem(atPath: file, toPath: "\(file).aside")
                try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
            })
        let error = try await failure { try await second.buy("job-1") }
        #expect(error.kind == .store && error.effect == .none, "\(error.debugDescription)")
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.moveItem(atPath: "\(file).aside", toPath: file)
        let again = try await failure { try await second.buy("job-1") }
        #expect(again.kind == .inDoubt && again.idempotencyKey == doubt.idempotencyKey, "\(again.debugDescription)")
    }

    @Test("a refused record that a living client has taken up meanwhile can't be forgotten, and one that nobody has can", arguments: [false, true])
    func refused(_ inFolder: Bool) async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        let store: any Store = inFolder ? folder.store : MemoryStore()
        let first = try client(wire.url, store: store)
        let doubt = try await failure { try await first.buy("job-1") }
        let record = try #require(doubt.record)
        await first.close()
        let other = try AgentClient(apiKey: "another", baseURL: wire.url, store: store)
        #expect(try await other.resumeAll().isEmpty)
        let second = try client(wire.url, store: store)
        _ = try await failure { try await second.resume(record) }
        var events = other.events().makeAsyncIterator()
        #expect(try await !other.forget(record))
        await second.close()
        let third = try client(wire.url, store: store)
        let again = try await failure { try await third.buy("job-1") }
        #expect(again.kind == .inDoubt && again.idempotencyKey == doubt.idempotencyKey, "\(again.debugDescription)")
        await third.close()
        #expect(try await other.saved().map(\.holds) == [.refused])
        #expect(try await other.forget(record))
        #expect(try await other.saved().isEmpty)
        await other.close()
        guard case .storeFailed(record: record)? = await events.next()?.what else { throw Unmet("it can't be deleted") }
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
