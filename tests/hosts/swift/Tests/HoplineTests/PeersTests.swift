import Foundation
import Hopline
import Kit
import Testing

/// The odd server before a sandbox. It ends when this object does, or this process.
private final class Peers: Sendable {
    struct Behaviour: Decodable {
        let name: String, answer: String
    }

    struct Ready: Decodable {
        let odd_url: String, behaviours: [Behaviour]
    }

    let ready: Ready
    private let process: Child

    init(_ sandbox: Sandbox) async throws {
        let program = ProcessInfo.processInfo.environment["HOPLINE_PEERS"] ?? "hopline-peers"
        process = try Child(program, ["--service", sandbox.ready.agent_url.replacingOccurrences(of: "/v1", with: "")])
        ready = try await JSONDecoder().decode(Ready.self, from: Data(process.line().utf8))
    }
}

@Suite("URLSession before a server that answers as some do")
struct PeersTests {
    @Test("makes a purchase once, and gives each request its own answer")
    func odd() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--balance", "100000", "--rate-limit", "1000000", "--session-limit", "1000")
        let peers = try await Peers(sandbox)
        var folders = peers.ready.behaviours.map { "\($0.name).once.writes" }
        folders += peers.ready.behaviours.filter { $0.answer == "given" }.map(\.name)
        #if canImport(FoundationNetworking)
            // Foundation of Linux ends the program: "Transfer completed, but there's no response."
            folders.removeAll { $0.hasPrefix("early-hints-close") || $0.hasPrefix("trailers") }
            // It reads no answer whose header is not UTF-8, so that a purchase stays in doubt as long as all of them have one.
            folders.removeAll { $0 == "latin-1-header" }
        #endif
        for folder in folders {
            // Known where Foundation ends the program.
            print("before", folder)
            do {
                try await buy(sandbox, "\(peers.ready.odd_url)/\(folder)/v1")
            } catch {
                Issue.record("\(folder): \(error)")
            }
        }
        #expect(try await sandbox.charges() == folders.count)
    }

    private func buy(_ sandbox: Sandbox, _ url: String) async throws {
        let options = ClientOptions(attempts: 6, timeout: .seconds(10), backoff: .milliseconds(10))
        let agent = try AgentClient(apiKey: Secret(sandbox.ready.api_key), baseURL: url, transport: network, options: options)
        let bought = try await agent.buy("job-17").sessionId
        for _ in 0..<2 { #expect(try await agent.getBalance().raw.text.contains("balance")) }
        #expect(try await agent.getSession(sessionId: bought).sessionId == bought)
        #expect(try await agent.saved().allSatisfy { $0.holds != .inDoubt && $0.holds != .inDoubtForGood })
        await agent.close()
    }
}
