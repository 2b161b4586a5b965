import Foundation
import Hopline

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A sandbox of the service, as a process of its own, which ends when this object does, or this process.
public final class Sandbox: Sendable {
    /// The line that it prints when it is ready.
    public struct Ready: Decodable, Sendable {
        public let agent_url: String
        public let api_key: String
        public let backend_url: String
        public let username: String
        public let password: String
        public let control_url: String
        public let target_url: String
        /// Only of one that is over TLS, too.
        public let tls_wrong_name: String?
        public let tls_expired: String?
        public let tls_unknown_ca: String?
    }

    public struct Charge: Decodable, Sendable {
        public let operation: String
        public let session_id: String
        public let amount: Decimal
    }

    public struct Session: Decodable, Sendable {
        public let session_id: String
        public let status: String
        public let rotations: Int
        public let exit: String
    }

    public struct Order: Decodable, Sendable {
        public let order_id: String
        public let status: String
    }

    /// The state of its reseller backend.
    public struct Backend: Decodable, Sendable {
        public struct User: Decodable, Sendable {
            public let id: Int
            public let username: String
            public let balance: Decimal
        }

        public struct Order: Decodable, Sendable {
            public let order_no: String
            public let user_id: Int
            public let status: String
            public let total_amount: Decimal
            public let traffic_bytes: Int
        }

        public struct Entry: Decodable, Sendable {
            public let user_id: Int
            public let type: String
            public let order_no: String?
            public let amount: Decimal
        }

        public let users: [User]
        public let static_orders: [Order]
        public let entries: [Entry]

        /// The orders that were paid for, one by one.
        public var purchases: [String] { entries.filter { $0.type == "purchase" }.compactMap(\.order_no) }
    }

    /// Its own books.
    public struct State: Decodable, Sendable {
        public let balance: Decimal
        public let charges: [Charge]
        public let sessions: [Session]
        public let orders: [Order]
        public let backend: Backend
        public let executions: [String: Int]
    }

    public let ready: Ready
    private let process: Child

    public init(_ options: String...) async throws {
        let program = ProcessInfo.processInfo.environment["HOPLINE_SANDBOX"] ?? "hopline-sandbox"
        process = try Child(program, ["--with-parent", "--listen", "127.0.0.1:0"] + options)
        ready = try await JSONDecoder().decode(Ready.self, from: Data(process.line().utf8))
    }

    public func client(
        store: (any Store)? = nil, transport: any Transport = network, dailyCapUsd: Decimal? = nil,
        backendReady: Bool? = nil, options: ClientOptions = ClientOptions()
    ) throws -> AgentClient {
        try AgentClient(
            apiKey: Secret(ready.api_key), baseURL: ready.agent_url, store: store, transport: transport, dailyCapUsd: dailyCapUsd,
            backendReady: backendReady, options: options)
    }

    public func reseller(
        password: Secret? = nil, tokenCodes: [String]? = nil, store: (any Store)? = nil,
        transport: any Transport = network, options: ClientOptions = ClientOptions()
    ) throws -> ResellerClient {
        try ResellerClient(
            username: Secret(ready.username), password: password ?? Secret(ready.password), baseURL: ready.backend_url, tokenCodes: tokenCodes,
            store: store, transport: transport, options: options)
    }

    /// The environment of a separate program.
    public var environment: [String: String] {
        [
            "HOPLINE_BASE_URL": ready.agent_url, "HOPLINE_API_KEY": ready.api_key, "HOPLINE_BACKEND_URL": ready.backend_url,
            "HOPLINE_USERNAME": ready.username, "HOPLINE_PASSWORD": ready.password,
        ]
    }

    public func fault(_ operation: String?, times: Int = 1, _ fault: JSON) async throws {
        var told: [String: JSON] = ["times": .number(Decimal(times)), "fault": fault]
        told["operation"] = operation.map { .string($0) }
        try await control("faults", .object(told))
    }

    /// Forgets the faults that nothing has met.
    public func clearFaults() async throws {
        _ = try await ask("faults", nil, method: "DELETE")
    }

    public func control(_ path: String, _ body: JSON) async throws {
        _ = try await ask(path, JSONEncoder().encode(body))
    }

    public func state() async throws -> State {
        try await JSONDecoder().decode(State.self, from: ask("state", nil))
    }

    public func charges() async throws -> Int {
        try await state().charges.count
    }

    public func purchases() async throws -> [String] {
        try await state().backend.purchases
    }

    /// How often an operation was done.
    public func times(_ operation: String) async throws -> Int {
        try await state().executions[operation] ?? 0
    }

    private func ask(_ path: String, _ body: Data?, method: String? = nil) async throws -> Data {
        // Else it may be gone, and the process with it, as soon as its address was read.
        defer { withExtendedLifetime(self) {} }
        let headers = body == nil ? [] : [(name: "content-type", value: "application/json")]
        let response = try await network.send(
            Request(method: method ?? (body == nil ? "GET" : "POST"), url: "\(ready.control_url)/\(path)", headers: headers, body: body, timeout: .seconds(60)))
        guard response.status == 200 else {
            throw Unmet("the sandbox takes `\(path)`: \(String(decoding: response.body, as: UTF8.self))")
        }
        return response.body
    }
}

/// A failed expectation.
public struct Unmet: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}

/// The transport of all tests. On Linux sessions that open and close connections side by side may take each other's place in
/// libdispatch, and then hear of nothing any more; so there is one.
public let network = URLSessionTransport()
