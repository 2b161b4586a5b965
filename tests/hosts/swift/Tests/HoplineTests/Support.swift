import Foundation
import Hopline
import Kit
import Testing

/// Runs what is to fail, and gives the failure.
func failure<Value>(_ work: () async throws -> Value, _ at: SourceLocation = #_sourceLocation) async throws -> HoplineError {
    do {
        let value = try await work()
        Issue.record("was to fail, and gave \(value)", sourceLocation: at)
        throw Unmet("a failure")
    } catch let error as HoplineError {
        return error
    }
}

/// The secrets of the tests are no secrets, so they are written as literals. The package itself has none.
extension Secret: @retroactive ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        self.init(text)
    }
}

extension AgentClient {
    /// The same purchase in all tests.
    @discardableResult
    func buy(_ intent: String? = nil, options: CallOptions = CallOptions()) async throws(HoplineError) -> Reply<Session> {
        try await createSession(sessionType: .dynamic, productNo: "dynamic-world", intent: intent, options: options)
    }

    /// The same, waited for.
    @discardableResult
    func open(_ intent: String? = nil, credentials: Bool = false) async throws(HoplineError) -> OpenSession {
        try await openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: intent, credentials: credentials)
    }
}

extension ResellerClient {
    /// A sub-user that can buy something.
    func funded(_ name: String = "sub-user", with amount: Decimal = 50) async throws -> Int {
        guard let id = try await createUser(username: name, password: "a-password").id else { throw Unmet("a sub-user has a number") }
        try await adjustSubUserBalance(userId: id, amount: amount, remark: "to begin with")
        return id
    }

    /// The same order in all tests.
    @discardableResult
    func place(_ user: Int, intent: String? = nil, deadline: Duration? = nil) async throws(HoplineError) -> OrderReply {
        try await placeOrder(
            poolId: "static-us", userId: user, unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: .month,
            intent: intent, deadline: deadline)
    }
}

/// A static order in the list; the contract leaves its members open.
struct Listed: Decodable {
    struct Instance: Decodable {
        let ip: String
        let port: Int
        let username: Secret
        let password: Secret
        let exit_ip: String
        let expires_at: String
    }

    let order_no: String
    let instances: [Instance]
}

extension OrderReply {
    /// Its only proxy.
    func instance() throws -> Listed.Instance {
        let all = try order.items.flatMap { try $0.decode(Listed.self).instances }
        guard let first = all.first, all.count == 1 else { throw Unmet("an order of one address has one proxy") }
        return first
    }
}

/// A folder that is gone when this object is.
final class Folder: Sendable {
    let path = NSTemporaryDirectory() + "hopline-\(UUID().uuidString)"

    /// For one more client.
    var store: FolderStore { get throws { try FolderStore(path) } }

    /// The records in its files of names.
    var records: [String] {
        get throws {
            let names = URL(fileURLWithPath: "\(path)/names")
            let found = FileManager.default.enumerator(at: names, includingPropertiesForKeys: [.isRegularFileKey])?.compactMap { $0 as? URL } ?? []
            return try found.filter { try $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true }
                .map { try String(contentsOf: $0, encoding: .utf8) }
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// A transport that is a function.
struct Sending: Transport {
    let act: @Sendable (Request) async throws -> Response

    func send(_ request: Request) async throws -> Response { try await act(request) }
}

/// Opens once, for whoever waits at it.
actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func open() {
        isOpen = true
        waiting.forEach { $0.resume() }
        waiting = []
    }

    /// Not left by a cancelled task, either.
    func pass() async {
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }
}

/// A client of an address that is no sandbox, which does not repeat.
func client(
    _ url: String, store: (any Store)? = nil, transport: any Transport = network, attempts: Int = 1, timeout: Duration? = nil,
    maxBody: Int? = nil
) throws -> AgentClient {
    let options = ClientOptions(maxBody: maxBody, attempts: attempts, timeout: timeout)
    return try AgentClient(apiKey: "canary-key", baseURL: url, store: store, transport: transport, options: options)
}

/// Every way in which a value prints.
func shown(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    return "\(value) \(String(reflecting: value)) \(String(describing: value)) \([value]) \((value as? any Error)?.localizedDescription ?? "") \(dumped)"
}

/// Waits, for a while, until something holds.
func until(_ what: String, _ holds: () async throws -> Bool) async throws {
    for _ in 0..<3000 {
        if try await holds() { return }
        try await Task.sleep(for: .milliseconds(20))
    }
    throw Unmet(what)
}

/// Counts, from many threads.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var sum = 0

    func add(_ more: Int) {
        lock.withLock { sum += more }
    }

    var total: Int { lock.withLock { sum } }
}
