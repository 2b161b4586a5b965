import Foundation

internal import HoplineCore

/// The common part of the clients of both APIs: make an `AgentClient` or a `ResellerClient`. A client belongs to one account, and any
/// number of tasks may use it at once.
///
/// Every method that fails throws a `HoplineError`. Cancelling a task cancels its call, which then throws an error of the kind `cancelled`.
/// Its `effect` says whether the operation may have taken effect; if so, its record is kept and can be resumed.
///
/// A client is in use as long as there is a reference to it, or to a pool, a lease, a session or a walk of it. Without references it is
/// closed, and a warning is logged.
///
/// Other modules can't derive from it, and none of its members changes, so it may be sent anywhere.
public class HoplineClient: @unchecked Sendable, CustomReflectable {
    let driver: Driver
    /// The place where it was made.
    private let place: String

    /// Makes a client with these options, which hold secrets.
    init(_ told: Parameters, _ store: (any Store)?, _ transport: any Transport, _ options: ClientOptions, madeAt place: String) throws(HoplineError) {
        var told = told
        told.add("store", store != nil)
        told.add("late_calls", store?.lateCalls ?? false)
        let text = told.json.text
        let client = try core { try Client(options: text, entropy: entropy()) }
        let handle = store.map(StoreHandle.init)
        if case .some(nil) = handle {
            throw refused("client", because: "store_in_use")
        }
        driver = Driver(client, transport, Headers(given: options.headers), handle ?? nil, Time(options.clock))
        self.place = place
    }

    deinit {
        if !driver.closed { NSLog("a Hopline client that was made at \(place) was not closed") }
        driver.shutDown(within: .seconds(10))
    }

