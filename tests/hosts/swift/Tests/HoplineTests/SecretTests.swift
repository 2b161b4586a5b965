import Foundation
import Hopline
import Kit
import Testing

@Suite("secrets")
struct SecretTests {
    /// Every way in which a value prints.
    private func shown(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value) \(String(reflecting: value)) \(String(describing: value)) \([value]) \((value as? any Error)?.localizedDescription ?? "") \(dumped)"
    }

    @Test("no secret is printed, dumped, told, kept, or said by an error")
    func canary() async throws {
        let (key, folder) = ("canary-key-0123456789", Folder())
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--api-key", key)
        try await sandbox.fault("create_session", ["kind": "drop_after"])
        let agent = try sandbox.client(store: folder.store)
        let events = agent.events()
        let options = CallOptions(headers: ["x-more": "canary-header"])
        let open = try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-1", credentials: true, options: options)
        let secrets = [open.proxy?.username, open.proxy?.password, open.proxy?.fullUrl].compactMap { $0?.reveal() }
        #expect(secrets.count == 3)
        var told: [Any] = [open, open.session, open.session.value, open.session.raw, open.proxy as Any, agent, options, try await agent.saved()]
        told.append(try await agent.getSession(sessionId: open.sessionId, includeCredentials: true))
        told.append(try await failure { try await agent.rotateSession(sessionId: "none") })
        told.append(try await failure { try await agent.createSession(sessionType: .static, productNo: "") })
        let records = try folder.records.joined()
        await agent.close()
        for await event in events { told.append(event) }
        let everything = told.map(shown).joined() + records
        #expect(records.contains("job-1") && told.count >= 13)
        for secret in secrets + ["canary"] { #expect(!everything.contains(secret)) }
    }

    @Test("a secret is revealed by name alone")
    func reveal() {
        let secret = Secret("canary")
        #expect(!shown(secret).contains("canary") && shown(secret).contains("[redacted]"))
        #expect(secret.reveal() == "canary" && secret == "canary" && Set([secret]).contains("canary"))
    }

    @Test("a request that a transport is given shows neither its key nor its body")
    func request() async throws {
        let heard = Heard()
        _ = try await failure { try await client("https://api.example/v1", transport: heard).createSession(sessionType: .dynamic, productNo: "canary-product") }
        let request = try #require(heard.requests.first)
        #expect(request.headers.contains { $0.value == "canary-key" })
        #expect(!shown(request).contains("canary") && shown(request).contains("POST https://api.example/v1/sessions"))
    }

    final class Heard: Transport, @unchecked Sendable {
        private let lock = NSLock()
        private var heard: [Request] = []
        var requests: [Request] { lock.withLock { heard } }

        func send(_ request: Request) async throws -> Response {
            lock.withLock { heard.append(request) }
            throw TransportFailure(.closed)
        }
    }
}
