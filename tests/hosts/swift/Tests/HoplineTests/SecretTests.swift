import Foundation
import Hopline
import Kit
import Testing

@Suite("secrets")
struct SecretTests {
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

    /// Every secret place of every answer at once.
    private static let answer = #"""
        {"success":true,"data":{"api_key":"canary-issued-key","api_secret":"canary-issued-secret","agent_id":7,"session_id":"s-1","status":"active",
        "message":"sent","next_cursor":null,"items":[],"proxy":{"host":"gate.example","port":1080,"protocol":"http","username":"canary-user",
        "password":"canary-password","full_url":"http://canary-user:canary-password@gate.example:1080"}}}
        """#

    @Test("no secret of the whole API is printed, dumped, told, kept, or said by an error")
    func everywhere() async throws {
        let failing = Counter()
        let wire = try Wire(asked: { connection, _ in
            if failing.total > 0 { return connection.close() }
            connection.answer("200 OK", ["content-type: application/json"], Self.answer)
        })
        let folder = Folder()
        let options = ClientOptions(attempts: 1)
        let agent = try AgentClient(apiKey: "canary-key", baseURL: wire.url, store: folder.store, dailyCapUsd: 100, options: options)
        let events = agent.events()
        let headers = CallOptions(headers: ["x-more": "canary-header"])
        let calls: [@Sendable () async throws -> Any] = [
            { try await agent.requestApiKey(email: "canary@mail.example", options: headers) },
            { try await agent.registerAccount(name: "A", contactEmail: "canary-contact@mail.example") },
            { try await agent.getSession(sessionId: "s-1", includeCredentials: true, until: Until(at: "/proxy/password", is: ["canary-password"]), deadline: .zero) },
            { try await agent.request(.post, "/x", body: ["note": "canary-body"], options: headers) },
            // A request that may be sent again is kept, its body included, so this one has nothing to hide there.
            { try await agent.request(.put, "/x", body: ["note": "plain"], safety: .keyed, options: headers) },
            { try await agent.reportSessionEvent(sessionId: "s-1", event: sessionEvent(more: ["note": "canary-event"])) },
            { try await agent.getBalance(until: Until(at: "/status", is: ["active"]), deadline: .zero, options: headers) },
        ]
        var told: [Any] = [options, headers, agent]
        for call in calls {
            do { told.append(try await call()) } catch { told.append(error) }
        }
        let session = try await agent.getSession(sessionId: "s-1")
        let proxy = try #require(session.proxy)
        #expect(proxy.password?.reveal() == "canary-password")
        let walk = try agent.walkProducts(options: headers)
        told += [session, proxy, try proxy.url(), try proxy.curl(), walk, walk.pages]
        for try await page in walk.pages { told.append(page) }
        failing.add(1)
        for call in calls { told.append(try await failure { try await call() }) }
        told.append(try await agent.saved())
        let records = try folder.records
        await agent.close()
        for await event in events { told.append(event) }
        let sent = wire.seen.joined()
        for secret in ["key", "header", "body", "event", "contact", "@mail"] { #expect(sent.contains("canary-\(secret)") || sent.contains("canary\(secret)")) }
        #expect(!records.isEmpty && told.count > 20)
        for text in told.map(shown) + records { #expect(!text.contains("canary"), "\(text)") }
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
