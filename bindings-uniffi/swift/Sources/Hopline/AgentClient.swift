import Foundation

internal import HoplineCore

/// The client of one account. Any number of tasks may use it at once; each operation of the API is a method.
///
/// Every method that fails throws a `HoplineError`. A task that is cancelled gives its command up and hears of it by an error of
/// the kind `cancelled`, which says whether it may have been done: what may have been is kept, and can be resumed.
public final class AgentClient: Sendable {
    private let driver: Driver
    private let records: Records

    /// A client. Nothing is sent before the first call.
    ///
    /// - Parameters:
    ///   - apiKey: The API key; without it, that of the environment's HOPLINE_API_KEY.
    ///   - baseURL: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
    ///   - store: Where records are kept; without it, in memory.
    ///   - transport: What sends requests.
    ///   - options: How to repeat, wait and read.
    public init(
        apiKey: Secret? = nil, baseURL: String? = nil, store: any Store = MemoryStore(), transport: any Transport = URLSessionTransport(),
        options: ClientOptions = ClientOptions()
    ) throws(HoplineError) {
        let environment = ProcessInfo.processInfo.environment
        guard let base = baseURL ?? environment["HOPLINE_BASE_URL"] else {
            throw HoplineError(
                .invalid, "client", "`baseURL` is missing; give it or set HOPLINE_BASE_URL", advice: "change_request", field: "base_url")
        }
        let told = Secret(options.text(baseURL: base, apiKey: apiKey ?? environment["HOPLINE_API_KEY"].map { Secret($0) }))
        let make = { @Sendable () throws -> Client in try Client(options: told.reveal(), entropy: entropy()) }
        let core: Client
        do {
            core = try make()
        } catch {
            throw refusal(error)
        }
        let shelf: any Shelf
        do {
            shelf = try store.open()
        } catch {
            throw .unusable("client", said(error))
        }
        records = Records(core, shelf, sameAccount: options.sameAccount, capped: options.dailyCapUsd != nil, reader: make)
        driver = Driver(core, transport, records)
        // What clients that are no more have spent today counts from the first purchase on.
        if options.dailyCapUsd != nil, let refused = records.adoptSpent() { throw refused }
    }

    deinit {
        driver.shutDown()
    }

    /// What the store holds: what this client has, and what no living client has. Nothing is sent.
    public func saved() async throws(HoplineError) -> [Saved] {
        try check("saved")
        let free = try await records.free("saved").get().0
        return driver.ask(savedList) + free
    }

    /// The free records of the store that this client leaves alone, such as those of another account. Nothing is sent.
    public func rejected() async throws(HoplineError) -> [Rejected] {
        try check("rejected")
        return try await records.free("rejected").get().1
    }

    /// Goes on with what a record holds: a purchase is asked about with the same key, a session is waited for.
    public func resume(_ record: String) async throws(HoplineError) -> Resumed {
        try await adopt("resume") { $0.record == record }
        return try await resumed { $0.resume(record: record) }.get()
    }

