import Foundation

internal import HoplineCore

/// The client of one account of the Agent Proxy Session API. Each operation of the API is a method.
public final class AgentClient: HoplineClient, @unchecked Sendable {
    private let sessions = KnownSessions()

    /// A client. Nothing is sent before the first call.
    ///
    /// - Parameters:
    ///   - apiKey: The API key; without it, that of the environment's HOPLINE_API_KEY.
    ///   - baseURL: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
    ///   - store: Where records are kept, such as a `FolderStore`; an object for this client alone. Without it they are in memory and end
    ///     with the client.
    ///   - transport: What sends requests.
    ///   - dailyCapUsd: The most, in USD, that all clients of the store with the same `account` buy in a UTC day, together: what was charged,
    ///     what is in doubt and what is under way; recharges do not count. A client without a cap does not count what it buys, so give every
    ///     client of a store the same one. The account's own limit, which holds for all stores, is `dailyLimitUsd` of `updateBudget`.
    ///   - backendReady: `backendReady` as `registerAccount` answered. If false, purchases are refused.
    ///   - options: How to repeat, wait and read.
    ///   - file: Where the client is made, for a warning that it was not closed.
    ///   - line: The same.
    public init(
        apiKey: Secret? = nil, baseURL: String? = nil, store: (any Store)? = nil, transport: any Transport = URLSessionTransport(),
        dailyCapUsd: Decimal? = nil, backendReady: Bool? = nil, options: ClientOptions = ClientOptions(),
        file: StaticString = #fileID, line: UInt = #line
    ) throws(HoplineError) {
        var told = options.told(try address(baseURL, "HOPLINE_BASE_URL"))
        told.add("api_key", apiKey ?? secret("HOPLINE_API_KEY"))
        told.add("daily_cap_usd", dailyCapUsd)
        told.add("backend_ready", backendReady)
        try super.init(told, store, transport, options, madeAt: "\(file):\(line)")
    }

    /// Follows a session no more, without ending it: another client of the store may have it then, by its intent or with `resumeAll`.
    /// Returns whether it was followed.
    @discardableResult
    public func releaseSession(_ sessionId: String) throws(HoplineError) -> Bool {
        try check("release_session")
        if case .was(true) = driver.ask(.releaseSession(sessionId: sessionId)) { return true }
        return false
    }

    /// Advice on what was seen through a session. Nothing comes back if this client does not follow it.
    ///
    /// Nothing is sent, unless the session was opened with `autoRotate`: then it is rotated where the advice would be to, and this
    /// waits for that and throws why it failed. Whoever observes the same session meanwhile waits for the same rotation.
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

    /// Opens a pool, which lends sessions, and buys, rotates and replaces them as needed. To open it buys nothing, unless sessions are to be
    /// `ready`. Pools of one name in one store and account share their sessions.
    ///
    /// - Parameters:
    ///   - name: The pool's name, 1 to 128 bytes.
    ///   - options: What it buys, how much of it, and how it lends.
    public func openPool(_ name: String, _ options: PoolOptions) async throws(HoplineError) -> Pool {
        var params = options.told
        params.add("name", name)
        let opened: Reply<OpenedPool> = try await call("open_pool", params, Parameters())
        return Pool(name: name, client: self, number: opened.pool)
    }

    /// Joins a pool as other programs of the store have opened it, to look at it, pause, resume or drain it. It neither lends nor buys here.
    public func joinPool(_ name: String) async throws(HoplineError) -> Pool {
        var params = Parameters()
        params.add("name", name)
        let joined: Reply<OpenedPool> = try await call("join_pool", params, Parameters())
        return Pool(name: name, client: self, number: joined.pool)
    }

    /// The pools that the store keeps, by name, whoever has opened them.
    public func listPools() async throws(HoplineError) -> [KnownPool] {
        let known: Reply<KnownPools> = try await call("list_pools", Parameters(), Parameters())
        return known.pools
    }

    /// Both operations that wait for a session.
    func wait(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> OpenSession {
        try await answer(operation, params.json.text, told).session(operation, self)
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
