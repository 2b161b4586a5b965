import Foundation

internal import HoplineCore

/// What the clients of both APIs do alike: make an `AgentClient` or a `ResellerClient`. A client is of one account, and any number
/// of tasks may use it at once.
///
/// Every method that fails throws a `HoplineError`. Cancelling a task cancels its call, which then throws an error of the kind
/// `cancelled`. That says whether the operation may have taken effect; if it may have, its record is kept and can be resumed.
///
/// Nobody else can derive from it, and none of its members changes, so it may be sent anywhere.
public class HoplineClient: @unchecked Sendable, CustomReflectable {
    let driver: Driver
    private let records: Records

    /// A client of these options, which hold secrets. One that is `capped` takes up what clients that are no more have spent.
    init(
        _ told: Parameters, _ store: any Store, _ transport: any Transport, _ options: ClientOptions, capped: Bool = false
    ) throws(HoplineError) {
        let (headers, sameAccount) = (options.headers, options.sameAccount)
        let told = Secret(told.json.text)
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
        records = Records(core, shelf, sameAccount: sameAccount, capped: capped, reader: make)
        driver = Driver(core, transport, Headers(given: headers), records)
        // What was spent today counts from the first purchase on.
        if capped, let refused = records.adoptSpent() { throw refused }
    }

    deinit {
        driver.shutDown()
    }

