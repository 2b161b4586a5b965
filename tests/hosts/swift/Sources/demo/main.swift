// A session's whole life through the Swift package: `cargo xtask demo --host swift [--story reseller] [--seed N]`. HTTP is URLSession;
// the site is fetched through the proxy by curl, since URLSession ignores proxies outside Apple's systems. The other story is in
// Reseller.swift.

import Foundation
import Hopline
import Kit

func tell(_ sandbox: Sandbox, _ folder: String) async throws {
    print("\nhopline for swift: a session's whole life\n")
    // By a name that only the proxy is to look up.
    let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let visit = { @Sendable (proxy: Hopline.Proxy?) async throws -> (status: Int, from: String) in
        guard let proxy else { throw Unmet("the session came without a proxy") }
        let answer = try await curl(site, through: proxy)
        return (answer.status, try JSONDecoder().decode(Visit.self, from: Data(answer.text.utf8)).address)
    }
    let agent = try sandbox.client(store: FolderStore(folder))
    let teller = try await Teller { try await agent.getBalance().raw.decode(Balance.self).balance }
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
    row("proxy", "SOCKS5 at \(open.proxy?.host ?? ""):\(open.proxy?.port ?? 0), with a username and a password; for curl")

    let first = try await teller.step("fetch") { try await visit(open.proxy) }
    row("fetch", "the site answers \(first.status) to exit \(first.from)")
    guard case .rotate(let reason) = try await open.observe(.status(first.status)), reason == .http403 else { throw Unmet("a 403 is a reason to rotate") }
    row("observe", "a block: rotate, with the reason \(reason.rawValue)")
    let rotated = try await teller.step("rotate") { try await open.rotate(includeCredentials: true, reason: reason) }
    row("rotate", "the session has another exit and another password")
    let second = try await teller.step("fetch") { try await visit(rotated.proxy) }
    row("fetch", "the site answers \(second.status) to exit \(second.from)")
    try await teller.step("terminate") { _ = try await open.terminate() }
    try ensure((try? await visit(rotated.proxy)) == nil, "the proxy of an ended session refuses")
    row("terminate", "the session is over, and its proxy refuses the password")
    await agent.close()
    await listening.value

    await teller.show()

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
let given = { name in arguments.firstIndex(of: name).flatMap { arguments.indices.contains($0 + 1) ? arguments[$0 + 1] : nil } }
let folder = NSTemporaryDirectory() + "hopline-demo-\(UUID().uuidString)"
do {
    let sandbox = try await Sandbox("--seed", given("--seed") ?? "7")
    switch given("--story") ?? "life" {
    case "life": try await tell(sandbox, folder)
    case "reseller": try await tellReseller(sandbox, folder)
    case let other: throw Unmet("there is no story `\(other)`; there are life and reseller")
    }
    try FileManager.default.removeItem(atPath: folder)
} catch {
    try? FileManager.default.removeItem(atPath: folder)
    FileHandle.standardError.write(Data("hopline demo: \(error)\n".utf8))
    exit(1)
}
