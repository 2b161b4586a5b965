import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

internal import HoplineCore

extension PoolReplace: Parameter {}
extension PoolOnChange: Parameter {}

/// Lends sessions, and buys, rotates and replaces them as needed: never more than its `size` at a time, over all clients of the store. It
/// works while nobody calls it, until it is closed or drained, or its client is closed.
public struct Pool: Sendable {
    /// Its name.
    public let name: String
    let client: AgentClient
    let number: Int

    /// Waits for a session, lends it to `use`, and takes it back when that returns or throws. After the advice `giveBack` leave `use` and come
    /// again: an exit never changes under a lease.
    ///
    /// It throws a `HoplineError` of the kind `unavailable` if there is no session in time, at once where none can be bought for longer than
    /// that, and of the kind `cancelled` if its task is cancelled while it waits.
    ///
    /// - Parameters:
    ///   - target: What is to be reached, such as a host: what is seen there counts for it alone.
    ///   - key: The same key gets the same session as long as this client has it and its exit has not changed.
    ///   - timeout: How long to wait for a session.
    ///   - use: What is done with the session.
    public func withLease<Value: Sendable>(
        target: String? = nil, key: String? = nil, timeout: Duration = .seconds(30), isolation: isolated (any Actor)? = #isolation,
        _ use: (Lease) async throws -> Value
    ) async throws -> Value {
        let lent = try await acquire(target, key, timeout)
        defer { client.driver.ask(.releaseLease(pool: UInt32(number), lease: Int64(lent.lease))) }
        return try await use(Lease(target: target, lent: lent, client: client))
    }

    /// How it is, as far as this client knows; with `everywhere`, the store is asked what other clients have.
    public func status(everywhere: Bool = false) async throws(HoplineError) -> PoolStatus {
        var told = Parameters()
        told.add("everywhere", everywhere)
        return try await ask("pool_status", told).reply("pool_status").value
    }

    /// Waits until so many of the sessions that are kept `ready` are.
    @discardableResult
    public func waitReady(_ count: Int = 1, timeout: Duration = .seconds(300)) async throws(HoplineError) -> PoolStatus {
        var told = Parameters()
        told.add("count", count)
        told.add("timeout_ms", timeout)
        return try await ask("wait_ready", told).reply("wait_ready").value
    }

    /// Buys nothing from here on, in any client of the store; what there is is lent.
    public func pause() async throws(HoplineError) {
        _ = try await ask("pause_pool")
    }

    /// Buys again, also where that was to wait until somebody says so.
    public func resume() async throws(HoplineError) {
        _ = try await ask("resume_pool")
    }

    /// Lends no more, waits that long for leases, and releases its sessions, which live on for the next client. Nothing happens if it is closed
    /// already.
    public func close(grace: Duration = .seconds(10)) async {
        var told = Parameters()
        told.add("grace_ms", grace)
        _ = try? await ask("close_pool", told)
    }

    /// The same, and terminates its dynamic sessions.
    ///
    /// - Parameters:
    ///   - grace: How long leases are waited for.
    ///   - everywhere: Whether all clients of the store drain it, and what none of them has is terminated, too.
    ///   - includeStatic: Whether static sessions are terminated, too; they are not refunded.
    public func drain(grace: Duration = .seconds(10), everywhere: Bool = false, includeStatic: Bool = false) async throws(HoplineError) {
        var told = Parameters()
        told.add("grace_ms", grace)
        told.add("everywhere", everywhere)
        told.add("include_static", includeStatic)
        _ = try await ask("drain_pool", told)
    }

    private func acquire(_ target: String?, _ key: String?, _ timeout: Duration) async throws(HoplineError) -> PoolLease {
        var told = Parameters()
        told.add("target", target)
        told.add("key", key)
        told.add("timeout_ms", timeout)
        return try await ask("acquire", told).reply("acquire").value
    }

    private func ask(_ operation: String, _ told: Parameters = Parameters()) async throws(HoplineError) -> Answered {
        var told = told
        told.add("pool", number)
        return try await client.answer(operation, told.json.text, Parameters())
    }
}

extension Pool: CustomStringConvertible, CustomReflectable {
    /// Its name.
    public var description: String { "pool \(name)" }
    /// Its name; nothing of the client.
    public var customMirror: Mirror { Mirror(self, children: ["name": name], displayStyle: .struct) }
}

/// A session that a pool has lent.
public struct Lease: Sendable {
    /// What it was lent for.
    public let target: String?
    let lent: PoolLease
    let client: AgentClient

    /// The session.
    public var sessionId: String { lent.sessionId }
    /// How to reach it.
    public var proxy: Proxy { lent.proxy }
    /// Grows whenever the session gets another exit or other credentials.
    public var generation: Int { lent.generation }
    /// The slot of the pool that the session is of.
    public var slot: Int { lent.slot }
    /// Whether it is this client's still: not once it was given back, the store's claim of its slot has ended, or its client is closed.
    public var isValid: Bool { client.driver.isValid(pool: UInt32(lent.pool), lease: Int64(lent.lease)) }

    /// What to do after something was seen through it: `giveBack` where it is not valid any more. Nothing is sent by this. It throws a
    /// `HoplineError` of the kind `invalid` for a status that is none.
    ///
    /// - Parameters:
    ///   - seen: What a request through it met.
    ///   - retryAfter: How long the target asked to wait, with 429.
    @discardableResult
    public func observe(_ seen: Seen, retryAfter: Duration? = nil) throws(HoplineError) -> LeaseAdvice {
        guard !client.driver.closed else { return .giveBack }
        let (pool, lease) = (UInt32(lent.pool), Int64(lent.lease))
        switch client.driver.ask(.observeLease(pool: pool, lease: lease, seen: seen.json.text, waitMs: retryAfter?.milliseconds)) {
        case .leaseAdvice(let word?): return LeaseAdvice(rawValue: word) ?? .giveBack
        case .refused(let packed): throw HoplineError(packed: packed)
        // What is not valid any more, or has another exit by now, is of no use.
        default: return .giveBack
        }
    }

    /// The same of a response of `URLSession`, whose `Retry-After` says how long the target asks to wait.
    @discardableResult
    public func observe(_ response: HTTPURLResponse) throws(HoplineError) -> LeaseAdvice {
        var told = Parameters()
        told.add("header", response.value(forHTTPHeaderField: "Retry-After") ?? "")
        told.add("date", response.value(forHTTPHeaderField: "Date"))
        told.add("now", Int(Clock.unix))
        let wait: TargetWait = try ask("retry_after", told.json)
        return try observe(.status(response.statusCode), retryAfter: wait.wait_ms.map { .milliseconds($0) })
    }

    /// The same of an error of the HTTP client that sent a request through it.
    @discardableResult
    public func observe(_ error: any Error) -> LeaseAdvice {
        (try? observe(Seen(error))) ?? .giveBack
    }
}

/// How long a target asks to wait.
private struct TargetWait: Decodable {
    let wait_ms: Int64?
}

extension Lease: CustomStringConvertible, CustomReflectable {
    /// Which session.
    public var description: String { "\(sessionId) (slot \(slot))" }
    /// All but the client.
    public var customMirror: Mirror {
        Mirror(self, children: ["sessionId": sessionId, "slot": slot, "generation": generation], displayStyle: .struct)
    }
}
