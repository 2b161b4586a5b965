import Foundation
import Hopline
import Testing

/// A view model that opens a session.
@MainActor
private final class Shop {
    private let agent: any Agent
    private(set) var shown = ""

    init(_ agent: any Agent) { self.agent = agent }

    func open(_ id: String) async -> OpenSession? {
        do {
            let open = try await agent.waitSession(sessionId: id, credentials: false, deadline: .seconds(60))
            shown = "\(open.sessionId) at \(open.proxy?.host ?? "")"
            return open
        } catch {
            shown = "another device has it: \(error.sessionId ?? "")"
            return nil
        }
    }
}

/// A fake of the client.
private struct Fake: Agent {
    func answer<Answer: Sendable>(_ call: Call<AgentClient, Answer>) async throws(HoplineError) -> Answer {
        switch call.operation {
        case "wait_session":
            guard call.text("session_id") == "s-1" else {
                throw HoplineError(
                    message: "busy", kind: .busy, effect: .none, operation: call.operation, what: "busy", advice: .wait,
                    sessionId: call.text("session_id"), attempts: 0)
            }
            return call.answer(OpenSession(self, session("one.example")))
        case "rotate_session": return call.answer(session("two.example"))
        case "get_balance": return call.answer(Reply(Undocumented()))
        case "saved": return call.answer([Saved]())
        default: call.missing()
        }
    }

    private func session(_ host: String) -> Reply<Session> {
        Reply(Session(sessionId: "s-1", status: .active, proxy: Proxy(host: host, port: 8000)))
    }
}

@Suite("a view model takes a fake of the client")
struct AgentTests {
    @Test("a fake answers what the view model asks")
    @MainActor
    func fake() async throws {
        let shop = Shop(Fake())
        let open = try #require(await shop.open("s-1"))
        #expect(shop.shown == "s-1 at one.example")
        try await open.rotate(reason: .manual)
        #expect(open.proxy?.host == "two.example" && open.generation == 1 && open.phase == .ready)
        #expect(try open.release())
        #expect(await shop.open("s-2") == nil)
        #expect(shop.shown == "another device has it: s-2")
        let agent: any Agent = Fake()
        try await agent.getBalance()
        #expect(try await agent.saved().isEmpty)
    }

    @Test("the clients are what the protocols say, and a call that one hands on shows no parameter")
    func clients() async throws {
        struct Wrapped: Agent {
            let client: AgentClient
            let calls: Calls

            func answer<Answer: Sendable>(_ call: Call<AgentClient, Answer>) async throws(HoplineError) -> Answer {
                calls.add("\(call)")
                return try await client.answer(call)
            }
        }
        let transport = Sending { _ in
            Response(status: 200, headers: [(name: "Content-Type", value: "application/json")], body: Data(#"{"success":true,"data":{"balance":1}}"#.utf8))
        }
        let client = try AgentClient(apiKey: "canary-key", baseURL: "https://api.example/v1", transport: transport)
        let calls = Calls()
        let agent: any Agent = Wrapped(client: client, calls: calls)
        #expect(try await agent.getBalance().raw.text == #"{"balance":1}"#)
        #expect(try await agent.saved().isEmpty)
        #expect(calls.all == ["get_balance", "saved"])
        await client.close()
        let reseller: any Reseller = try ResellerClient(baseURL: "https://api.example/api", token: "t", transport: transport)
        #expect(try await reseller.saved().isEmpty)
    }
}

/// What was called, from many threads.
private final class Calls: @unchecked Sendable {
    private let lock = NSLock()
    private var names: [String] = []

    func add(_ name: String) {
        lock.withLock { names.append(name) }
    }

    var all: [String] { lock.withLock { names } }
}
