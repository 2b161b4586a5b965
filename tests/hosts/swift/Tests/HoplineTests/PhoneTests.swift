import Foundation
import Hopline
import Kit
import Testing

// The README's client of one's own backend, word for word.
func client(of user: String, token: @escaping @Sendable () async throws -> String) throws -> AgentClient {
    try AgentClient(
        baseURL: "https://shop.example/hopline/v1",  // your backend
        store: FolderStore.applicationSupport(),  // kept over restarts, left out of backups
        options: ClientOptions(
            account: user,  // whose records these are
            headers: { ["authorization": Secret("Bearer " + (try await token()))] }))
}

@Suite("an app that talks to its own backend")
struct PhoneTests {
    @Test("has no key, and sends the token of its user and the same idempotency key again")
    func backend() async throws {
        let wire = try Wire(asked: { connection, number in
            if number == 1 { return connection.close() }
            connection.answer("202 Accepted", ["content-type: application/json"], #"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#)
        })
        let asked = Counter()
        let options = ClientOptions(account: "user-1", attempts: 2, backoff: .milliseconds(1), headers: {
            asked.add(1)
            return ["authorization": Secret("Bearer token-\(asked.total)")]
        })
        let agent = try AgentClient(baseURL: wire.url, options: options)
        #expect(try await agent.buy("job-1").sessionId == "s-1")
        let lines = wire.seen.map { $0.lowercased().components(separatedBy: "\r\n") }
        let keys = Set(lines.flatMap { $0.filter { $0.hasPrefix("idempotency-key: ") } })
        #expect(lines.count == 2 && keys.count == 1)
        #expect(lines[0].contains("authorization: bearer token-1") && lines[1].contains("authorization: bearer token-2"))
        #expect(!wire.seen.joined().lowercased().contains("x-api-key"))
    }
    @Test("whose headers can't be sent, or can't be had, hears of it, and nothing is sent")
    func headers() async throws {
        let wire = try Wire()
        for (name, value, said) in [("X-Api-Key", "canary", "`X-Api-Key`"), ("x y", "canary", "names made of"), ("x", "a\r\ncanary", "`x`")] {
            let asked = Counter()
            let options = ClientOptions(account: "user-1", attempts: 3, headers: {
                asked.add(1)
                return [name: Secret(value)]
            })
            let agent = try AgentClient(apiKey: "key", baseURL: wire.url, options: options)
            let error = try await failure { try await agent.buy("job-1") }
            #expect(error.kind == .invalid && error.effect == .none && error.field == "headers" && asked.total == 1, "\(error.debugDescription)")
            #expect(error.message.contains(said) && !error.debugDescription.contains("canary"), "\(error.debugDescription)")
        }
        struct LoggedOut: Error {}
        let options = ClientOptions(account: "user-1", attempts: 2, backoff: .milliseconds(1), headers: { throw LoggedOut() })
        let error = try await failure { try await AgentClient(baseURL: wire.url, options: options).buy("job-1") }
        #expect(error.kind == .unavailable && error.effect == .none && error.attempts == 2, "\(error.debugDescription)")
        #expect(error.message.contains("the `headers` function failed") && error.notes == ["`headers` threw LoggedOut"], "\(error.debugDescription)")
        #expect(wire.seen.isEmpty)
    }

    @Test("whose backend refuses in its own words bought nothing, and sends the same key when its intent is started again")
    func refused() async throws {
        let wire = try Wire(asked: { connection, number in
            let (status, body) = number <= 2 ? ("403 Forbidden", #"{"error":"not this user"}"#) : ("202 Accepted", #"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#)
            connection.answer(status, ["content-type: application/json"], body)
        })
        let agent = try AgentClient(apiKey: nil, baseURL: wire.url, options: ClientOptions(account: "user-1"))
        for intent in [nil, "job-1"] {
            let error = try await failure { try await agent.buy(intent) }
            #expect(error.kind == .refused && error.effect == .none, "\(error.debugDescription)")
        }
        #expect(try await agent.resumeAll().isEmpty, "nobody asked for it again")
        #expect(try await agent.buy("job-1").sessionId == "s-1")
        let keys = wire.seen.map { $0.lowercased().components(separatedBy: "\r\n").filter { $0.hasPrefix("idempotency-key: ") } }
        #expect(keys.count == 3 && keys[1] == keys[2] && keys[0] != keys[1])
        await agent.close()
        // Where the service itself answers, it is no answer of its own.
        let service = try Wire(asked: { connection, _ in connection.answer("403 Forbidden") })
        let doubting = try AgentClient(apiKey: "key", baseURL: service.url)
        #expect(try await failure { try await doubting.buy() }.effect == .unknown)
        await doubting.close()
    }

    @Test("dumps neither a client nor what a session knows of it, since that may change at any moment")
    func dumped() async throws {
        let wire = try Wire(asked: { connection, _ in
            connection.answer("202 Accepted", ["content-type: application/json"], #"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#)
        })
        let agent = try AgentClient(apiKey: "key", baseURL: wire.url)
        let session = try await agent.openSession(sessionType: .dynamic, productNo: "p")
        let reseller = try ResellerClient(baseURL: wire.url, token: "token", options: ClientOptions(account: "a"))
        for value in [agent, reseller] as [Any] { #expect(Mirror(reflecting: value).children.isEmpty) }
        #expect(Mirror(reflecting: session).children.map(\.label) == ["sessionId", "phase", "session"])
        #expect(!shown(session).contains("driver") && !shown(agent).contains("driver"))
    }
}
