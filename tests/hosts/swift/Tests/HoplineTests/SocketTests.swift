import Foundation
import Hopline
import Kit
import Testing

/// Real sockets that misbehave: what each failure tells about the request, and that the transport undoes no policy.
@Suite("sockets that misbehave")
struct SocketTests {
    static let empty = #"{"success":true,"data":{}}"#

    @Test("a refused connect and an unknown name never sent anything")
    func neverSent() async throws {
        let dead = try Wire(refuses: true)
        for url in [dead.url, "https://no-such-host.invalid/v1"] {
            let error = try await failure { try await client(url).buy() }
            #expect(error.kind == .unavailable && error.effect == .none, "\(url): \(error.debugDescription)")
            #expect(error.notes.first?.contains("URLError") == true)
        }
    }

    @Test("a connection that breaks before or after the request may have sent it")
    func broken() async throws {
        let wires = try [
            Wire(connected: { $0.reset() }), Wire(asked: { connection, _ in connection.reset() }), Wire(asked: { connection, _ in connection.close() }),
        ]
        for wire in wires {
            let error = try await failure { try await client(wire.url).buy() }
            #expect(error.kind == .inDoubt && error.effect == .unknown, "\(error.debugDescription)")
        }
    }

    @Test("a timeout is kept, and a transport that does not heed its cancelled task is not waited for")
    func timeout() async throws {
        struct Deaf: Transport {
            func send(_ request: Request) async throws -> Response {
                await withCheckedContinuation { continuation in
                    DispatchQueue.global().asyncAfter(deadline: .now() + 300) { continuation.resume(returning: Response(status: 200)) }
                }
            }
        }
        let wire = try Wire()
        for transport in [network, Deaf()] as [any Transport] {
            let began = ContinuousClock.now
            let error = try await failure { try await client(wire.url, transport: transport, timeout: .seconds(3)).buy() }
            #expect(error.kind == .inDoubt && error.effect == .unknown)
            #expect(ContinuousClock.now - began < .seconds(120))
        }
    }

    @Test("a redirect is not followed")
    func redirect() async throws {
        let target = try Wire(asked: { connection, _ in connection.answer("200 OK", ["content-type: application/json"], Self.empty) })
        for status in [301, 302, 303, 307, 308] {
            let url = target.url
            let wire = try Wire(asked: { connection, _ in connection.answer("\(status) Moved", ["location: \(url)/sessions"]) })
            let error = try await failure { try await client(wire.url).buy() }
            #expect(error.kind == .inDoubt && error.status == status && wire.seen.count == 1)
            let read = try await failure { try await client(wire.url).getBalance() }
            #expect(read.kind == .protocol && read.status == status && wire.seen.count == 2)
        }
        #expect(target.seen.isEmpty)
    }

    @Test(
        "nothing is sent twice but by the core, whatever the answer",
        arguments: ["closed", "reset", "503 Busy", "408 Slow", "421 Misdirected", "401 Who", "407 Proxy", "425 Early"])
    func noRepeat(_ answer: String) async throws {
        let wire = try Wire(asked: { connection, _ in
            switch answer {
            case "closed": connection.close()
            case "reset": connection.reset()
            default: connection.answer(answer, ["retry-after: 0", "www-authenticate: Basic realm=\"x\"", "connection: close"])
            }
        })
        // A caller waits for this long.
        let client = try client(wire.url, timeout: .seconds(240))
        let began = ContinuousClock.now
        _ = try await failure { try await client.buy() }
        #expect(ContinuousClock.now - began < .seconds(60), "it was waited for")
        _ = try await failure { try await client.getBalance() }
        _ = try await failure { try await client.terminateSession(sessionId: "s") }
        try await Task.sleep(for: .milliseconds(200))
        #expect(wire.seen.map { String($0.prefix { $0 != " " }) } == ["POST", "GET", "DELETE"])
    }

    @Test("a connection that was used and is dead by the next request does not send that one twice")
    func deadConnection() async throws {
        for isReset in [false, true] {
            // The first request leaves its connection open, as most servers do.
            let wire = try Wire(asked: { connection, number in
                if number == 1 { return connection.answer("200 OK", ["content-type: application/json"], Self.empty) }
                isReset ? connection.reset() : connection.close()
            })
            let client = try client(wire.url)
            try await client.getBalance()
            let error = try await failure { try await client.buy() }
            try await Task.sleep(for: .milliseconds(200))
            #expect(error.kind == .inDoubt && wire.seen.count == 2 && wire.connections == 2, "\(wire.seen.count) requests over \(wire.connections) connections")
        }
    }

