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

/// A folder that is gone when this object is.
final class Folder: Sendable {
    let path = NSTemporaryDirectory() + "hopline-\(UUID().uuidString)"

    var store: FolderStore { FolderStore(path) }

    var records: [String] {
        get throws {
            let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".record") }
            return try names.map { try String(contentsOfFile: "\(path)/\($0)", encoding: .utf8) }
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// A client of an address that is no sandbox, which does not repeat.
func client(
    _ url: String, store: any Store = MemoryStore(), transport: any Transport = URLSessionTransport(), attempts: Int = 1, timeout: Duration? = nil,
    maxBody: Int? = nil
) throws -> AgentClient {
    let options = ClientOptions(maxBody: maxBody, attempts: attempts, timeout: timeout)
    return try AgentClient(apiKey: "canary-key", baseURL: url, store: store, transport: transport, options: options)
}

/// Waits, for a while, until something holds.
func until(_ what: String, _ holds: () async throws -> Bool) async throws {
    for _ in 0..<500 {
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
