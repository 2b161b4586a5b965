import Foundation

internal import HoplineCore

/// What the clients of both APIs do alike: make an `AgentClient` or a `ResellerClient`. A client is of one account, and any number
/// of tasks may use it at once.
///
/// Every method that fails throws a `HoplineError`. Cancelling a task cancels its call, which then throws an error of the kind
/// `cancelled`. That says whether the operation may have taken effect; if it may have, its record is kept and can be resumed.
///
/// A client is in use as long as somebody holds it, a pool, a lease, a session or a walk of it. Once nobody does it is closed, and a warning is
/// logged.
///
/// Nobody else can derive from it, and none of its members changes, so it may be sent anywhere.
public class HoplineClient: @unchecked Sendable, CustomReflectable {
    let driver: Driver
    /// Where it was made.
    private let place: String

    /// A client of these options, which hold secrets.
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
        driver = Driver(client, transport, Headers(given: options.headers), handle ?? nil)
        self.place = place
    }

    deinit {
        if !driver.closed { NSLog("a Hopline client that was made at \(place) was not closed") }
        driver.shutDown(within: .seconds(10))
    }

    /// Nothing of it can be shown while it works.
    public final var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class, ancestorRepresentation: .suppressed) }

    /// Lists what the store holds of this account, also what clients left that are gone and what other living clients have. Nothing is
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

    /// Goes on with what a record holds: a write in doubt is sent again with the same key, a session or an order is waited for. It never
    /// buys anew.
    ///
    /// - Parameters:
    ///   - record: The record, as an error or `saved` names it.
    ///   - credentials: Whether a session's username and password are wanted once it is active.
    ///   - ends: Further statuses that end the session or order.
    ///   - deadline: How long to wait for a session or an order; 5 minutes where it is left out.
    ///   - options: How to send what is sent. An `idempotencyKey` is refused: what is resumed has its own.
    public func resume(
        _ record: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed {
        try resumed(await run("resume", .resume(record: record, options: resuming(credentials, ends, deadline, options))))
    }

    /// Goes on with whatever an intent stands for: a purchase in doubt, a call that is under way, a session, an order, or an answer. It
    /// never buys anew. Nil if the intent stands for nothing: then choose what to buy, and start it under this intent.
    ///
    /// If its session is over, it throws an error of the kind `ended`.
    ///
    /// - Parameters:
    ///   - intent: Your own name for the operation, as it was started with.
    ///   - credentials: Whether a session's username and password are wanted once it is active.
    ///   - ends: Further statuses that end the session or order.
    ///   - deadline: How long to wait for a session or an order; 5 minutes where it is left out.
    ///   - options: How to send what is sent. An `idempotencyKey` is refused: what is resumed has its own.
    public func resume(
        intent: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed? {
        let answered = try await run("resume", intent: intent, .resumeIntent(intent: intent, options: resuming(credentials, ends, deadline, options)))
        return answered.isNothing ? nil : try resumed(answered)
    }

    /// Goes on with what no living client has, 16 at a time: every doubt that can be sent again is resumed; sessions and orders that were
    /// begun without an intent are this client's again. Sessions and orders with an intent are left to whoever starts it. Returns what each
    /// came to, failures included.
    ///
    /// - Parameters:
    ///   - credentials: Whether sessions' usernames and passwords are wanted once they are active.
    ///   - ends: Further statuses that end a session or order.
    ///   - deadline: How long to wait for a session or an order; 5 minutes where it is left out.
    ///   - options: How to send what is sent. An `idempotencyKey` is refused: what is resumed has its own.
    public func resumeAll(
        credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> [Result<Resumed, HoplineError>] {
        try await run("resume_all", .resumeAll(options: resuming(credentials, ends, deadline, options))).parts.map { command in
            let ended = driver.result(of: command)
            return Result { () throws(HoplineError) in try resumed(Answered(ended)) }
        }
    }

    /// Closes a doubt by hand, once you know what happened. Returns whether there was one.
    ///
    /// - Parameters:
    ///   - record: The record of what is in doubt, as the error and `saved` name it. One that has changed since is left alone, and this throws.
    ///   - happened: Whether it was done.
    ///   - became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
    ///     waited for goes on with that, by its intent or record; anything else is what the intent answers with.
    ///   - early: Whether to settle it as not happened although it may still arrive. Without it that is refused before the entry's
    ///     `settleFrom`, an hour after it was last under way.
    @discardableResult
    public func settle(_ record: String, happened: Bool, became: String? = nil, early: Bool = false) async throws(HoplineError) -> Bool {
        try await run("settle", .settle(record: record, happened: happened, became: became, early: early)).isDone
    }

    /// Looks for what became of an operation in doubt, and shows what the service has that may be it. Nothing is sent but reads, and
    /// nothing is decided: once you know, say so with `settle`.
    ///
    /// - Parameters:
    ///   - record: The record of what is in doubt, as the error and `saved` name it.
    ///   - options: How to send the reads; whatever is left out is as the client has it.
    public func reconcile(_ record: String, options: CallOptions = CallOptions()) async throws(HoplineError) -> Reply<Reconciliation> {
        var params = Parameters()
        params.add("record", record)
        return try await call("reconcile", params, options.told)
    }

    /// Forgets a session, an order that nobody waits for, a record that can't be used, or an accepted intent, which can then be bought
    /// again. Returns whether something was forgotten: what is under way or in doubt stays, and so does a record of another account or base
    /// URL, unless this client was made with `sameAccount`. Throws `busy` where another living client
    /// has it, and `refused` for a session that this client has and that is not over: `terminateSession` ends it, `releaseSession` lets
    /// go of it.
    @discardableResult
    public func forget(_ record: String) async throws(HoplineError) -> Bool {
        try await run("forget", .forget(record: record)).isDone
    }

    /// Progress, from now on until the client is closed. Of a listener who does not listen the oldest of 1024 are forgotten.
    public func events() -> AsyncStream<Event> {
        driver.listen()
    }

    /// Lets go of everything in the store before the app is suspended, since iOS ends an app that is suspended with a file lock in an App
    /// Group container. Call it within a background task when the app enters the background, and `wake` when it comes back.
    ///
    /// What is under way ends with the kind `busy`: start the same intent again later. A request that is out is not aborted. Sessions
    /// that this client holds it takes back when it wakes, unless another client has them by then. Whatever is called meanwhile
    /// waits until then, unless it is cancelled. Without a store this does nothing.
    ///
    /// - Parameter timeout: How long to wait for what the store has not answered. It is asked to let go all the same.
    /// - Throws: A `HoplineError` of the kind `store` if it is not certain that all was let go of.
    public func suspend(timeout: Duration = .seconds(10)) async throws(HoplineError) {
        try check("suspend")
        do {
            try await driver.suspend(within: timeout)
        } catch {
            throw HoplineError(refusal: error)
        }
    }

    /// Goes on after `suspend`, once that has ended. As long as the store has not answered whether it let go, nothing is sent. Of `suspend` and `wake`
    /// the one that is called last counts.
    public func wake() async {
        await driver.wake()
    }

    /// Cancels what is under way, lets go of all that this client has in the store, and closes the store. Records stay, and no session is
    /// ended. From then on nothing is sent but what ends sessions, if that was asked for before, and no lease is valid.
    ///
    /// - Parameter timeout: How long to wait for what the store has not answered. What it does not answer may be done or not.
    public func close(timeout: Duration = .seconds(10)) async {
        await driver.close(within: timeout)
    }

    /// Every operation is called here.
    func call<Value: Packable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        let reply: Reply<Value> = try await answer(operation, params.json.text, told).reply(operation)
        took(reply, operation)
        return reply
    }

    /// A call was answered.
    func took<Value>(_ reply: Reply<Value>, _ operation: String) {}

    /// What an operation is answered with, before it is read.
    func answer(_ operation: String, _ params: String, _ told: Parameters) async throws(HoplineError) -> Answered {
        try await run(
            operation, intent: told.members["intent"]?.string, .start(operation: operation, params: params, options: told.json.text))
    }

    /// Whether something was answered that its API waits for.
    func isWaited(_ answered: Answered) -> Bool {
        false
    }

    /// What was waited for after it was resumed: each API has something of its own.
    func waited(_ answered: Answered) throws(HoplineError) -> Resumed {
        .answer(try answered.reply("resume"))
    }

    func run(_ operation: String, intent: String? = nil, _ what: Move, known: UInt32? = nil) async throws(HoplineError) -> Answered {
        guard let ended = await driver.run(operation, intent, what, known: known) else { throw refused(operation, because: "closed") }
        return try Answered(ended)
    }

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

/// What came of a record that was resumed.
public enum Resumed: Sendable {
    /// Its session.
    case session(OpenSession)
    /// Its order.
    case order(OrderReply)
    /// The answer of an operation that waits for neither.
    case answer(Reply<Undocumented>)
}

/// Where an API is: what was given, or what the environment has.
func address(_ given: String?, _ variable: String) throws(HoplineError) -> String {
    if let found = given ?? ProcessInfo.processInfo.environment[variable] { return found }
    throw refused("client", because: "base_url", ["variable": variable])
}

/// A secret that the environment has.
func secret(_ variable: String) -> Secret? {
    ProcessInfo.processInfo.environment[variable].map { Secret($0) }
}