    @Test("a body is read up to its limit, and one that breaks off or stops keeps its status")
    func bodies() async throws {
        for length in ["content-length: 300000000\r\n", ""] {
            let huge = try Wire(asked: { connection, _ in
                connection.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\(length)\r\n{\"success\":true,\"data\":\"")
                let more = String(repeating: "x", count: 65536)
                for _ in 0..<4578 where connection.write(more) {}
                connection.close()
            })
            let response = try await network.send(Request(method: "GET", url: huge.url, maxBody: 100_000))
            #expect(response.status == 200 && response.truncated && response.body.count == 100_000)
            let first = try await failure { try await client(huge.url, maxBody: 100_000).buy() }
            #expect(first.kind == .inDoubt && first.status == 200, "\(first.debugDescription)")
        }
        let part = "HTTP/1.1 202 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"success\":true,\"data\":{\"sess"
        let short = try Wire(asked: { connection, _ in
            connection.write(part)
            connection.close()
        })
        let second = try await failure { try await client(short.url).buy() }
        #expect(second.kind == .inDoubt && second.status == 202)
        let stuck = try Wire(asked: { connection, _ in connection.write(part) })
        let third = try await failure { try await client(stuck.url, timeout: .seconds(5)).buy() }
        #expect(third.kind == .inDoubt && third.status == 202, "\(third.debugDescription)")
    }

    @Test("what is sent is what the core named, and no cookie comes back")
    func headers() async throws {
        let wire = try Wire(asked: { connection, _ in
            connection.answer("200 OK", ["content-type: application/json", "set-cookie: a=canary; path=/"], Self.empty)
        })
        let client = try client(wire.url)
        try await client.getBalance(options: CallOptions(headers: ["x-more": "yes"]))
        try await client.getBalance()
        let heads = wire.seen.map { $0.lowercased() }
        #expect(heads[0].contains("x-api-key: canary-key\r\n") && heads[0].contains("x-more: yes\r\n") && heads[0].contains("accept-encoding: identity\r\n"))
        #expect(!heads[1].contains("cookie") && !heads[1].contains("x-more"))
    }

    @Test("a transport that throws or answers nonsense is one clear error, and nothing is lost")
    func nonsense() async throws {
        struct Broken: Error, CustomStringConvertible {
            let description = "no route for canary-key at https://user:canary@gate.example, Bearer canary"
        }
        struct Odd: Transport {
            let act: @Sendable (Request) throws -> Response
            func send(_ request: Request) async throws -> Response { try act(request) }
        }
        let acts: [@Sendable (Request) throws -> Response] = [
            { _ in throw Broken() }, { _ in throw CancellationError() }, { _ in Response(status: -7) }, { _ in Response(status: 70_000) },
            { _ in Response(status: 200, headers: [("content-type", "text/html")], body: Data("<html>".utf8)) },
            { _ in Response(status: 202, body: Data("{\"success\":true,\"data\":7}".utf8)) }, { _ in Response(status: 200) },
            { _ in throw TransportFailure(.other, note: "odd") },
        ]
        for (place, act) in acts.enumerated() {
            let client = try client("https://api.example/v1", transport: Odd(act: act))
            let error = try await failure { try await client.buy("a") }
            #expect(error.effect != .none, "\(place): \(error.debugDescription)")
            #expect(!error.debugDescription.contains("canary"))
            if place == 0 { #expect(error.notes.joined().contains("Broken: no route for [redacted] at https:[redacted]gate.example, [redacted]")) }
            let saved = try await client.saved()
            #expect(saved.map(\.intent) == ["a"], "\(place): \(error.debugDescription)")
        }
    }

    @Test("an error of a transport that quotes a long body shows none of it, and is told soon", .timeLimit(.minutes(5)))
    func longBody() async throws {
        struct Quoting: Error, CustomStringConvertible {
            let description: String
        }
        // Every part of the one is in it once, and that of the other everywhere.
        for note in [(0..<4_000).map { "canary-\($0) " }.joined(), String(repeating: "a", count: 60_000)] {
            let quoting = Sending { request in
                let body = String(decoding: request.body ?? Data(), as: UTF8.self)
                throw Quoting(description: "can't send " + String(body.dropFirst(100).prefix(10_000)))
            }
            let agent = try client("https://api.example/v1", transport: quoting)
            let error = try await failure { try await agent.request(.post, "/x", body: ["note": .string(note)]) }
            #expect(error.notes.joined().contains("can't send [redacted]") && !error.debugDescription.contains("canary-"), "\(error.debugDescription.prefix(1000))")
            await agent.close()
        }
    }
}
