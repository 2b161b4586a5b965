import Foundation
import Hopline
import Kit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The odd server before a sandbox, and the proxies. The program ends when this object does, or this process.
private final class Peers: Sendable {
    struct Behaviour: Decodable {
        let name: String, answer: String
    }

    struct Ready: Decodable {
        let odd_url: String, behaviours: [Behaviour], http: [String: String], socks5: [String: String], control_url: URL
    }

    struct Recorded: Decodable {
        struct Relayed: Decodable {
            let method: String, connection: Int
        }
        struct Login: Decodable {
            let proxy: String, username: String?, password: String?
        }
        let relayed: [Relayed], logins: [Login]
    }

    let ready: Ready
    private let process: Child

    init(_ sandbox: Sandbox) async throws {
        let program = ProcessInfo.processInfo.environment["HOPLINE_PEERS"] ?? "hopline-peers"
        process = try Child(program, ["--service", sandbox.ready.agent_url.replacingOccurrences(of: "/v1", with: "")])
        ready = try await JSONDecoder().decode(Ready.self, from: Data(process.line().utf8))
    }

    func recorded() async throws -> Recorded {
        try await JSONDecoder().decode(Recorded.self, from: URLSession.shared.data(from: ready.control_url).0)
    }

    /// A session's proxy at `host:port`.
    func proxy(_ kind: Hopline.`Protocol`, _ address: String?, _ username: String, _ password: String) throws -> Hopline.Proxy {
        let parts = try #require(address).split(separator: ":").map(String.init)
        return Hopline.Proxy(host: parts[0], port: Int(parts[1]), protocol: kind, username: Secret(username), password: Secret(password))
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
            // URLSession reads no answer whose header is not UTF-8, so that a purchase stays in doubt as long as all of them have one.
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

    @Test("sends every write over a connection that no request has used, so that nobody's answer is a purchase's")
    func connections() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0", "--balance", "100000")
        let peers = try await Peers(sandbox)
        // Every purchase takes longer than the answer of nobody does that comes after the one before it.
        try await sandbox.fault("create_session", times: 5, ["kind": "delay", "ms": 100])
        let url = "\(peers.ready.odd_url)/second-answer-30.writes/v1"
        let agent = try AgentClient(apiKey: Secret(sandbox.ready.api_key), baseURL: url, transport: network)
        var bought: Set<String> = []
        for _ in 0..<5 {
            bought.insert(try await agent.buy().sessionId)
            try await agent.getBalance()
        }
        #expect(bought.count == 5 && !bought.contains("ses_of_nobody"), "\(bought)")
        #expect(try await sandbox.charges() == 5)
        let relayed = try await peers.recorded().relayed
        let (writes, reads) = (relayed.filter { $0.method == "POST" }.map(\.connection), relayed.filter { $0.method == "GET" }.map(\.connection))
        #expect(writes.count == 5 && Set(writes).subtracting(reads).count == 5, "\(writes), \(reads)")
        await agent.close()
    }

    @Test("curl gives a proxy the login as it is, whatever its letters and its length", arguments: [Hopline.`Protocol`.http, .socks5])
    func logins(_ kind: Hopline.`Protocol`) async throws {
        let peers = try await Peers(Sandbox())
        let (address, refuses) = kind == .http ? (peers.ready.http["right"], peers.ready.http["refuses_login"]) : (peers.ready.socks5["right"], peers.ready.socks5["refuses_login"])
        // The limits of SOCKS5.
        let (name, word) = kind == .http ? (600, 2000) : (240, 255)
        let logins = [("søren", "SØREN"), ("ĘdwardĄcki1", "pässword"), (String(repeating: "u", count: name), String(repeating: "p", count: word)), ("user", "%2F:@/ ?#\"\\")]
        for (username, password) in logins {
            #expect(try await curl("http://shop.example/", through: peers.proxy(kind, address, username, password)).status == 200, "\(username)")
        }
        let hex = { (text: String) in text.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
        let given = Set(try await peers.recorded().logins.compactMap { login in login.username.map { "\($0) \(login.password ?? "")" } })
        #expect(given == Set(logins.map { "\(hex($0.0)) \(hex($0.1))" }))
        #expect(try await isRefused("http://shop.example/", through: peers.proxy(kind, refuses, "user", "password")))
    }
}
