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
}
