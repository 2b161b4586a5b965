import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

internal import HoplineCore

extension PoolReplace: Parameter {}
extension PoolOnChange: Parameter {}

/// Lends sessions, and buys, rotates and replaces them as needed: never more than its `size` at a time, over all clients of the store. A
/// pool works in the background until it is closed or drained, or its client is closed.
public struct Pool: Sendable {
    /// The name of the pool.
    public let name: String
    let client: AgentClient
    let number: Int
    private let exits = Exits()

    init(name: String, client: AgentClient, number: Int) {
        (self.name, self.client, self.number) = (name, client, number)
    }

    /// Waits for a session, lends it to `use`, and takes it back when that returns or throws. After the advice `giveBack` leave `use` and
    /// come again: an exit never changes under a lease. The pool knows of a failed request only what `observe` of the lease is given, so
    /// observe an error before `use` throws it.
    ///
    /// Throws a `HoplineError` of the kind `unavailable` if there is no session in time, at once if none can be, with the counts and, if
    /// known, `retryAt`; and of the kind `cancelled` if its task is cancelled while it waits.
    ///
    /// - Parameters:
    ///   - target: The target of the requests, such as a host: blocks that are observed for it count for this target alone.
    ///   - key: A key for a sticky session: the same key gets the same session as long as this client has it and its exit has not changed.
    ///   - avoid: A session that is not wanted, by its id, such as that of the attempt before.
    ///   - timeout: How long to wait for a session.
    ///   - use: The work with the session.
    public func withLease<Value: Sendable>(
        target: String? = nil, key: String? = nil, avoid: String? = nil, timeout: Duration = .seconds(30),
        isolation: isolated (any Actor)? = #isolation, _ use: (Lease) async throws -> Value
    ) async throws -> Value {
        let lent = try await acquire(target, key, avoid, timeout)
        let lease = Lease(lent, target: target, data: exits.data(lent), client: client)
        defer { lease.giveBack() }
        return try await use(lease)
    }

    /// Returns the status. With `everywhere`, the slots of other clients are read from the store first; otherwise they count as this client
    /// saw them last, or as `unknown`.
    public func status(everywhere: Bool = false) async throws(HoplineError) -> PoolStatus {
        var told = Parameters()
        told.add("everywhere", everywhere)
        return try await ask("pool_status", told).reply("pool_status").value
    }

    /// Waits until that many sessions are free, at most the pool's `keepReady`.
    @discardableResult
    public func waitReady(_ count: Int = 1, timeout: Duration = .seconds(300)) async throws(HoplineError) -> PoolStatus {
        var told = Parameters()
        told.add("count", count)
        told.add("timeout_ms", timeout)
        return try await ask("wait_ready", told).reply("wait_ready").value
    }

    /// Stops buying until `resume`, in every client of the store, also in those that open the pool later. Existing sessions are lent.
    public func pause() async throws(HoplineError) {
        _ = try await ask("pause_pool")
    }

    /// Buys again, in every client of the store, even if the pool was drained or had stopped until a person or program acts.
    public func resume() async throws(HoplineError) {
        _ = try await ask("resume_pool")
    }

    /// Stops lending, waits that long for leases, and releases its sessions, which stay for the next client. Does nothing if it is closed
    /// already.
    public func close(grace: Duration = .seconds(10)) async {
        var told = Parameters()
        told.add("grace_ms", grace)
        _ = try? await ask("close_pool", told)
        exits.clear()
    }

