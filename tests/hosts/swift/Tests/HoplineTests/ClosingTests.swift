import Foundation
import Hopline
import Kit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The behaviour of a client once it is closed, or once no reference to it is left.
@Suite("a client that closes")
struct ClosingTests {
    private static func shop(_ size: Int, keepReady: Int = 0) -> PoolOptions {
        PoolOptions(size: size, sessionType: .dynamic, productNo: "dynamic-world", dailyCapUsd: 100, keepReady: keepReady)
    }

    /// The requests, in order.
    private final class Sent: @unchecked Sendable {
        private let lock = NSLock()
        private var requests: [String] = []

        func add(_ request: Request) { lock.withLock { requests.append(request.method) } }

        var all: [String] { lock.withLock { requests } }
    }

    /// A service that answers everything alike, and counts; all but the end of a session waits at the gate.
    private func service(_ sent: Sent, _ data: String = "{}", _ gate: Gate? = nil) -> Sending {
        Sending { request in
            sent.add(request)
            if request.method != "DELETE" { await gate?.pass() }
            return Response(status: 200, headers: [("content-type", "application/json")], body: Data(#"{"success":true,"data":\#(data)}"#.utf8))
        }
    }

    @Test("sends nothing more, but the end of a session that was asked for before", arguments: [false, true])
    func afterwards(ends: Bool) async throws {
        let (putting, go, sent) = (Gate(), Gate(), Sent())
        let store = Watched(OwnStore(OwnShelf())) { call in
            guard call == "put" else { return }
            await putting.open()
            await go.pass()
        }
        let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", store: store, transport: service(sent))
        let asking = Task {
            if ends { try await agent.terminateSession(sessionId: "s-1") } else { try await agent.buy() }
        }
        await putting.pass()
        let closing = Task { await agent.close(timeout: .seconds(30)) }
        try await until("it closes") { await isClosed(agent) }
        await go.open()
        await closing.value
        let result = await asking.result
        #expect(sent.all == (ends ? ["DELETE"] : []))
        if case .success = result { #expect(ends) } else { #expect(!ends) }
    }

    private func isClosed(_ agent: AgentClient) async -> Bool {
        do {
            _ = try await agent.saved()
            return false
        } catch {
            return error.kind == .misuse
        }
    }

    @Test("waits for as long as it is told to, which may be for ever")
    func forEver() async throws {
        for timeout in [Duration.seconds(Int64.max), .zero, .seconds(Int64.min)] {
            let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", store: OwnStore(OwnShelf()), transport: service(Sent()))
            try await agent.suspend(timeout: .seconds(Int64.max))
            await agent.wake()
            await agent.close(timeout: timeout)
            #expect(await isClosed(agent))
        }
    }

    @Test("is asked for more than it has places for, and ends sessions all the same")
    func manyOut() async throws {
        let (sent, gate) = (Sent(), Gate())
        let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", transport: service(sent, "{}", gate))
        let reads = (0..<100).map { _ in Task { try await agent.getBalance() } }
        try await until("all places are taken") { sent.all.count >= 64 }
        try await agent.terminateSession(sessionId: "s-1")
        #expect(sent.all.last == "DELETE")
        await gate.open()
        for read in reads { _ = try await read.value }
        await agent.close()
    }

    @Test("has no valid lease, and advises to give one back")
    func lease() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let pool = try await agent.openPool("shop", Self.shop(1))
        try await pool.withLease { lease in
            #expect(lease.isValid)
            let refused = try await failure { try lease.observe(.status(99_999)) }
            #expect(refused.kind == .invalid)
            await agent.close()
            let advice = [try lease.observe(.status(403)), try lease.observe(.status(200))]
            #expect(!lease.isValid && advice == [.giveBack, .giveBack])
        }
        await pool.close()
    }

    @Test("reads a target's Retry-After as the service's")
    func retryAfter() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let pool = try await agent.openPool("shop", Self.shop(1))
        try await pool.withLease(target: "shop.example") { lease in
            let url = try #require(URL(string: "https://shop.example/"))
            func response(_ status: Int, _ headers: [String: String]) throws -> HTTPURLResponse {
                try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: headers))
            }
            let advice = try lease.observe(response(200, [:]))
            let later = try lease.observe(response(429, ["Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT"]))
            #expect(advice == .keep && later != .keep)
        }
        await agent.close()
    }

    @Test("takes a length of time that is too long for the longest, and no amount that is none")
    func nonsense() async throws {
        let sent = Sent()
        let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", transport: service(sent, #"{"balance":1}"#))
        for long in [Duration.seconds(Int64.max / 2), .seconds(60 * 60 * 24 * 400)] {
            _ = try await agent.getBalance(deadline: long, options: CallOptions(timeout: long))
        }
        await agent.close()
        for cap in [Decimal.nan, -1] {
            let error = try await failure { try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", dailyCapUsd: cap) }
            #expect(error.kind == .invalid && error.field == "dailyCapUsd")
        }
        for options in [ClientOptions(attempts: 0), ClientOptions(timeout: .seconds(-1)), ClientOptions(maxInFlight: 0)] {
            #expect(try await failure { try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", options: options) }.kind == .invalid)
        }
        let uncapped = PoolOptions(size: 1, sessionType: .dynamic, productNo: "p", dailyCapUsd: .nan)
        let other = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", transport: service(sent))
        #expect(try await failure { try await other.openPool("shop", uncapped) }.kind == .invalid)
        #expect(try await failure { try await other.openSession(sessionType: .dynamic, productNo: "p", maxUnitPrice: .nan) }.kind == .invalid)
        #expect(sent.all.allSatisfy { $0 == "GET" })
        await other.close()
    }

    @Test("adds no header of its own to another's place, whether this request has that or not")
    func reserved() async throws {
        let sent = Sent()
        for name in ["X-API-Key", "Idempotency-Key", "Host", "content-length", "Transfer-Encoding", "connection", "Content-Type"] {
            let options = ClientOptions(account: "user-1", headers: { [name: "canary"] })
            let agent = try AgentClient(baseURL: "https://api.example/v1", transport: service(sent), options: options)
            let error = try await failure { try await agent.getBalance() }
            #expect(error.kind == .invalid && error.field == "headers", "\(name)")
            await agent.close()
        }
        #expect(sent.all.isEmpty)
    }

    @Test("is dropped with its pool, and closes by itself")
    func dropped() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--balance", "0")
        func leave() async throws -> AsyncStream<Event> {
            let agent = try sandbox.client()
            let pool = try await agent.openPool("shop", Self.shop(2, keepReady: 2))
            try await until("it is held, since there is no money") { try await pool.status().hold != nil }
            return agent.events()
        }
        let (events, ends) = (try await leave(), Counter())
        let listening = Task {
            for await _ in events {}
            ends.add(1)
        }
        defer { listening.cancel() }
        try await until("its events end, as they do once it is closed") { ends.total == 1 }
    }

    @Test("waits no longer than it may for a drain, which sends nothing afterwards")
    func drain() async throws {
        let (sandbox, sent) = (try await Sandbox("--provisioning-ms", "0"), Sent())
        let transport = Sending { request in
            sent.add(request)
            return try await network.send(request)
        }
        let agent = try AgentClient(apiKey: Secret(sandbox.ready.api_key), baseURL: sandbox.ready.agent_url, transport: transport)
        let pool = try await agent.openPool("shop", Self.shop(2, keepReady: 2))
        try await pool.waitReady(2)
        try await pool.withLease { _ in
            let draining = Task { try await pool.drain(grace: .seconds(600)) }
            try await until("it ends what is not lent") { sent.all.contains("DELETE") }
            await agent.close(timeout: .seconds(1))
            let error = try await failure { try await draining.value }
            #expect(error.kind == .cancelled, "\(error)")
        }
        // The lease has ended, by which a drain would go on.
        try await Task.sleep(for: .seconds(1))
        #expect(sent.all.count { $0 == "DELETE" } == 1)
    }

    @Test("says of a termination that has no answer when its time is up that nobody knows")
    func unanswered() async throws {
        let (out, never) = (Gate(), Gate())
        let transport = Sending { _ in
            await out.open()
            await never.pass()
            throw TransportFailure(.closed)
        }
        let agent = try AgentClient(apiKey: "key", baseURL: "https://api.example/v1", transport: transport)
        let terminating = Task { try await agent.terminateSession(sessionId: "s-1") }
        await out.pass()
        await agent.close(timeout: .seconds(1))
        let error = try await failure { try await terminating.value }
        #expect(error.effect == .unknown && error.sessionId == "s-1" && (error.kind == .cancelled || error.kind == .inDoubt), "\(error)")
        await never.open()
    }
}
