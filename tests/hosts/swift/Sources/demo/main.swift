// A session's whole life through the Swift package: `cargo xtask demo --host swift [--seed N]`. HTTP is URLSession; the site is
// fetched through the session's proxy by curl, since URLSession can't give a SOCKS5 proxy a password.

import Foundation
import Hopline
import Kit

func row(_ label: String, _ text: String) {
    print("  \(label.padding(toLength: 11, withPad: " ", startingAt: 0))\(text)")
    fflush(nil)
}

func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}

func usd(_ amount: Decimal) -> String {
    String(format: "%.2f", NSDecimalNumber(decimal: amount).doubleValue)
}

func ensure(_ holds: Bool, _ said: String) throws {
    if !holds { throw Unmet(said) }
}

struct Balance: Decodable {
    let balance: Decimal
}

struct Visit: Decodable {
    let address: String
}

/// A client, and what its steps cost.
actor Teller {
    struct Step {
        let name: String
        let time: Duration
        let cost: Decimal
        let balance: Decimal
    }

    let agent: AgentClient
    private(set) var steps: [Step] = []
    private(set) var balance: Decimal

    init(_ agent: AgentClient) async throws {
        self.agent = agent
        balance = try await agent.getBalance().raw.decode(Balance.self).balance
    }

    /// Does a step, and reads what it cost.
    func step<Done: Sendable>(_ name: String, _ work: @Sendable () async throws -> Done) async throws -> Done {
        let began = ContinuousClock.now
        let done = try await work()
        let time = ContinuousClock.now - began
        let now = try await agent.getBalance().raw.decode(Balance.self).balance
        steps.append(Step(name: name, time: time, cost: balance - now, balance: now))
        balance = now
        return done
    }
}

func tell(_ sandbox: Sandbox, _ folder: String) async throws {
    print("\nhopline for swift: a session's whole life\n")
    // By a name that only the proxy is to look up.
    let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let visit = { @Sendable (proxy: Hopline.Proxy?) throws -> (status: Int, from: String) in
        guard let proxy else { throw Unmet("the session came without a proxy") }
        let answer = try curl(site, through: proxy)
        return (answer.status, try JSONDecoder().decode(Visit.self, from: Data(answer.text.utf8)).address)
    }
    let agent = try sandbox.client(store: FolderStore(folder))
    let teller = try await Teller(agent)
    let before = await teller.balance
    try await sandbox.control("target", ["block_first_exit": true])
    row("balance", "\(usd(before)) USD")
    let events = agent.events()
    let listening = Task {
        for await event in events {
            switch event.what {
            case .accepted(let id, let charge): row("accepted", "\(id), for \(usd(charge ?? 0)) USD")
            case .status(let id, let status, _): row(status.rawValue, id)
            default: break
            }
        }
    }

    let offered = try await agent.listProducts(type: .dynamic, limit: 100).items.filter(\.available)
    guard let cheapest = offered.min(by: { $0.price < $1.price }) else { throw Unmet("a dynamic product is offered") }
    row("cheapest", "\(cheapest.productNo) at \(usd(cheapest.price)) USD a \(cheapest.unit), of \(offered.count) dynamic products")
    let open = try await teller.step("buy 1 GB") {
        try await agent.openSession(sessionType: .dynamic, productNo: cheapest.productNo, quantity: 1, intent: "demo", credentials: true)
    }
    try ensure(open.phase == .ready, "the session is usable")
    row("proxy", "SOCKS5 at \(open.proxy?.host ?? ""):\(open.proxy?.port ?? 0), with a username and a password; curl speaks it, URLSession does not")

    let first = try await teller.step("fetch") { try visit(open.proxy) }
    row("fetch", "the site answers \(first.status) to exit \(first.from)")
    guard case .rotate(let reason) = try await open.observe(.status(first.status)), reason == .http403 else { throw Unmet("a 403 is a reason to rotate") }
    row("observe", "a block: rotate, with the reason \(reason.rawValue)")
    let rotated = try await teller.step("rotate") { try await open.rotate(includeCredentials: true, reason: reason) }
    row("rotate", "the session has another exit and another password")
    let second = try await teller.step("fetch") { try visit(rotated.proxy) }
    row("fetch", "the site answers \(second.status) to exit \(second.from)")
    try await teller.step("terminate") { _ = try await open.terminate() }
    try ensure((try? visit(rotated.proxy)) == nil, "the proxy of an ended session refuses")
    row("terminate", "the session is over, and its proxy refuses the password")
    await agent.close()
    await listening.value

    print("\n  \("step".padding(toLength: 11, withPad: " ", startingAt: 0))\(right("time", 8))\(right("cost USD", 12))\(right("balance USD", 14))")
    for step in await teller.steps {
        let (seconds, attoseconds) = step.time.components
        let time = String(format: "%.2f s", Double(seconds) + Double(attoseconds) / 1e18)
        row(step.name, right(time, 8) + right(usd(step.cost), 12) + right(usd(step.balance), 14))
    }

    let state = try await sandbox.state()
    let charges = state.charges.map { "\($0.operation) \($0.session_id) \($0.amount)" }
    try ensure(charges == ["create_session \(open.sessionId) \(cheapest.price)"], "one charge of \(cheapest.price) USD, and not \(charges)")
    try ensure(state.sessions.map { "\($0.session_id) \($0.status) \($0.rotations)" } == ["\(open.sessionId) terminated 1"], "one session, which ended")
    let after = await teller.balance
    try ensure(state.balance == after && before - after == cheapest.price, "the balance fell by the price")
    try ensure(first.status == 403 && second.status == 200 && first.from != second.from, "the rotation changed the exit")
    try ensure(state.sessions.first?.exit == second.from, "the exit is the sandbox's")
    print()
    row("checked", "one session, one charge, two exits; the service's own books say the same\n")
}

let arguments = CommandLine.arguments
let seed = arguments.firstIndex(of: "--seed").flatMap { arguments.indices.contains($0 + 1) ? arguments[$0 + 1] : nil } ?? "7"
let folder = NSTemporaryDirectory() + "hopline-demo-\(UUID().uuidString)"
do {
    try await tell(Sandbox("--seed", seed), folder)
    try FileManager.default.removeItem(atPath: folder)
} catch {
    try? FileManager.default.removeItem(atPath: folder)
    FileHandle.standardError.write(Data("hopline demo: \(error)\n".utf8))
    exit(1)
}