    /// Closes the pool and terminates the dynamic sessions of this client, whose prepaid traffic is lost. The pool stays paused until
    /// `resume`, in every client of the store.
    ///
    /// Throws a `HoplineError` of the kind `unavailable`, which names the sessions, if some still live after `grace`, and of the
    /// kind `misuse` if the pool is closed.
    ///
    /// - Parameters:
    ///   - grace: How long it may take, at least 5 s. The last 5 s of it, or half of less than 10 s, are for terminating sessions; until
    ///     then leases are waited for.
    ///   - everywhere: True if all clients of the store drain it, and the sessions that none of them has are terminated, too.
    ///   - includeStatic: True if static sessions are terminated, too; they are not refunded.
    public func drain(grace: Duration = .seconds(10), everywhere: Bool = false, includeStatic: Bool = false) async throws(HoplineError) {
        var told = Parameters()
        told.add("grace_ms", grace)
        told.add("everywhere", everywhere)
        told.add("include_static", includeStatic)
        _ = try await ask("drain_pool", told)
        exits.clear()
    }

    private func acquire(_ target: String?, _ key: String?, _ avoid: String?, _ timeout: Duration) async throws(HoplineError) -> PoolLease {
        var told = Parameters()
        told.add("target", target)
        told.add("key", key)
        told.add("avoid", avoid)
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
    /// The name.
    public var description: String { "pool \(name)" }
    /// The name, without the client.
    public var customMirror: Mirror { Mirror(self, children: ["name": name], displayStyle: .struct) }
}

/// A session that a pool has lent.
public struct Lease: Sendable {
    /// The target of the lease.
    public let target: String?
    private let lent: PoolLease
    private let kept: LeaseData
    private let course = LeaseCourse()
    private let client: AgentClient

    init(_ lent: PoolLease, target: String?, data: LeaseData, client: AgentClient) {
        (self.lent, self.target, self.kept, self.client) = (lent, target, data, client)
    }

    /// The session.
    public var sessionId: String { lent.sessionId }
    /// The proxy of the session. Throws a `HoplineError` of the kind `misuse` if the lease was given back.
    public var proxy: Proxy {
        get throws(HoplineError) {
            try course.check()
            return lent.proxy
        }
    }
    /// A place for what belongs to the session's exit, such as cookies or an HTTP client: it is empty again once that has changed, or the
    /// pool was closed. A value that holds the pool or its client keeps both alive, and buying, until then; let it hold them weakly. Throws a
    /// `HoplineError` of the kind `misuse` if the lease was given back.
    public var data: LeaseData {
        get throws(HoplineError) {
            try course.check()
            return kept
        }
    }
    /// The generation, which grows whenever the session gets another exit or other credentials.
    public var generation: Int { lent.generation }
    /// The slot of the session in the pool.
    public var slot: Int { lent.slot }
    /// True as long as this client has the lease: until it was given back, the store's claim of its slot has ended, or its client is
    /// closed.
    public var isValid: Bool { client.driver.isValid(pool: UInt32(lent.pool), lease: Int64(lent.lease)) }

    /// The time to come again for the target, as of the last `observe`; nil if none is known. It stays when the lease is given back.
    public var retryAt: Date? { course.retryAt }

    /// Never lends the session again: once the lease was given back, a dynamic one is terminated and loses its prepaid traffic, and another
    /// one is bought in its place unless the pool's `replace` is `never`. Throws a `HoplineError` of the kind `misuse` if the lease was given back.
    public func discard() throws(HoplineError) {
        try course.check()
        client.driver.ask(.discardLease(pool: UInt32(lent.pool), lease: Int64(lent.lease)))
    }

    /// Gives the lease back, after its data that the store is to keep.
    func giveBack() {
        course.end()
        let (pool, lease) = (UInt32(lent.pool), Int64(lent.lease))
        // What is too long stays in this client; a lease that is not valid any more leaves nothing behind.
        if let news = kept.news(), case .nothing = client.driver.ask(.setLeaseData(pool: pool, lease: lease, data: news.text)) { kept.store(news) }
        client.driver.ask(.releaseLease(pool: pool, lease: lease))
    }

