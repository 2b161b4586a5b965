import Foundation
import Hopline
import Kit
import Testing

@Suite("misuse and bad input")
struct MisuseTests {
    @Test("what can't be sent is refused by its name, and nothing is sent or kept")
    func parameters() async throws {
        let wire = try Wire()
        let agent = try client(wire.url)
        let errors: [(String, HoplineError)] = [
            ("quantity", try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "p", quantity: 0) }),
            ("quantity", try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "p", quantity: .nan) }),
            ("duration", try await failure { try await agent.renewSession(sessionId: "s", duration: 0) }),
            ("sessionId", try await failure { try await agent.getSession(sessionId: "") }),
            ("limit", try await failure { try await agent.listProducts(limit: 101) }),
            ("intent", try await failure { try await agent.buy("") }),
            ("intent", try await failure { try await agent.buy(String(repeating: "x", count: 257)) }),
            ("attempts", try await failure { try await agent.buy(options: CallOptions(attempts: 0)) }),
            ("idempotencyKey", try await failure { try await agent.buy(options: CallOptions(idempotencyKey: "a b")) }),
            ("headers", try await failure { try await agent.getBalance(options: CallOptions(headers: ["x-api-key": "canary"])) }),
            ("headers", try await failure { try await agent.getBalance(options: CallOptions(headers: ["x": "a\r\nb: canary"])) }),
        ]
        for (field, error) in errors {
            #expect(error.kind == .invalid && error.effect == .none && error.field == field, "\(field): \(error.debugDescription)")
            #expect(!error.debugDescription.contains("canary"))
        }
        #expect(wire.seen.isEmpty)
        #expect(try await agent.saved().isEmpty)
    }

    @Test("an error begins with the method that was called, and names options as they are spelled here")
    func spelling() async throws {
        let agent = try client("https://api.example/v1")
        let error = try await failure { try await agent.openSession(sessionType: .dynamic, productNo: "p", intent: "b", ifEnded: .buy) }
        #expect(error.message.hasPrefix("openSession `b`: `ifEnded` can be `buy` only in a client with `dailyCapUsd`"), "\(error)")
        #expect(error.operation == "create_session" && error.field == "ifEnded")
    }

    @Test("a client that can't be is refused, and does not repeat its key", arguments: ["nowhere", "http://api.example/v1", "ftp://api.example", ""])
    func clients(_ address: String) async throws {
        let error = try await failure { try AgentClient(apiKey: "canary-key", baseURL: address) }
        #expect(error.kind == .invalid && error.field == "baseURL" && error.effect == .none)
        #expect(!"\(error) \(error.debugDescription)".contains("canary"))
        let option = try await failure { try AgentClient(apiKey: "canary-key", baseURL: "https://api.example/v1", options: ClientOptions(maxBody: -1)) }
        #expect(option.kind == .invalid && !option.debugDescription.contains("canary"))
    }

    @Test("a blank variable of the environment is refused by its option and its name, and the line break of a file is left out")
    func variables() async throws {
        let sandbox = try await Sandbox()
        func told(_ changed: [String: String] = [:]) async throws -> [String] {
            let child = try Child(program("buyer"), ["environment"] + changed.keys, environment: sandbox.environment.merging(changed) { $1 })
            return await child.text().split(separator: "\n").map(String.init)
        }
        #expect(try await told() == ["agent", "reseller"])
        let fields = [
            "HOPLINE_API_KEY": "apiKey", "HOPLINE_BASE_URL": "baseURL", "HOPLINE_BACKEND_URL": "baseURL", "HOPLINE_USERNAME": "username",
            "HOPLINE_PASSWORD": "password",
        ]
        for (variable, field) in fields {
            let right = try #require(sandbox.environment[variable])
            #expect(try await told([variable: "\(right)\r\n"]) == ["agent", "reseller"], "\(variable)")
            // Space may be a password.
            let blank = try await told([variable: field == "password" ? "\r\n" : " \r\n"])
            #expect(blank.count == 2 && blank.contains("invalid \(field) none \(variable)"), "\(blank)")
            #expect(blank.filter { ["agent", "reseller"].contains($0) }.count == 1, "\(blank)")
        }
    }

    @Test("a path that tries to leave its place is one segment")
    func paths() async throws {
        let wire = try Wire(asked: { connection, _ in connection.answer("404 Not Found", ["content-type: text/plain"], "no") })
        for id in ["../billing", "a/b?c#d", "%2e%2e", "ü\n"] {
            _ = try await failure { try await client(wire.url).getSession(sessionId: id) }
        }
        for head in wire.seen {
            let target = head.split(separator: " ")[1]
            #expect(target.hasPrefix("/v1/sessions/") && target.dropFirst("/v1/sessions/".count).allSatisfy { !"/?#".contains($0) }, "\(target)")
        }
    }

    @Test("a store that can't be used says so, and nothing is bought")
    func stores() async throws {
        let file = Folder()
        try Data("x".utf8).write(to: URL(fileURLWithPath: file.path))
        for path in [file.path, "\(file.path)/below", ""] {
            let error = try await failure { try client("https://api.example/v1", store: FolderStore(path)) }
            #expect(error.kind == .store && error.effect == .none && error.message.contains("the store can't be used"), "\(error.debugDescription)")
            #expect(error.message.contains("`\(path)"), "\(error.debugDescription)")
        }
    }

    @Test("a store that fails while a purchase is stored: it is not sent, and the error says what the store said")
    func failingStore() async throws {
        struct Full: Error {}
        let (wire, folder) = (try Wire(), Folder())
        let store = Watched(try folder.store) { if $0 == "put" { throw Full() } }
        let error = try await failure { try await client(wire.url, store: store).buy("job-1") }
        #expect(error.kind == .store && error.effect == .none && error.notes == ["the store said: Full"], "\(error.debugDescription)")
        #expect(wire.seen.isEmpty)
    }

    @Test("records of another account are left alone, and listed as such; their intents buy nothing")
    func otherAccount() async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        let first = try client(wire.url, store: folder.store)
        _ = try await failure { try await first.buy("job-1") }
        await first.close()
        let other = try AgentClient(apiKey: "another", baseURL: wire.url, store: folder.store)
        for _ in 0..<2 {
            let saved = try await other.saved()
            #expect(saved.map(\.holds) == [.refused] && saved.map(\.reason) == ["other_account"] && saved.map(\.whose) == [.free])
            #expect(try await other.resumeAll().isEmpty)
        }
        let sends = wire.seen.count
        let refused = try await failure { try await other.buy("job-1") }
        #expect(refused.kind == .invalid && refused.effect == .none && refused.field == "intent" && wire.seen.count == sends, "\(refused.debugDescription)")
        let same = try AgentClient(apiKey: "another", baseURL: wire.url, store: folder.store, options: ClientOptions(sameAccount: true))
        #expect(try await same.saved().map(\.holds) == [.inDoubt])
    }

    @Test("a store is one client's, also once that is closed")
    func oneStore() async throws {
        let wire = try Wire()
        for store in [OwnStore(OwnShelf()), try Folder().store] as [any Store] {
            let first = try client(wire.url, store: store)
            for _ in 0..<2 {
                let error = try await failure { try client(wire.url, store: store) }
                #expect(error.kind == .misuse && error.effect == .none, "\(error.debugDescription)")
                #expect(error.message.contains("this store has a client already"), "\(error.debugDescription)")
                await first.close()
            }
        }
    }

    @Test("a record that is not there can't be resumed, settled or forgotten; a doubt can be settled once")
    func records() async throws {
        let (wire, folder) = (try Wire(asked: { connection, _ in connection.close() }), Folder())
        let agent = try client(wire.url, store: folder.store)
        for error in [
            try await failure { try await agent.resume("none") }, try await failure { try await agent.settle("none", happened: true) },
            try await failure { try await agent.forget("none") },
        ] {
            #expect(error.kind == .misuse && error.effect == .none, "\(error.debugDescription)")
        }
        let doubt = try await failure { try await agent.buy("job-1") }
        let record = try #require(doubt.record)
        #expect(try await agent.settle(record, happened: false, early: true))
        let (again, forgotten) = (try await agent.settle(record, happened: false, early: true), try await agent.forget(record))
        #expect(!again && !forgotten)
        #expect(try folder.records.isEmpty)
        #expect(try await agent.observe(sessionId: "s", seen: .captcha) == nil)
    }
}
