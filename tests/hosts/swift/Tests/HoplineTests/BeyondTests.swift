import Foundation
import Hopline
import Kit
import Testing

@Suite("what goes beyond the table")
struct BeyondTests {
    private func product(_ price: String, _ kind: String = "dynamic") throws -> Product {
        try Product(
            productNo: "p-1", name: "P", type: SessionType(rawValue: kind), sharing: .shared, available: true, price: number(price),
            currency: "USD", unit: "GB")
    }

    @Test("a quote is what the service charges")
    func charged() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let offered = try #require(try await agent.listProducts(limit: 100).items.first { $0.productNo == "dynamic-world" })
        let told = try quote(offered, quantity: number("0.3"))
        #expect(told.productNo == offered.productNo && told.unitPrice == offered.price && told.currency == "USD" && told.unit == offered.unit)
        #expect(try told.total == offered.price * number("0.3"))
        let bought = try await agent.createSession(sessionType: .dynamic, productNo: told.productNo, quantity: told.quantity)
        #expect(bought.estimatedChargeUsd == told.total)
    }

    @Test("a quote is exact, rounded up in its last digit, or refused")
    func exact() async throws {
        #expect(try quote(product("4.10"), quantity: number("0.3")).total == number("1.23"))
        #expect(try quote(product("0.1"), quantity: 3).total == number("0.3"))
        #expect(try quote(product("0.000000000001"), quantity: number("1000000.000001")).total == number("0.000001000000000001"))
        // The last digit that a decimal has is rounded up.
        #expect(try quote(product("0.00000000000001"), quantity: number("0.000000000000000001")).total == number("0.0000000000000000000000000001"))
        for wrong in [0, -1, Decimal.nan] {
            let error = try await failure { try quote(product("0.00000000000001"), quantity: wrong) }
            #expect(error.kind == .invalid && error.operation == "quote" && error.field == "quantity", "\(wrong): \(error)")
        }
        let half = try await failure { try quote(product("1", "static"), quantity: number("1.5")) }
        #expect(half.message.contains("whole number of addresses"))
    }

    @Test("events are told, and show in the health of a session")
    func events() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let open = try await agent.open()
        let event = try sessionEvent(
            status: 403, latency: .milliseconds(120), bytes: 2048, target: "shop.example", more: ["attempt": 1, "note": ["page": 2]])
        #expect(event == ["status": 403, "latency_ms": 120, "bytes": 2048, "target": "shop.example", "attempt": 1, "note": ["page": 2]])
        for _ in 0..<3 { try await agent.reportSessionEvent(sessionId: open.sessionId, event: event) }
        let health = try await agent.getSessionHealth(sessionId: open.sessionId).raw.decode(JSON.self)
        #expect(health["metrics"]?["bad_events"] == 3 && health["rotation"] == ["recommended": true, "reason": "http_403"])
        #expect(try sessionEvent(seen: .captcha) == ["seen": "captcha"])
        for target in ["https://shop.example/?token=canary", "user:canary@shop.example"] {
            #expect(try sessionEvent(target: target) == ["target": "shop.example"])
        }
        try await agent.reportSessionEvent(sessionId: open.sessionId, event: ["anything": ["else"]])
    }

    @Test("an event that is none is refused, and not repeated")
    func noEvent() async throws {
        let bad: [(String, HoplineError)] = [
            ("status", try await failure { try sessionEvent(status: 99) }), ("status", try await failure { try sessionEvent(status: 600) }),
            ("latency", try await failure { try sessionEvent(latency: .milliseconds(-1)) }),
            ("bytes", try await failure { try sessionEvent(bytes: -1) }), ("target", try await failure { try sessionEvent(target: "") }),
            ("target", try await failure { try sessionEvent(target: "canary:canary") }), ("facts", try await failure { try sessionEvent() }),
            ("more", try await failure { try sessionEvent(status: 200, more: ["status": "canary"]) }),
        ]
        for (field, error) in bad {
            #expect(error.kind == .invalid && error.field == field && !error.debugDescription.contains("canary"), "\(error.debugDescription)")
        }
    }

    @Test("a request of the caller's own reaches what has no method")
    func request() async throws {
        let sandbox = try await Sandbox()
        let agent = try sandbox.client()
        #expect(try await agent.request(.get, "/billing/balance").raw == agent.getBalance().raw)
        let listed = try await agent.request(.get, "/products", query: ["type": "static", "limit": "2"])
        #expect(try listed.raw.decode(JSON.self)["items"]?.array?.map { $0["type"] } == ["static", "static"] && listed.requestId != nil)
        let amount: JSON = ["amount_usd": .number(try number("10.50"))]
        let order = try await agent.request(.post, "/billing/recharge", body: amount, safety: .keyed, intent: "top-up")
        let again = try await agent.request(.post, "/billing/recharge", body: amount, safety: .keyed, intent: "top-up")
        let (one, other) = (try order.raw.decode(JSON.self), try again.raw.decode(JSON.self))
        #expect(try one["amount_usd"]?.decimal == number("10.5") && one["order_id"] != nil && one["order_id"] == other["order_id"])
        #expect(try await agent.request(.get, "/billing/balance", until: Until(at: "/balance", atLeast: 1)).phase == .ready)
        let error = try await failure { try await agent.request(.get, "/nothing/here") }
        #expect(error.kind == .refused && error.status == 404 && error.operation == "request")
    }

    @Test("a write whose safety is not said is never sent twice")
    func once() async throws {
        let wire = try Wire(asked: { connection, _ in connection.close() })
        let error = try await failure { try await client(wire.url, attempts: 4).request(.post, "/x", body: ["n": .number(number("0.10")), "m": nil]) }
        #expect(error.kind == .inDoubt && error.attempts == 1 && wire.seen.count == 1)
        #expect(wire.seen[0].hasSuffix(#"{"m":null,"n":0.1}"#), "\(wire.seen)")
    }

    @Test("a request that can't be is refused before anything is sent")
    func noRequest() async throws {
        let wire = try Wire()
        let agent = try client(wire.url)
        for path in ["x", "/../x", "/x?y=1", "//host/x", ""] {
            let error = try await failure { try await agent.request(.get, path) }
            #expect(error.kind == .invalid && error.effect == .none && error.operation == "request", "\(path): \(error)")
        }
        let deep = (0..<2_000).reduce(JSON.null) { inner, _ in .array([inner]) }
        let nested = try await failure { try await agent.request(.post, "/x", body: deep) }
        #expect(nested.kind == .invalid && nested.message.contains("100 levels"))
        let nan = try await failure { try await agent.request(.post, "/x", body: ["n": .number(.nan)]) }
        let key = try await failure { try await agent.request(.get, "/x", options: CallOptions(headers: ["x-api-key": "canary"])) }
        #expect(nan.kind == .invalid && key.kind == .invalid && key.field == "headers" && wire.seen.isEmpty)
    }
}