    /// Goes on with all that can be resumed, also of clients that are no more. Failures are in the list.
    public func resumeAll() async throws(HoplineError) -> [Result<Resumed, HoplineError>] {
        try await adopt("resume_all") { _ in true }
        let commands = driver.ask { $0.resumeAll() }
        return await withTaskGroup(of: (Int, Result<Resumed, HoplineError>).self) { group in
            for (place, command) in commands.enumerated() {
                group.addTask { (place, await self.resumed { _ in command }) }
            }
            var results: [(Int, Result<Resumed, HoplineError>)] = []
            for await result in group { results.append(result) }
            return results.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Closes a doubt by hand, once you know what happened. Returns whether there was one.
    @discardableResult
    public func settle(_ record: String, happened: Bool) async throws(HoplineError) -> Bool {
        try await change("settle", record) { $0.settle(record: record, happened: happened) }
    }

    /// Forgets a session or an accepted intent, which can then be bought again. Returns whether there was one. What is in
    /// doubt stays.
    @discardableResult
    public func forget(_ record: String) async throws(HoplineError) -> Bool {
        try await change("forget", record) { $0.forget(record: record) }
    }

    /// Advice on what was seen through a session. Nothing comes back if this client does not follow it.
    ///
    /// Nothing is sent, unless the session was opened with `autoRotate`: then it is rotated where the advice would be to, and this
    /// waits for that and throws why it failed. Whoever observes the same session meanwhile waits for the same rotation.
    public func observe(sessionId: String, seen: Seen) async throws(HoplineError) -> Verdict? {
        try check("observe")
        let told: String?
        do {
            told = try driver.ask {
                try $0.observe(sessionId: sessionId, seen: seen.json.text, unixMs: Clock.unix, monotonicMs: Clock.monotonic)
            }
        } catch {
            throw refusal(error)
        }
        guard let advice = told.flatMap({ try? JSONDecoder().decode(Advice.self, from: Data($0.utf8)) }) else { return nil }
        guard let command = advice.command else { return advice.verdict }
        return try await .rotated(advice.reason ?? .block, run("rotate_session") { _ in command }.reply("rotate_session"))
    }

    /// Progress, from now on until the client is closed. Of a listener who does not listen the oldest of 1024 are forgotten.
    public func events() -> AsyncStream<Event> {
        driver.listen()
    }

    /// Gives up what is under way and gives the store back. Records stay, no session is ended.
    public func close() async {
        await driver.close()
    }

    /// Every operation is called here.
    func call<Value: Decodable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        try await answer(operation, params.json.text, told).reply(operation)
    }

    /// Both operations that wait for a session.
    func wait(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> OpenSession {
        try await answer(operation, params.json.text, told).session(operation, self)
    }

    /// What an operation is answered with, before it is read.
    func answer(_ operation: String, _ params: String, _ told: Parameters) async throws(HoplineError) -> Answered {
        let options = told.json.text
        return try await run(operation, told.members["intent"]?.string) { $0.start(operation: operation, params: params, options: options) }
    }

    private func run(
        _ operation: String, _ intent: String? = nil, _ begin: @escaping @Sendable (Client) -> UInt32
    ) async throws(HoplineError) -> Answered {
        try check(operation)
        // What is no intent the core refuses by itself.
        let claim = intent.flatMap { $0.isEmpty ? nil : $0 }
        if let claim, let refused = await records.enter(operation, claim) { throw refused }
        defer { if let claim { records.leave(claim) } }
        guard let ended = await driver.run(operation, begin) else { throw .closed(operation) }
        return try Answered(ended)
    }

    private func resumed(_ begin: @escaping @Sendable (Client) -> UInt32) async -> Result<Resumed, HoplineError> {
        do {
            let answered = try await run("resume", nil, begin)
            return .success(answered.phase == nil ? .answer(try answered.reply("resume")) : .session(try answered.session("create_session", self)))
        } catch {
            return .failure(error)
        }
    }

    private func change(_ operation: String, _ record: String, _ ask: (Client) -> Bool) async throws(HoplineError) -> Bool {
        try await adopt(operation) { $0.record == record }
        let done = driver.ask(ask)
        await driver.settled(record)
        records.sweep()
        return done
    }

    private func adopt(_ operation: String, _ wanted: @escaping @Sendable (Saved) -> Bool) async throws(HoplineError) {
        try check(operation)
        if let refused = await records.adopt(operation, wanted) { throw refused }
    }

    private func check(_ operation: String) throws(HoplineError) {
        if driver.closed { throw .closed(operation) }
    }
}

/// What came of a record that was resumed.
public enum Resumed: Sendable {
    /// Its session.
    case session(OpenSession)
    /// The answer of an operation that waits for no session.
    case answer(Reply<Unshown>)
}

/// Why the core refused a call.
func refusal(_ error: any Error) -> HoplineError {
    guard case ClientError.Refused(let text)? = error as? ClientError else {
        return HoplineError(.misuse, "client", "the core said \(type(of: error))")
    }
    return .read(text)
}
