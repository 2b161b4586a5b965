import Foundation

internal import HoplineCore

/// The client of one account of the Agent Proxy Session API. Each operation of the API is a method.
public final class AgentClient: HoplineClient, @unchecked Sendable {
    private let sessions = KnownSessions()

    /// Makes a client. Nothing is sent before the first call.
    ///
    /// - Parameters:
    ///   - apiKey: The API key. Default: the environment's HOPLINE_API_KEY.
    ///   - baseURL: The address of the API, such as `https://host/v1`. Default: the environment's HOPLINE_BASE_URL.
    ///   - store: The store of records, such as a `FolderStore`; an object for this client alone. By default they are in memory and end
    ///     with the client.
    ///   - transport: The HTTP client.
    ///   - dailyCapUsd: The most, in USD, that all clients of the store with the same `account` spend in a UTC day, together: charges,
    ///     purchases in doubt and purchases under way; recharges do not count. A purchase beyond it is `refused` before it is sent. Each
    ///     key counts at its quote, on each day that it is sent on; a charge above its quote is counted and can pass the cap. A client
    ///     without a cap does not count its purchases, so give every client of a store the same cap. The account's own limit, which holds
    ///     for all stores, is `dailyLimitUsd` of `updateBudget`.
    ///   - backendReady: `backendReady` from the answer of `registerAccount`. If false, purchases of sessions are `refused` before they are
    ///     sent, until `getAccount` says otherwise.
    ///   - options: How to repeat, wait and read.
    ///   - file: The place where the client is made, for a warning that it was not closed.
    ///   - line: The line of that place.
    public init(
        apiKey: Secret? = nil, baseURL: String? = nil, store: (any Store)? = nil, transport: any Transport = URLSessionTransport(),
        dailyCapUsd: Decimal? = nil, backendReady: Bool? = nil, options: ClientOptions = ClientOptions(),
        file: StaticString = #fileID, line: UInt = #line
    ) throws(HoplineError) {
        var told = options.told(try address(baseURL, "HOPLINE_BASE_URL"))
        told.add("api_key", try apiKey == nil ? secret("HOPLINE_API_KEY", "api_key") : apiKey)
        told.add("daily_cap_usd", dailyCapUsd)
        told.add("backend_ready", backendReady)
        try super.init(told, store, transport, options, madeAt: "\(file):\(line)")
    }

    /// Stops following a session, without ending it: another client of the store may then take it by its intent or with `resumeAll`.
    /// Returns true if the session was followed.
    @discardableResult
    public func releaseSession(_ sessionId: String) throws(HoplineError) -> Bool {
        try check("release_session")
        if case .was(true) = driver.ask(.releaseSession(sessionId: sessionId)) { return true }
        return false
    }

    /// Returns advice after an observation through a session. Nil if this client does not follow the session.
    ///
    /// Nothing is sent, unless the session was opened with `autoRotate`: then the session is rotated if the advice is to rotate, and this
    /// call waits for the rotation and throws its failure. Other observers of the same session wait for the same rotation.
    public func observe(sessionId: String, seen: Seen) async throws(HoplineError) -> Verdict? {
        try check("observe")
        let answer = driver.ask(.observe(sessionId: sessionId, seen: seen.json.text))
        if case .refused(let packed) = answer { throw HoplineError(packed: packed) }
        guard case .advice(let packed?) = answer else { return nil }
        let told = Packed.read(packed, VerdictFields.init)
        guard let command = told.command else { return Verdict(told) }
        let rotated: Reply<Session> = try await run("rotate_session", .go, known: UInt32(command)).reply("rotate_session")
        took(rotated, "rotate_session")
        return .rotated(told.reason ?? .block, rotated)
    }

    /// Opens a pool, which lends sessions, and buys, rotates and replaces them as needed. Opening buys nothing, unless sessions are to be
    /// `keepReady`. Pools of one name in one store and account share their sessions.
    ///
    /// - Parameters:
    ///   - name: The pool's name, 1 to 128 bytes.
    ///   - options: The sessions that it buys, their number, and the terms on which it lends them.
    public func openPool(_ name: String, _ options: PoolOptions) async throws(HoplineError) -> Pool {
        var params = options.told
        params.add("name", name)
        let opened: Reply<OpenedPool> = try await call("open_pool", params, Parameters())
        return Pool(name: name, client: self, number: opened.pool)
    }

    /// Joins a pool as other programs of the store have opened it, to read its status, pause, resume or drain it. A joined pool neither
    /// lends nor buys.
    public func joinPool(_ name: String) async throws(HoplineError) -> Pool {
        var params = Parameters()
        params.add("name", name)
        let joined: Reply<OpenedPool> = try await call("join_pool", params, Parameters())
        return Pool(name: name, client: self, number: joined.pool)
    }

    /// Returns the pools in the store, by name, opened by any client.
    public func listPools() async throws(HoplineError) -> [KnownPool] {
        let known: Reply<KnownPools> = try await call("list_pools", Parameters(), Parameters())
        return known.pools
    }

    /// Both operations that wait for a session.
    func wait(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> OpenSession {
        try await answer(operation, params.json.text, told).session(operation, self)
    }

    /// The error for a session that is not usable at its deadline gets the handle of the session.
    override func withHandle(_ error: HoplineError) -> HoplineError {
        guard error.kind == .notReady, let sessionId = error.sessionId else { return error }
        let read = try? error.raw?.decode(Unready.self)
        let type = read?.session_type.map { SessionType(rawValue: $0) }
        let session = Session(sessionId: sessionId, sessionType: type, status: SessionStatus(rawValue: read?.status ?? ""))
        let raw = error.raw ?? Raw(text: "{}")
        let known = sessions.open(Reply(value: session, raw: raw, requestId: error.requestId, phase: .pending), .pending, nil)
        var error = error
        error.handle.session = OpenSession(sessionId, known, self)
        return error
    }

    /// The handle of a session that was waited for.
    func opened(_ session: Reply<Session>, _ operation: String, chargedUsd: Decimal?) -> OpenSession {
        let known = sessions.open(session, session.phase ?? .unknown, chargedUsd)
        known.take(session, operation)
        return OpenSession(session.sessionId, known, self)
    }

    override func took<Value>(_ reply: Reply<Value>, _ operation: String) {
        if let session = reply as? Reply<Session> { sessions.take(session, operation) }
    }

    override func isWaited(_ answered: Answered) -> Bool {
        answered.holds(Session.self)
    }

    override func waited(_ answered: Answered) throws(HoplineError) -> Resumed {
        .session(try answered.session("create_session", self))
    }
}

/// The members of the last read of a session that is not usable yet.
private struct Unready: Decodable {
    let session_type: String?
    let status: String?
}

/// The handle in an error, which counts for nothing where errors are compared.
struct HandleInError: Hashable, Sendable {
    var session: OpenSession?

    static func == (one: HandleInError, other: HandleInError) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}
