import Foundation
import Hopline
import Kit
import Testing

@Suite("a store whose claims can end while their owner lives")
struct LostTests {
    /// The store vouches for its claims as it is told, the last time for good.
    private final class Leased: Store {
        let own: OwnStore
        let calls = Calls()
        private let vouched: [Bool]

        init(_ shelf: OwnShelf, vouches: [Bool] = [true]) {
            (own, vouched) = (OwnStore(shelf), vouches)
        }

        func onLost(_ lost: @escaping @Sendable ([String]?) -> Void) { calls.lost = lost }

        func vouches() async -> Bool {
            let before = calls.all.count { $0 == "vouches" }
            calls.add("vouches")
            return vouched[min(before, vouched.count - 1)]
        }

        func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten {
            calls.add("put")
            return try await own.put(name, data, how: how)
        }

        func claim(_ names: [String], most: Int) async throws -> StoreClaim { try await own.claim(names, most: most) }
        func delete(_ name: String) async throws -> StoreWritten { try await own.delete(name) }
        func release(_ names: [String]?) async throws { try await own.release(names) }
        func list(_ space: String, after: String?, open: Bool) async throws -> StorePage { try await own.list(space, after: after, open: open) }
        func spend(_ spend: StoreSpend) async throws -> StoreSpent { try await own.spend(spend) }
        func close() async { await own.close() }
    }

    /// The calls of the store, and the client to tell about lost names.
    private final class Calls: @unchecked Sendable {
        private let lock = NSLock()
        private var made: [String] = []
        private var told: (@Sendable ([String]?) -> Void)?

        var all: [String] { lock.withLock { made } }

        var lost: (@Sendable ([String]?) -> Void)? {
            get { lock.withLock { told } }
            set { lock.withLock { told = newValue } }
        }

        func add(_ call: String) {
            lock.withLock { made.append(call) }
        }
    }

    @Test("has a session taken back whose claim has ended")
    func takenBack() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        let store = Leased(shelf)
        let agent = try sandbox.client(store: store)
        let open = try await agent.open("job-1")
        let owned = shelf.owned
        #expect(owned.count == 1)
        for lost in [nil, Array(owned)] {
            try await store.own.release(nil)
            store.calls.lost?(lost)
            try await until("it is taken back") { shelf.owned == owned }
            // The client has heard of it: who starts the intent waits for that.
            #expect(try await agent.open("job-1").sessionId == open.sessionId)
        }
        #expect(try await agent.saved().map(\.whose) == [.mine])
        #expect(try await open.observe(.status(200)) == .keep)
    }

    @Test("has a session given up that another client has taken meanwhile")
    func givenUp() async throws {
        let (sandbox, shelf) = (try await Sandbox("--provisioning-ms", "0"), OwnShelf())
        let store = Leased(shelf)
        let (agent, other) = (try sandbox.client(store: store), try sandbox.client(store: OwnStore(shelf)))
        let open = try await agent.open("job-1")
        try await store.own.release(nil)
        #expect(try await other.open("job-1").sessionId == open.sessionId)
        store.calls.lost?(nil)
        try await until("it is followed no more") { try await open.observe(.status(200)) == nil }
        #expect(try await agent.saved().map(\.whose) == [.other])
    }

    @Test("has nothing sent under a claim that ends before")
    func notSent() async throws {
        let (wire, shelf, asked, gate) = (try Wire(), OwnShelf(), Counter(), Gate())
        let store = Leased(shelf)
        let options = ClientOptions(headers: {
            asked.add(1)
            await gate.pass()
            return [:]
        })
        let agent = try AgentClient(apiKey: "canary-key", baseURL: wire.url, store: store, transport: network, options: options)
        let buying = Task { try await agent.buy("job-1") }
        try await until("its headers are asked for") { asked.total == 1 }
        try await store.own.release(nil)
        store.calls.lost?(nil)
        await gate.open()
        let error = try await failure { try await buying.value }
        #expect(error.kind == .busy && error.effect == .none, "\(error.debugDescription)")
        #expect(wire.seen.isEmpty && shelf.owned.isEmpty)
    }

    @Test("has nothing sent before it vouches for its claims, and the record stored again first")
    func vouches() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let store = Leased(OwnShelf(), vouches: [false, true])
        try await sandbox.client(store: store).buy("job-1")
        #expect(store.calls.all.prefix(4) == ["put", "vouches", "put", "vouches"])
        #expect(try await sandbox.charges() == 1)
    }

    @Test("has nothing sent as long as it can't vouch for them")
    func neverVouches() async throws {
        let (wire, shelf) = (try Wire(), OwnShelf())
        let agent = try client(wire.url, store: Leased(shelf, vouches: [false]))
        let error = try await failure { try await agent.buy("job-1") }
        #expect(error.effect == .none && error.notes == ["the store did not vouch for its claims"], "\(error.debugDescription)")
        #expect(wire.seen.isEmpty && shelf.owned.isEmpty)
        #expect(try await agent.saved().isEmpty)
    }

    @Test("has the end of a session sent whatever it says of them")
    func ends() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let store = Leased(OwnShelf(), vouches: [false])
        let agent = try sandbox.client(store: store)
        _ = try? await agent.terminateSession(sessionId: "ses_none")
        #expect(!store.calls.all.contains("vouches"))
    }
}