    /// Nothing of it can be shown while it works.
    public final var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class, ancestorRepresentation: .suppressed) }

    /// What the store holds: what this client has, and what no living client has. Nothing is sent.
    public func saved() async throws(HoplineError) -> [Saved] {
        try check("saved")
        let free = try await records.free("saved").get().0
        do {
            let known = try driver.ask(savedList)
            // A record that this client has refused is free, too.
            let names = Set(known.map(\.record))
            return known + free.filter { !names.contains($0.record) }
        } catch {
            throw refusal(error)
        }
    }

    /// The free records of the store that this client leaves alone, such as those of another account. Nothing is sent.
    public func rejected() async throws(HoplineError) -> [Rejected] {
        try check("rejected")
        return try await records.free("rejected").get().1
    }

    /// Goes on with what a record holds: a purchase is asked about with the same key, a session or an order is waited for. It never
    /// buys anew.
    ///
    /// - Parameters:
    ///   - record: The record, as an error or `saved` names it.
    ///   - credentials: Whether a session's username and password are wanted once it is active.
    ///   - ends: Further statuses that end the session or order.
    ///   - deadline: How long to wait for a session or an order; 5 minutes where it is left out.
    ///   - options: How to send what is sent. An `idempotencyKey` is refused: what is resumed has its own.
    public func resume(
        _ record: String, credentials: Bool = false, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed {
        try await adopt("resume") { $0.record == record }
        let told = resuming(credentials, ends, deadline, options)
        return try resumed(await run("resume") { $0.resume(record: record, options: told) })
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
        intent: String, credentials: Bool = false, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed? {
        let told = resuming(credentials, ends, deadline, options)
        guard let answered = try await runAny("resume", intent, { $0.resumeIntent(intent: intent, options: told) }) else { return nil }
        return try resumed(answered)
    }

    /// Goes on with all that can be resumed, also of clients that are no more. Failures are in the list.
    public func resumeAll() async throws(HoplineError) -> [Result<Resumed, HoplineError>] {
        try await adopt("resume_all") { _ in true }
        let commands = driver.ask { $0.resumeAll() }
        return await withTaskGroup(of: (Int, Result<Resumed, HoplineError>).self) { group in
            for (place, command) in commands.enumerated() {
                group.addTask { (place, await self.result(of: command)) }
            }
            var results: [(Int, Result<Resumed, HoplineError>)] = []
            for await result in group { results.append(result) }
            return results.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Closes a doubt by hand, once you know what happened. Returns whether there was one.
    ///
    /// - Parameters:
    ///   - record: The record of what is in doubt, as the error and `saved` name it.
    ///   - happened: Whether it was done.
    ///   - became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
    ///     waited for goes on with that, by its intent or record; anything else is what the intent answers with.
    @discardableResult
    public func settle(_ record: String, happened: Bool, became: String? = nil) async throws(HoplineError) -> Bool {
        try await change("settle", record) { try $0.settle(record: record, happened: happened, became: became) }
    }

    /// Looks for what became of an operation in doubt, and shows what the service has that may be it. Nothing is sent but reads, and
    /// nothing is decided: once you know, say so with `settle`.
    ///
    /// - Parameters:
    ///   - record: The record of what is in doubt, as the error and `saved` name it.
    ///   - options: How to send the reads; whatever is left out is as the client has it.
    public func reconcile(_ record: String, options: CallOptions = CallOptions()) async throws(HoplineError) -> Reply<Reconciliation> {
        try await adopt("reconcile") { $0.record == record }
        var params = Parameters()
        params.add("record", record)
        return try await call("reconcile", params, options.told)
    }

    /// Forgets a session, an order that nobody waits for, a record that was refused, or an accepted intent, which can then be bought
    /// again. Returns whether there was one and its record is gone. What is in doubt stays, as does what a living client has.
    @discardableResult
    public func forget(_ record: String) async throws(HoplineError) -> Bool {
        let done = try await change("forget", record) { $0.forget(record: record) }
        return await driver.settled(record) && done
    }

    /// Progress, from now on until the client is closed. Of a listener who does not listen the oldest of 1024 are forgotten.
    public func events() -> AsyncStream<Event> {
        driver.listen()
    }

    /// Cancels what is under way and releases the store. Records stay, and no session is ended.
    public func close() async {
        await driver.close()
    }

    /// Every operation is called here.
    func call<Value: Decodable>(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> Reply<Value> {
        try await answer(operation, params.json.text, told).reply(operation)
    }

    /// What an operation is answered with, before it is read.
    func answer(_ operation: String, _ params: String, _ told: Parameters) async throws(HoplineError) -> Answered {
        let options = told.json.text
        return try await run(operation, told.members["intent"]?.string) { $0.start(operation: operation, params: params, options: options) }
    }

    /// What was waited for after it was resumed: each API has something of its own.
    func waited(_ answered: Answered) throws(HoplineError) -> Resumed {
        .answer(try answered.reply("resume"))
    }

    func run(
        _ operation: String, _ intent: String? = nil, _ begin: @escaping @Sendable (Client) -> UInt32
    ) async throws(HoplineError) -> Answered {
        guard let answered = try await runAny(operation, intent, begin) else { throw .closed(operation) }
        return answered
    }

    /// The same of what may have nothing to begin: then nil.
    private func runAny(
        _ operation: String, _ intent: String?, _ begin: @escaping @Sendable (Client) -> UInt32?
    ) async throws(HoplineError) -> Answered? {
        try check(operation)
        // An intent that is invalid the core refuses by itself.
        let claim = intent.flatMap { $0.isEmpty ? nil : $0 }
        if let claim, let refused = await records.enter(operation, claim) { throw refused }
        defer { if let claim { records.leave(claim) } }
        if let ended = await driver.run(begin) { return try Answered(ended) }
        try check(operation)
        return nil
    }

    private func resuming(_ credentials: Bool, _ ends: [String], _ deadline: Duration?, _ options: CallOptions) -> String {
        var told = options.told
        told.add("credentials", credentials)
        told.add("ends", ends)
        told.add("deadline_ms", deadline)
        return told.json.text
    }

    private func resumed(_ answered: Answered) throws(HoplineError) -> Resumed {
        answered.phase == nil ? .answer(try answered.reply("resume")) : try waited(answered)
    }

    private func result(of command: UInt32) async -> Result<Resumed, HoplineError> {
        do {
            return .success(try resumed(await run("resume") { _ in command }))
        } catch {
            return .failure(error)
        }
    }

    private func change(_ operation: String, _ record: String, _ ask: (Client) throws -> Bool) async throws(HoplineError) -> Bool {
        try await adopt(operation) { $0.record == record }
        let done: Bool
        do {
            done = try driver.ask(ask)
        } catch {
            throw refusal(error)
        }
        await driver.settled(record)
        records.sweep()
        return done
    }

    private func adopt(_ operation: String, _ wanted: @escaping @Sendable (Saved) -> Bool) async throws(HoplineError) {
        try check(operation)
        if let refused = await records.adopt(operation, wanted) { throw refused }
    }

    func check(_ operation: String) throws(HoplineError) {
        if driver.closed { throw .closed(operation) }
    }
}

/// What came of a record that was resumed.
public enum Resumed: Sendable {
    /// Its session.
    case session(OpenSession)
    /// Its order.
    case order(OrderReply)
    /// The answer of an operation that waits for neither.
    case answer(Reply<Unshown>)
}

/// Why the core refused a call.
func refusal(_ error: any Error) -> HoplineError {
    if let error = error as? HoplineError { return error }
    guard case ClientError.Refused(let text)? = error as? ClientError else {
        return HoplineError(.misuse, "client", "the core said \(type(of: error))")
    }
    return .read(text)
}

/// Where an API is: what was given, or what the environment has.
func address(_ given: String?, _ variable: String) throws(HoplineError) -> String {
    if let found = given ?? ProcessInfo.processInfo.environment[variable] { return found }
    throw HoplineError(
        .invalid, "client", "`baseURL` is missing; give it or set \(variable)", advice: "change_request", field: "base_url")
}

/// A secret that the environment has.
func secret(_ variable: String) -> Secret? {
    ProcessInfo.processInfo.environment[variable].map { Secret($0) }
}
