import Foundation

/// The agent API as a protocol: `AgentClient` conforms to it, with one method for each operation. A view model that takes `any Agent` can
/// be tested with a fake, which has one method, `answer`:
///
/// ```swift
/// struct Fake: Agent {
///     func answer<Answer>(_ call: Call<AgentClient, Answer>) async throws(HoplineError) -> Answer {
///         switch call.operation {
///         case "get_session": call.answer(Reply(Session(sessionId: "s-1", status: .active)))
///         default: call.missing()
///         }
///     }
/// }
/// ```
///
/// Only walks and pools need an `AgentClient`.
public protocol Agent: Operations where Client == AgentClient {
    /// Stops following a session, without ending it: another client of the store may then take it by its intent or with `resumeAll`.
    /// Returns true if the session was followed.
    @discardableResult
    func releaseSession(_ sessionId: String) throws(HoplineError) -> Bool
}

/// The reseller API as a protocol, as `Agent` is one of the agent API: `ResellerClient` conforms to it.
public protocol Reseller: Operations where Client == ResellerClient {}

/// An API as a protocol: all of its methods come down to one.
public protocol Operations<Client>: Sendable {
    /// The client of the API.
    associatedtype Client: HoplineClient

    /// Carries out a call.
    func answer<Answer: Sendable>(_ call: Call<Client, Answer>) async throws(HoplineError) -> Answer
}

/// A call of one method of an API.
public struct Call<Client: HoplineClient, Answer: Sendable>: Sendable {
    /// The operation, as errors and events name it, such as `open_session`.
    public let operation: String
    private let params: Parameters
    let run: @Sendable (Client) async throws(HoplineError) -> Answer

    init(_ operation: String, _ params: Parameters = Parameters(), run: @escaping @Sendable (Client) async throws(HoplineError) -> Answer) {
        (self.operation, self.params, self.run) = (operation, params, run)
    }

    /// A parameter that is a text, by its name on the wire, such as `session_id`.
    public func text(_ parameter: String) -> String? {
        params.members[parameter]?.string
    }

    /// The answer of a fake: a value of the type that the method returns.
    public func answer(_ answer: some Sendable) -> Answer {
        guard let fits = answer as? Answer else { preconditionFailure("`\(operation)` returns \(Answer.self), and not \(type(of: answer))") }
        return fits
    }

    /// The end of a call that a fake does not answer.
    public func missing() -> Never {
        preconditionFailure("this fake has no `\(operation)`")
    }
}

extension Call: CustomStringConvertible, CustomReflectable {
    /// The operation.
    public var description: String { operation }
    /// No members, since parameters may be secrets.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

extension AgentClient: Agent {
    /// Carries out a call.
    public func answer<Answer: Sendable>(_ call: Call<AgentClient, Answer>) async throws(HoplineError) -> Answer {
        try await call.run(self)
    }
}

extension ResellerClient: Reseller {
    /// Carries out a call.
    public func answer<Answer: Sendable>(_ call: Call<ResellerClient, Answer>) async throws(HoplineError) -> Answer {
        try await call.run(self)
    }
}

extension Agent {
    /// A fake follows every session.
    @discardableResult
    public func releaseSession(_ sessionId: String) throws(HoplineError) -> Bool { true }

    /// Returns advice after an observation through a session, as `AgentClient.observe` does.
    @discardableResult
    public func observe(sessionId: String, seen: Seen) async throws(HoplineError) -> Verdict? {
        var params = Parameters()
        params.add("session_id", sessionId)
        return try await answer(Call("observe", params) { client throws(HoplineError) in try await client.observe(sessionId: sessionId, seen: seen) })
    }
}

extension Operations {
    /// Returns the entries of the store, as `HoplineClient.saved` does.
    public func saved() async throws(HoplineError) -> [Saved] {
        try await answer(Call("saved") { client throws(HoplineError) in try await client.saved() })
    }

    /// Resumes a record, as `HoplineClient.resume` does.
    public func resume(
        _ record: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed {
        var params = Parameters()
        params.add("record", record)
        return try await answer(Call("resume", params) { client throws(HoplineError) in
            try await client.resume(record, credentials: credentials, ends: ends, deadline: deadline, options: options)
        })
    }

    /// Resumes an intent, as `HoplineClient.resume` does; nil if the intent is not known.
    public func resume(
        intent: String, credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Resumed? {
        var params = Parameters()
        params.add("intent", intent)
        return try await answer(Call("resume", params) { client throws(HoplineError) in
            try await client.resume(intent: intent, credentials: credentials, ends: ends, deadline: deadline, options: options)
        })
    }

    /// Resumes everything that no living client owns, as `HoplineClient.resumeAll` does.
    public func resumeAll(
        credentials: Bool = true, ends: [String] = [], deadline: Duration? = nil, options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> [Result<Resumed, HoplineError>] {
        try await answer(Call("resume_all") { client throws(HoplineError) in
            try await client.resumeAll(credentials: credentials, ends: ends, deadline: deadline, options: options)
        })
    }

    /// Settles a doubt by hand, as `HoplineClient.settle` does.
    @discardableResult
    public func settle(_ record: String, happened: Bool, became: String? = nil, early: Bool = false) async throws(HoplineError) -> Bool {
        var params = Parameters()
        params.add("record", record)
        return try await answer(Call("settle", params) { client throws(HoplineError) in
            try await client.settle(record, happened: happened, became: became, early: early)
        })
    }

    /// Looks up an operation in doubt, as `HoplineClient.reconcile` does.
    public func reconcile(_ record: String, options: CallOptions = CallOptions()) async throws(HoplineError) -> Reply<Reconciliation> {
        var params = Parameters()
        params.add("record", record)
        return try await answer(Call("reconcile", params) { client throws(HoplineError) in try await client.reconcile(record, options: options) })
    }

    /// Forgets a record, as `HoplineClient.forget` does.
    @discardableResult
    public func forget(_ record: String) async throws(HoplineError) -> Bool {
        var params = Parameters()
        params.add("record", record)
        return try await answer(Call("forget", params) { client throws(HoplineError) in try await client.forget(record) })
    }
}