    /// Shows nothing of the client while it works.
    public final var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class, ancestorRepresentation: .suppressed) }

    /// Returns the entries of the store for this account, including those of clients that crashed and of other living clients. Nothing is
    /// sent and nothing claimed.
    public func saved() async throws(HoplineError) -> [Saved] {
        var (saved, after): ([Saved], String?) = ([], nil)
        repeat {
            let page = try await run("saved", .saved(after: after)).page
            saved += page.entries
            after = page.after
        } while after != nil
        return saved
    }

    /// Resumes a record: a write in doubt is sent again with the same key, a session or an order is waited for. Nothing new is ever bought.
    ///
    /// - Parameters:
    ///   - record: The record, as an error or `saved` names it.
    ///   - credentials: True to request a session's username and password once it is active.
    ///   - ends: Further statuses that end the session or order.
    ///   - deadline: How long to wait for a session or an order. Default: 5 minutes.
    ///   - options: How to send the requests. An `idempotencyKey` is refused: a resumed write has its own.
    public func resume(
        _ record: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed {
        try resumed(await run("resume", .resume(record: record, options: resuming(credentials, ends, deadline, options))))
    }

    /// Resumes an intent: a purchase in doubt, a call that is under way, a session, an order, or an answer. Nothing new is ever bought. Nil
    /// if the intent is not known: then choose what to buy, and start it under this intent.
    ///
    /// If its session is over, this throws an error of the kind `ended`.
    ///
    /// - Parameters:
    ///   - intent: Your own name for the operation, from its first start.
    ///   - credentials: True to request a session's username and password once it is active.
    ///   - ends: Further statuses that end the session or order.
    ///   - deadline: How long to wait for a session or an order. Default: 5 minutes.
    ///   - options: How to send the requests. An `idempotencyKey` is refused: a resumed write has its own.
    public func resume(
        intent: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed? {
        let answered = try await run("resume", intent: intent, .resumeIntent(intent: intent, options: resuming(credentials, ends, deadline, options)))
        return answered.isNothing ? nil : try resumed(answered)
    }

    /// Resumes everything that no living client owns, 16 at a time: every doubt that can be sent again is resumed; sessions and orders that
    /// were begun without an intent belong to this client again. Sessions and orders with an intent are left for the next start of the
    /// intent. Returns the result of each, failures included.
    ///
    /// - Parameters:
    ///   - credentials: True to request sessions' usernames and passwords once they are active.
    ///   - ends: Further statuses that end a session or order.
    ///   - deadline: How long to wait for a session or an order. Default: 5 minutes.
    ///   - options: How to send the requests. An `idempotencyKey` is refused: a resumed write has its own.
    public func resumeAll(
        credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> [Result<Resumed, HoplineError>] {
        try await run("resume_all", .resumeAll(options: resuming(credentials, ends, deadline, options))).parts.map { command in
            let ended = driver.result(of: command)
            return Result { () throws(HoplineError) in try resumed(Answered(ended)) }
        }
    }

    /// Settles a doubt by hand, once you know its outcome. Returns true if there was one.
    ///
    /// - Parameters:
    ///   - record: The record in doubt, as the error and `saved` name it. A record that has changed since is left alone, and this throws.
    ///   - happened: True if the operation took effect.
    ///   - became: The result, if it is known: the id of a session or recharge, the number of an order or sub-user. An operation that waits
    ///     for its result continues with it, by its intent or record; for other operations the intent then returns it as the answer.
    ///   - early: True to settle as not happened although the request may still arrive. Otherwise that is refused before the entry's
    ///     `settleFrom`, an hour after it was last under way.
    @discardableResult
    public func settle(_ record: String, happened: Bool, became: String? = nil, early: Bool = false) async throws(HoplineError) -> Bool {
        try await run("settle", .settle(record: record, happened: happened, became: became, early: early)).isDone
    }

    /// Looks up an operation in doubt, and shows candidates from the service. Only reads are sent, and nothing is decided: once you know
    /// the outcome, use `settle`.
    ///
    /// - Parameters:
    ///   - record: The record in doubt, as the error and `saved` name it.
    ///   - options: How to send the reads. Omitted options are the client's.
    public func reconcile(_ record: String, options: CallOptions = CallOptions()) async throws(HoplineError) -> Reply<Reconciliation> {
        var params = Parameters()
        params.add("record", record)
        return try await call("reconcile", params, options.told)
    }

    /// Forgets a session, an order that no call waits for, a record that can't be used, or an accepted intent, which can then be bought
    /// again. Returns true if something was forgotten: an operation under way or in doubt stays, and so does a record of another account or
    /// base URL, unless this client was made with `sameAccount`. Throws `busy` if another living client owns it, and `refused` for a
    /// session of this client that is not over: `terminateSession` ends it, `releaseSession` releases it.
    @discardableResult
    public func forget(_ record: String) async throws(HoplineError) -> Bool {
        try await run("forget", .forget(record: record)).isDone
    }

    /// Returns the events from now on until the client is closed. If a listener is too slow, the oldest beyond 1024 are dropped.
    public func events() -> AsyncStream<Event> {
        driver.listen()
    }

    /// Releases everything in the store before the app is suspended, since iOS ends an app that is suspended with a file lock in an App
    /// Group container. Call it within a background task when the app enters the background, and `wake` when it comes back.
    ///
    /// Commands under way end with the kind `busy`: start the same intent again later. A request that is out is not aborted. When the
    /// client wakes, it takes back the sessions that it holds, unless other clients have them by then. Calls meanwhile wait until then,
    /// unless they are cancelled. Without a store this does nothing.
    ///
    /// - Parameter timeout: How long to wait for the store's answers. The store is told to release the names all the same.
    /// - Throws: A `HoplineError` of the kind `store` if it is not certain that everything was released.
    public func suspend(timeout: Duration = .seconds(10)) async throws(HoplineError) {
        try check("suspend")
        do {
            try await driver.suspend(within: timeout)
        } catch {
            throw HoplineError(refusal: error)
        }
    }

    /// Continues after `suspend`, once that has ended. As long as the store has not confirmed the release, nothing is sent. Of `suspend`
    /// and `wake` the last call counts.
    public func wake() async {
        await driver.wake()
    }

    /// Cancels everything that is under way, releases everything that this client has in the store, and closes the store. Records stay, and
    /// no session is ended. From then on nothing is sent except terminations that were requested before, and no lease is valid.
    ///
    /// - Parameter timeout: How long to wait for the store's answers. A call without an answer may or may not be done.
    public func close(timeout: Duration = .seconds(10)) async {
        await driver.close(within: timeout)
    }

    /// Every operation is called here.
    func call<Value: Packable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        let reply: Reply<Value> = try await answer(operation, params.json.text, told).reply(operation)
        took(reply, operation)
        return reply
    }

    /// Called with the answer of each operation.
    func took<Value>(_ reply: Reply<Value>, _ operation: String) {}

    /// The answer of an operation, before it is read.
    func answer(_ operation: String, _ params: String, _ told: Parameters) async throws(HoplineError) -> Answered {
        try await run(
            operation, intent: told.members["intent"]?.string, .start(operation: operation, params: params, options: told.json.text))
    }

    /// Returns true if the answer is of the kind that its API waits for.
    func isWaited(_ answered: Answered) -> Bool {
        false
    }

    /// The result of a resumed wait: each API has its own.
    func waited(_ answered: Answered) throws(HoplineError) -> Resumed {
        .answer(try answered.reply("resume"))
    }

    func run(_ operation: String, intent: String? = nil, _ what: Move, known: UInt32? = nil) async throws(HoplineError) -> Answered {
        guard let ended = await driver.run(operation, intent, what, known: known) else { throw refused(operation, because: "closed") }
        do {
            return try Answered(ended)
        } catch {
            throw withHandle(error)
        }
    }

    /// The error, with the handle of a session that is not usable at its deadline.
    func withHandle(_ error: HoplineError) -> HoplineError { error }

    private func resuming(_ credentials: Bool, _ ends: [String], _ deadline: Duration?, _ options: CallOptions) -> String {
        var told = options.told
        told.add("credentials", credentials)
        told.add("ends", ends)
        told.add("deadline_ms", deadline)
        return told.json.text
    }

    private func resumed(_ answered: Answered) throws(HoplineError) -> Resumed {
        isWaited(answered) ? try waited(answered) : .answer(try answered.reply("resume"))
    }

    func check(_ operation: String) throws(HoplineError) {
        if driver.closed { throw refused(operation, because: "closed") }
    }
}

/// The result of a resumed record.
public enum Resumed: Sendable {
    /// The session.
    case session(OpenSession)
    /// The order.
    case order(OrderReply)
    /// The answer of an operation that waits for neither.
    case answer(Reply<Undocumented>)
}

/// The address of an API: the given one, or the environment's.
func address(_ given: String?, _ variable: String) throws(HoplineError) -> String {
    if let given { return given }
    if let found = try environment(variable, "base_url") { return found }
    throw refused("client", because: "base_url", ["variable": variable])
}

/// A secret from the environment.
func secret(_ variable: String, _ field: String) throws(HoplineError) -> Secret? {
    guard let found = try environment(variable, field) else { return nil }
    return Secret(found)
}

/// A variable of the environment, without the line break that a file or a shell may have left behind it; nil if it is not set. A blank one
/// is refused by its name: a key that is lost on its way must not make a client without one.
private func environment(_ variable: String, _ field: String) throws(HoplineError) -> String? {
    guard let found = ProcessInfo.processInfo.environment[variable] else { return nil }
    // Space may be a part of a password.
    let text = found.trimmingCharacters(in: field == "password" ? .newlines : .whitespacesAndNewlines)
    if !text.isEmpty { return text }
    throw refused("client", because: "blank", ["field": field, "variable": variable])
}