    /// Returns advice after an observation through the lease: `giveBack` if it is not valid any more. Nothing is sent. Throws a
    /// `HoplineError` of the kind `invalid` for an invalid status.
    ///
    /// - Parameters:
    ///   - seen: The observation from a request.
    ///   - retryAfter: The wait that the target asked for, with 429.
    @discardableResult
    public func observe(_ seen: Seen, retryAfter: Duration? = nil) throws(HoplineError) -> LeaseAdvice {
        guard !client.driver.closed else { return .giveBack }
        let (pool, lease) = (UInt32(lent.pool), Int64(lent.lease))
        switch client.driver.ask(.observeLease(pool: pool, lease: lease, seen: seen.json.text, waitMs: retryAfter?.milliseconds)) {
        case .leaseAdvice(let word?):
            course.note(client.driver.retryAt(pool: pool, lease: lease))
            return LeaseAdvice(rawValue: word) ?? .giveBack
        case .refused(let packed): throw HoplineError(packed: packed)
        // A lease that is not valid any more, or whose exit has changed, is of no use.
        default: return .giveBack
        }
    }

    /// Returns advice after a response of `URLSession`, whose `Retry-After` is the wait that the target asks for.
    @discardableResult
    public func observe(_ response: HTTPURLResponse) throws(HoplineError) -> LeaseAdvice {
        var told = Parameters()
        told.add("header", response.value(forHTTPHeaderField: "Retry-After") ?? "")
        told.add("date", response.value(forHTTPHeaderField: "Date"))
        told.add("now", Int(client.driver.time.unix()))
        let wait: TargetWait = try ask("retry_after", told.json)
        return try observe(.status(response.statusCode), retryAfter: wait.wait_ms.map { .milliseconds($0) })
    }

    /// Returns advice after an error of the HTTP client that sent a request through the lease.
    @discardableResult
    public func observe(_ error: any Error) -> LeaseAdvice {
        (try? observe(Seen(error))) ?? .giveBack
    }
}

/// What becomes of a lease.
private final class LeaseCourse: @unchecked Sendable {
    private let lock = NSLock()
    /// The lock guards both.
    private var isOver = false
    private var knownRetryAt: Date?

    var retryAt: Date? { lock.withLock { knownRetryAt } }

    func note(_ retryAt: Date?) {
        lock.withLock { knownRetryAt = retryAt }
    }

    func end() {
        lock.withLock { isOver = true }
    }

    func check() throws(HoplineError) {
        guard lock.withLock({ isOver }) else { return }
        throw HoplineError(.misuse, "lease", "the lease was given back", advice: .changeRequest, say: "acquire another one")
    }
}

/// The exits of a pool's slots, for as long as they stay the same.
private final class Exits: @unchecked Sendable {
    private let lock = NSLock()
    /// By slot; the lock guards them.
    private var known: [Int: (sessionId: String, generation: Int, data: LeaseData)] = [:]

    func data(_ lent: PoolLease) -> LeaseData {
        lock.withLock {
            let before = known[lent.slot].flatMap { ($0.sessionId, $0.generation) == (lent.sessionId, lent.generation) ? $0.data : nil }
            let data = before ?? LeaseData()
            data.take(lent.data)
            known[lent.slot] = (lent.sessionId, lent.generation, data)
            return data
        }
    }

    /// Lets go of the callers' values, which may hold the pool themselves.
    func clear() {
        // A value may do anything as it goes, so it does not go under the lock.
        let over = lock.withLock {
            defer { known = [:] }
            return known
        }
        withExtendedLifetime(over) {}
    }
}

/// The wait that a target asks for.
private struct TargetWait: Decodable {
    let wait_ms: Int64?
}

extension Lease: CustomStringConvertible, CustomReflectable {
    /// The session's id and its slot.
    public var description: String { "\(sessionId) (slot \(slot))" }
    /// All members except the client.
    public var customMirror: Mirror {
        Mirror(self, children: ["sessionId": sessionId, "slot": slot, "generation": generation], displayStyle: .struct)
    }
}
