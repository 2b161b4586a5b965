import Foundation
@testable import Hopline
import Kit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("the transport that needs nothing")
struct TransportTests {
    @Test("a lost network is no proof that nothing was sent, unless the system says that it never began")
    func offline() {
        let sent = { (code: URLError.Code, hasBegun: Bool?) in TransportFailure(URLError(code), hasBegun: hasBegun).sent }
        for code in [URLError.Code.notConnectedToInternet, .networkConnectionLost, .timedOut, .cancelled, .secureConnectionFailed, .unknown] {
            #expect(sent(code, nil) == .maybe && sent(code, true) == .maybe, "\(code)")
        }
        #expect(sent(.notConnectedToInternet, false) == .never)
        for code in [URLError.Code.cannotFindHost, .dnsLookupFailed, .cannotConnectToHost] { #expect(sent(code, nil) == .never, "\(code)") }
        #expect(TransportFailure(nil, hasBegun: false).sent == .maybe)
    }

    @Test("a send that is cancelled before it begins ends")
    func cancelledBefore() async throws {
        let (wire, ended) = (try Wire(), Counter())
        for _ in 0..<50 {
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                defer { ended.add(1) }
                _ = try await network.send(Request(method: "GET", url: wire.url))
            }
            task.cancel()
        }
        try await until("they have ended") { ended.total == 50 }
    }

    @Test("a write that a system might repeat goes over a connection of its own, and answers are not mixed up")
    func ownConnections() async throws {
        let wire = try Wire(asked: { connection, number in connection.answer("200 OK", ["content-type: text/plain"], "\(number)") })
        let transport = network
        let bodies = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<40 {
                let method = ["GET", "POST", "PUT", "PATCH", "DELETE"][number % 5]
                group.addTask { String(decoding: try await transport.send(Request(method: method, url: wire.url)).body, as: UTF8.self) }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(bodies == Set((1...40).map(String.init)) && wire.seen.count == 40)
    }

    @Test("a client has 64 requests out at most, and the others wait for their turn")
    func limit() async throws {
        let (gate, out, most) = (Gate(), Counter(), Counter())
        let transport = Sending { _ in
            out.add(1)
            most.add(max(0, out.total - most.total))
            await gate.pass()
            out.add(-1)
            return Response(status: 200, headers: [("content-type", "application/json")], body: Data(#"{"success":true,"data":{}}"#.utf8))
        }
        let agent = try client("https://api.example/v1", transport: transport)
        let calls = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<200 { group.addTask { try await agent.getBalance() } }
                try await group.waitForAll()
            }
        }
        try await until("as many are out as may be") { out.total == 64 }
        try await Task.sleep(for: .milliseconds(200))
        #expect(out.total == 64)
        // One that waits for its turn is cancelled at once, and was never sent.
        let waiting = Task { try await agent.buy() }
        try await Task.sleep(for: .milliseconds(200))
        waiting.cancel()
        let error = try await failure { try await waiting.value }
        #expect(error.kind == .cancelled && error.effect == .none, "\(error.debugDescription)")
        await gate.open()
        try await calls.value
        #expect(most.total <= 64 && out.total == 0)
    }
}

@Suite("headers of a client's own")
struct HeaderTests {
    @Test("are asked for before each request, and go with it")
    func each() async throws {
        let (sandbox, asked, seen) = (try await Sandbox("--provisioning-ms", "0"), Counter(), Lines())
        let transport = Sending { request in
            seen.add(request.headers.first { $0.name == "x-app-token" }?.value ?? "none")
            return try await network.send(request)
        }
        let options = ClientOptions(headers: {
            asked.add(1)
            return ["x-app-token": Secret("canary-\(asked.total)")]
        })
        let agent = try sandbox.client(transport: transport, options: options)
        try await agent.open("job-1")
        try await sandbox.reseller(transport: transport, options: options).getCurrentBalance()
        #expect(seen.all == (1...asked.total).map { "canary-\($0)" } && seen.all.count >= 3, "a purchase, a login and a read: \(seen.all)")
    }

    @Test("that can't be had or can't be sent keep the request back, and are not repeated in the error")
    func none() async throws {
        struct Refused: Error, CustomStringConvertible {
            let description = "canary"
        }
        let wire = try Wire()
        let given: [(HoplineError.Kind, String, @Sendable () async throws -> [String: Secret])] = [
            (.unavailable, "Refused", { throw Refused() }), (.invalid, "letters, digits and hyphens", { ["a b": "canary"] }),
            (.invalid, "visible ASCII for `x-a`", { ["x-a": "canary\r\nb: c"] }),
            (.invalid, "must not have `X-API-Key`", { ["X-API-Key": "canary"] }),
        ]
        for (kind, said, headers) in given {
            let agent = try AgentClient(apiKey: "key", baseURL: wire.url, options: ClientOptions(attempts: 1, headers: headers))
            let error = try await failure { try await agent.buy("job-1") }
            #expect(error.kind == kind && error.effect == .none, "\(error.debugDescription)")
            #expect((error.notes.joined() + error.message).contains(said), "\(error.debugDescription)")
            #expect(!shown(error).contains("canary"))
            #expect(try await agent.saved().isEmpty)
        }
        #expect(wire.seen.isEmpty)
    }
}

/// The lines, from many threads.
final class Lines: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []

    func add(_ line: String) {
        lock.withLock { lines.append(line) }
    }

    var all: [String] { lock.withLock { lines } }
}
