import Foundation

/// A session that was opened: what is known of it, and what can be done with it. It shows the newest state that its client has read,
/// whichever call has read it.
public struct OpenSession: Sendable {
    /// Its id.
    public let sessionId: String
    let client: AgentClient
    private let known: KnownSession

    init(_ sessionId: String, _ known: KnownSession, _ client: AgentClient) {
        (self.sessionId, self.known, self.client) = (sessionId, known, client)
    }

    /// Where it is: usable, over, or (`pending`, `unknown`) not usable yet.
    public var phase: Phase { known.state.phase }

    /// The last read of it.
    public var session: Reply<Session> { known.state.session }

    /// What its purchase was charged, in USD, where the service said so.
    public var chargedUsd: Decimal? { known.chargedUsd }

    /// How to reach it; nothing as long as it is not usable. What the last read did not ask for, such as the password, is as it was.
    public var proxy: Proxy? { known.state.proxy }

    /// How often its exit or its credentials have changed, as far as this client knows: make new connections when it has grown.
    public var generation: Int { known.state.generation }

    /// Waits on until it is usable, over, or the deadline has come.
    ///
    /// - Parameters:
    ///   - credentials: Whether the username and password are wanted once it is active.
    ///   - deadline: How long to wait; 5 minutes where it is left out.
    public func wait(credentials: Bool = true, deadline: Duration? = nil) async throws(HoplineError) -> OpenSession {
        try await client.waitSession(sessionId: sessionId, credentials: credentials, deadline: deadline)
    }

    /// Advice on what was seen through it; with `autoRotate`, what `observe` of the client does.
    @discardableResult
    public func observe(_ seen: Seen) async throws(HoplineError) -> Verdict? {
        try await client.observe(sessionId: sessionId, seen: seen)
    }

    /// The same of an error of the HTTP client that sent a request through it.
    @discardableResult
    public func observe(_ error: any Error) async throws(HoplineError) -> Verdict? {
        try await observe(Seen(error))
    }

    /// Follows it no more, without ending it: another client of the store may have it then. Returns whether it was followed.
    @discardableResult
    public func release() throws(HoplineError) -> Bool {
        try client.releaseSession(sessionId)
    }

    /// Every verb of it is called here. Credentials are read again where they are known, unless there is an intent: that stands for one
    /// request, whatever is known.
    func call<Value: Packable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        var params = params
        let reads = ["rotate_session", "get_session"].contains(operation) && told.members["intent"] == nil
        if reads, proxy?.password != nil, params.members["include_credentials"] == nil { params.add("include_credentials", true) }
        let reply: Reply<Value> = try await client.call(operation, params, told)
        if operation == "terminate_session" { known.end() }
        return reply
    }
}

extension OpenSession: CustomStringConvertible, CustomReflectable {
    /// Which session, and where it is.
    public var description: String { "\(sessionId) (\(phase.rawValue))" }

    /// All but the client.
    public var customMirror: Mirror {
        Mirror(self, children: ["sessionId": sessionId, "phase": phase, "session": session], displayStyle: .struct)
    }
}

/// The newest state of a session, for all handles of it.
final class KnownSession: @unchecked Sendable {
    struct State {
        var session: Reply<Session>
        var phase: Phase
        var proxy: Proxy?
        var generation = 0
    }

    let chargedUsd: Decimal?
    private let lock = NSLock()
    // The lock guards what follows.
    private var now: State
    /// The rotation that was taken in last, for which several may have waited.
    private var rotation: String?

    init(_ session: Reply<Session>, _ phase: Phase, _ chargedUsd: Decimal?) {
        self.chargedUsd = chargedUsd
        now = State(session: session, phase: phase, proxy: session.proxy)
    }

    var state: State { lock.withLock { now } }

    /// A call was answered with it.
    func take(_ session: Reply<Session>, _ operation: String) {
        lock.withLock {
            let isRotated = operation == "rotate_session" && (session.requestId == nil || session.requestId != rotation)
            if isRotated { rotation = session.requestId }
            let differs = now.proxy.map { old in session.proxy.map { old.differs($0) } ?? false } ?? false
            if isRotated || differs { now.generation += 1 }
            now.proxy = isRotated || differs ? session.proxy : session.proxy.map { $0.with(now.proxy) } ?? now.proxy
            (now.session, now.phase) = (session, session.phase ?? now.phase)
        }
    }

    func end() {
        lock.withLock { now.phase = .ended }
    }
}

/// The sessions of a client that somebody has a handle of.
final class KnownSessions: @unchecked Sendable {
    private struct Held {
        weak var session: KnownSession?
    }

    private let lock = NSLock()
    // The lock guards what follows.
    /// By their ids.
    private var held: [String: Held] = [:]
    /// With so many, those that nobody has any more are dropped.
    private var most = 64

    /// A call was answered with a session.
    func take(_ session: Reply<Session>, _ operation: String) {
        lock.withLock { held[session.sessionId]?.session }?.take(session, operation)
    }

    /// What is known of a session that was opened.
    func open(_ session: Reply<Session>, _ phase: Phase, _ chargedUsd: Decimal?) -> KnownSession {
        lock.withLock {
            if let known = held[session.sessionId]?.session { return known }
            if held.count >= most {
                held = held.filter { $0.value.session != nil }
                most = max(64, 2 * held.count)
            }
            let known = KnownSession(session, phase, chargedUsd)
            held[session.sessionId] = Held(session: known)
            return known
        }
    }
}

extension Proxy {
    /// Whether a member that both have is not the same.
    fileprivate func differs(_ other: Proxy) -> Bool {
        with(other) != other.with(self)
    }

    /// It with what only the other one has.
    fileprivate func with(_ other: Proxy?) -> Proxy {
        Proxy(
            host: host ?? other?.host, port: port ?? other?.port, protocol: self.protocol ?? other?.protocol, username: username ?? other?.username,
            password: password ?? other?.password, fullUrl: fullUrl ?? other?.fullUrl)
    }
}
