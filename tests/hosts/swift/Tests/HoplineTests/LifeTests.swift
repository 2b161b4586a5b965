import Foundation
import Hopline
import Kit
import Testing

@Suite("a session's life over real HTTP")
struct LifeTests {
    struct Balance: Decodable {
        let balance: Decimal
    }

    @Test("it is bought, used, blocked, rotated, used again and ended", arguments: [Hopline.`Protocol`.socks5, .http])
    func life(_ kind: Hopline.`Protocol`) async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "100-300")
        let agent = try sandbox.client()
        let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        try await sandbox.control("target", ["block_first_exit": true])
        #expect(try await agent.listPublicProducts(limit: 2).items.count == 2)
        let offered = try await agent.listProducts(type: .dynamic, inStock: true)
        let cheapest = try #require(offered.items.min { $0.price < $1.price })
        let before = try await agent.getBalance().raw.decode(Balance.self).balance
        let half = try #require(Decimal(string: "0.5"))
        let open = try await agent.openSession(
            sessionType: .dynamic, productNo: cheapest.productNo, quantity: half, protocol: kind, intent: "job-1", credentials: true)
        #expect(open.phase == .ready && open.session.status == .active && open.session.value.sessionType == .dynamic)
        let blocked = try await curl(site, through: #require(open.proxy))
        #expect(blocked.status == 403)
        #expect(try await open.observe(.status(blocked.status)) == .rotate(.http403))
        let first = try #require(open.proxy)
        let rotated = try await open.rotate(includeCredentials: true, reason: .http403)
        #expect(rotated.proxy?.password != nil && rotated.proxy?.password != first.password && open.proxy == rotated.proxy)
        let seen = try await curl(site, through: #require(rotated.proxy))
        #expect(seen.status == 200 && seen.text != blocked.text)
        try await open.terminate()
        #expect(try await isRefused(site, through: #require(rotated.proxy)), "the proxy of an ended session refuses its credentials")
        let after = try await agent.getBalance().raw.decode(Balance.self).balance
        #expect(before - after == cheapest.price * half)
        let state = try await sandbox.state()
        #expect(state.sessions.map(\.status) == ["terminated"] && state.sessions.map(\.rotations) == [1] && state.charges.count == 1)
        await agent.close()
    }

    @Test("a block gives a session that rotates by itself a new exit without a further call")
    func rotating() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let open = try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", credentials: true, autoRotate: true)
        #expect(try await open.observe(.status(200)) == .keep)
        let first = try #require(open.proxy)
        // A caller that comes once it has rotated is told so, and these are to come before.
        try await sandbox.fault("rotate_session", ["kind": "delay", "ms": 1000])
        let seen = try await withThrowingTaskGroup(of: Verdict?.self) { group in
            for _ in 0..<20 { group.addTask { try await open.observe(.status(403)) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        // At once: an exit is new for 5 s.
        guard case .unsure(let why)? = try await open.observe(.block) else { throw Unmet("the exit is new") }
        #expect(why.contains("a moment ago"))
        guard case .rotated(.http403, let rotated)? = seen.first ?? nil else { throw Unmet("a 403 rotates: \(seen)") }
        #expect(Set(seen) == [.rotated(.http403, rotated)] && seen.count == 20)
        #expect(rotated.proxy?.password != nil && rotated.proxy?.password != first.password)
        #expect(open.proxy == rotated.proxy && open.generation == 1, "20 waited for one rotation")
        #expect(try await sandbox.state().sessions.map(\.rotations) == [1])
        let other = try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", autoRotate: true)
        try await sandbox.fault("rotate_session", ["kind": "error", "code": "SESSION_EXPIRED"])
        let failed = try await failure { try await other.observe(.captcha) }
        #expect(failed.operation == "rotate_session" && failed.code == "SESSION_EXPIRED")
        let refused = try await failure {
            try await agent.openSession(sessionType: .static, productNo: "static-us", duration: 1, autoRotate: true)
        }
        #expect(refused.kind == .invalid && refused.field == "autoRotate")
    }

    @Test("a session that is not usable at its deadline is an error that leads to it")
    func notReady() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "3600000")
        let agent = try sandbox.client()
        let opens = { try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-17", deadline: .zero) }
        let late = try await failure { try await opens() }
        #expect(late.kind == .notReady && late.effect == .done && late.advice == .waitSession && late.record != nil)
        #expect(late.session?.sessionId == late.sessionId && late.session?.phase == .pending && late.session?.session.status == .creating)
        let waited = try await failure { try await agent.waitSession(sessionId: late.sessionId ?? "", deadline: .zero) }
        #expect(waited.kind == .notReady && waited.effect == .none)
        let pending = try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", allowPending: true, deadline: .zero)
        #expect(pending.phase == .pending)
        try await sandbox.control("clock", ["advance_ms": 3_600_000])
        #expect(try await opens().phase == .ready)
        await agent.close()
    }

    @Test("a static session is renewed, and one that is waited for by its id becomes usable")
    func waiting() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "300")
        let agent = try sandbox.client()
        let open = try await agent.openSession(sessionType: .static, productNo: "static-us", duration: 1)
        let renewed = try await open.renew(duration: 1)
        #expect(try renewed.raw.decode(JSON.self)["session_id"]?.string == open.sessionId)
        let bought = try await agent.buy()
        #expect(bought.status == .creating && bought.estimatedChargeUsd != nil && bought.requestId != nil)
        let waited = try await agent.waitSession(sessionId: bought.sessionId, credentials: true)
        #expect(waited.phase == .ready && waited.proxy?.password != nil)
        #expect(try await open.wait().phase == .ready)
        #expect(try await sandbox.charges() == 3)
    }

    @Test("events tell how it goes, to everybody who listens, until the client is closed")
    func events() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "100")
        try await sandbox.fault("create_session", ["kind": "drop_after"])
        let agent = try sandbox.client()
        let (one, other) = (agent.events(), agent.events())
        try await agent.open("job-1")
        await agent.close()
        for events in [one, other] {
            var (told, sent, answered): ([String], [String], [Int?]) = ([], [], [])
            for await event in events {
                #expect(event.intent == "job-1")
                switch event.what {
                case .sent(let request): sent.append(request.replacingOccurrences(of: sandbox.ready.agent_url, with: ""))
                case .answered(let status, let duration):
                    answered.append(status)
                    #expect(duration > .zero && duration < .seconds(60))
                case .repeating(let attempts, _, let because): told.append("repeating \(attempts) \(because.effect)")
                case .charged(_, let id, _, _): told.append("charged \(id != nil)")
                case .accepted(_, let charge): told.append("accepted \(charge != nil)")
                case .status(_, let status, let phase): told.append("\(status.rawValue) \(phase)")
                default: told.append("\(event.what)")
                }
            }
            #expect(told == ["repeating 1 unknown", "charged true", "accepted true", "active ready"])
            #expect(sent.count == answered.count && sent.prefix(2) == ["POST /sessions", "POST /sessions"] && answered.prefix(2) == [nil, 202])
        }
        var late = agent.events().makeAsyncIterator()
        #expect(await late.next() == nil)
    }

    @Test(
        "a lost, late, doubled or mangled answer is asked about again, and charged once",
        arguments: ["drop_before", "drop_after", "duplicate", "truncate", "html", "delay"])
    func faults(_ kind: String) async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client(options: ClientOptions(timeout: .seconds(4)))
        // A half answer to a DELETE the core leaves to its caller.
        for operation in ["create_session", "get_session"] + (kind == "truncate" ? [] : ["terminate_session"]) {
            let fault: JSON = ["kind": .string(kind), "status": kind == "html" ? 502 : nil, "ms": kind == "delay" ? 60_000 : nil]
            let told = JSON.object((fault.object ?? [:]).filter { $0.value != .null })
            try await sandbox.fault(operation, told)
        }
        let open = try await agent.open("job-1")
        #expect(open.phase == .ready)
        try await open.terminate()
        let state = try await sandbox.state()
        #expect(state.charges.count == 1 && state.sessions.map(\.status) == ["terminated"])
    }

    @Test("an answer that does not fit its type is an error that says so, with effect done and the answer in it")
    func misfit() async throws {
        let answer = #"{"success":true,"data":{"session_id":"s-1","status":["active"],"n":1234567890.123456789}}"#
        let wire = try Wire(asked: { connection, _ in connection.answer("202 Accepted", ["content-type: application/json"], answer) })
        let error = try await failure { try await client(wire.url).buy() }
        #expect(error.kind == .decode && error.effect == .done && error.sessionId == "s-1")
        #expect(error.message.contains("data.status"))
        let raw = try #require(try error.raw?.decode(JSON.self))
        #expect(raw["n"]?.decimal == Decimal(string: "1234567890.123456789"))
    }
}
