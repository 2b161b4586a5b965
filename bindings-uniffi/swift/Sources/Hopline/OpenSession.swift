import Foundation

/// A session that was opened: its state, and its operations. The object shows the newest state that its client has read, by any call.
public struct OpenSession: Sendable {
    /// The session's id.
    public let sessionId: String
    let client: any Agent
    private let known: KnownSession

    init(_ sessionId: String, _ known: KnownSession, _ client: any Agent) {
        (self.sessionId, self.known, self.client) = (sessionId, known, client)
    }

    /// A session as a fake of the client returns it. It shows the answers of its own methods alone.
    public init(_ agent: any Agent, _ session: Reply<Session>, phase: Phase = .ready, chargedUsd: Decimal? = nil) {
        self.init(session.sessionId, KnownSession(session, phase, chargedUsd), agent)
    }

    /// The phase: usable, over, or (`pending`, `unknown`) not usable yet.
    public var phase: Phase { known.state.phase }

    /// The last read of the session.
    public var session: Reply<Session> { known.state.session }

    /// The charge of its purchase in USD, where the service stated it.
    public var chargedUsd: Decimal? { known.chargedUsd }

    /// The proxy; nil as long as the session is not usable. Members that the last read did not request, such as the password, keep their
    /// values.
    public var proxy: Proxy? { known.state.proxy }

    /// The number of known changes of its exit or credentials: make new connections when it has grown.
    public var generation: Int { known.state.generation }

    /// Waits on until the session is usable, over, or the deadline has come.
    ///
    /// - Parameters:
    ///   - credentials: True to request the username and password once it is active.
    ///   - deadline: How long to wait. Default: 5 minutes.
    public func wait(credentials: Bool = true, deadline: Duration? = nil) async throws(HoplineError) -> OpenSession {
        try await client.waitSession(sessionId: sessionId, credentials: credentials, deadline: deadline)
    }

    /// Returns advice after an observation through the session; with `autoRotate`, as `observe` of the client does.
    @discardableResult
    public func observe(_ seen: Seen) async throws(HoplineError) -> Verdict? {
        try await client.observe(sessionId: sessionId, seen: seen)
    }

    /// Returns advice after an error of the HTTP client that sent a request through the session.
    @discardableResult
    public func observe(_ error: any Error) async throws(HoplineError) -> Verdict? {
        try await observe(Seen(error))
    }

    /// Stops following the session, without ending it: another client of the store may take it then. Returns true if it was followed.
    @discardableResult
    public func release() throws(HoplineError) -> Bool {
        try client.releaseSession(sessionId)
    }

    /// Every operation of the session is called here. Credentials are read again if they are known, unless there is an intent, which always
    /// stands for the same request.
    func call<Value: Packable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        var params = params
        let reads = ["rotate_session", "get_session"].contains(operation) && told.members["intent"] == nil
        if reads, proxy?.password != nil, params.members["include_credentials"] == nil { params.add("include_credentials", true) }
        let reply: Reply<Value> = try await client.answer(Call(operation, params) { [params] client throws(HoplineError) in
            try await client.call(operation, params, told)
        })
        if operation == "terminate_session" { known.end() }
        // A client takes in what all of its calls read; a fake does not.
        if !(client is AgentClient), let session = reply as? Reply<Session> { known.take(session, operation) }
        return reply
    }
}

extension OpenSession: CustomStringConvertible, CustomReflectable {
    /// The session's id and its phase.
    public var description: String { "\(sessionId) (\(phase.rawValue))" }

    /// All members except the client.
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
    // The lock guards the following members.
    private var now: State
    /// The last rotation that was taken in, which several callers may have waited for.
    private var rotation: String?

    init(_ session: Reply<Session>, _ phase: Phase, _ chargedUsd: Decimal?) {
        self.chargedUsd = chargedUsd
        now = State(session: session, phase: phase, proxy: session.proxy)
    }

    var state: State { lock.withLock { now } }

    /// Takes the session from the answer of a call.
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

/// The sessions of a client that have a handle.
final class KnownSessions: @unchecked Sendable {
    private struct Held {
        weak var session: KnownSession?
    }

    private let lock = NSLock()
    // The lock guards the following members.
    /// By their ids.
    private var held: [String: Held] = [:]
    /// The number of entries at which those without a handle are dropped.
    private var most = 64

    /// Takes a session from the answer of a call.
    func take(_ session: Reply<Session>, _ operation: String) {
        lock.withLock { held[session.sessionId]?.session }?.take(session, operation)
    }

    /// The state of a session that was opened.
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
    /// Returns true if a member that both have differs.
    fileprivate func differs(_ other: Proxy) -> Bool {
        with(other) != other.with(self)
    }

    /// The proxy, completed with members that only the other one has.
    fileprivate func with(_ other: Proxy?) -> Proxy {
        Proxy(
            host: host ?? other?.host, port: port ?? other?.port, protocol: self.protocol ?? other?.protocol, username: username ?? other?.username,
            password: password ?? other?.password, fullUrl: fullUrl ?? other?.fullUrl)
    }
}
