import Foundation

/// A failure, with all that a person or a program needs to decide what to do next. Narrow it by `kind`; `effect` says
/// whether the operation had its effect. It prints as one sentence, and never a secret.
public struct HoplineError: Error, Sendable {
    /// What kind of failure it is. The list is closed.
    public enum Kind: String, Sendable, Decodable, CaseIterable {
        /// The parameters or options break a rule. Nothing was sent.
        case invalid
        /// Refused by the service, or, if `isRefusedByUs` is true, by this client. The operation was not done, unless `effect` is `done`: then a
        /// read that follows it was refused.
        case refused
        /// The service could not be reached or could not do it. The operation was not done, unless `effect` is `done`: then a read that follows
        /// it failed.
        case unavailable
        /// It may have been done: nobody knows yet. Do as its `advice` says, by its `record`.
        case inDoubt = "in_doubt"
        /// The response was not in the API's format; it may be a gateway's error page.
        case `protocol`
        /// It was done, but the answer does not fit its type; `raw` keeps it.
        case decode
        /// Another change of the same session is under way or in doubt, or another living client uses or holds the same intent or record, or
        /// has taken it over. Start the intent again later.
        case busy
        /// The session of this intent is over. Nothing was bought: choose a new intent, or forget this one.
        case ended
        /// Its task was cancelled, or its client closed.
        case cancelled
        /// The store could not keep the record that must be kept.
        case store
        /// The library was called in a way that has no meaning.
        case misuse
    }

    /// Whether an operation had its effect.
    public enum Effect: String, Sendable, Decodable {
        /// It had none and will have none.
        case none
        /// Nobody knows yet.
        case unknown
        /// It was done.
        case done
    }

    /// What kind of failure.
    public let kind: Kind
    /// Of the kind `refused`: whether this client refused it, and not the service. That is so for the daily cap, the price limit, an
    /// account that is not ready, a `settle` that came too early, a `forget` of a session that the client has, a record that has
    /// changed, and a `reconcile` that has nothing to look up.
    public let isRefusedByUs: Bool
    /// Whether the operation had its effect.
    public let effect: Effect
    /// Which operation.
    public let operation: String
    /// One sentence: what happened, whether money may have moved, what to do next.
    public let message: String
    /// What happened, as the middle of a sentence.
    public let what: String
    /// What to do next, as a word such as `resume`, `reconcile`, `wait_order` or `recharge`.
    public let advice: String
    /// The field that was refused; of `decode`, where in the answer it does not fit, such as `data.items[3].price`.
    public let field: String?
    /// The service's code, as it came.
    public let code: String?
    /// The HTTP status.
    public let status: Int?
    /// The service's own text, whose beginning is part of the message, or the beginning of a body that is not in the API's format.
    public let text: String?
    /// The content type of such a body.
    public let contentType: String?
    /// The service's details, as they came. They are not printed.
    public let details: JSON?
    /// To quote when reporting a problem.
    public let requestId: String?
    /// The idempotency key of the last send.
    public let idempotencyKey: String?
    /// Your own name for the operation.
    public let intent: String?
    /// The session it was about, where that is known.
    public let sessionId: String?
    /// The order it was about, where that is known.
    public let orderNo: String?
    /// The record to resume, reconcile or settle it by.
    public let record: String?
    /// Not before this time.
    public let retryAt: Date?
    /// How often it was sent.
    public let attempts: Int
    /// The answer that does not fit its type, or was lost sight of. It may hold secrets.
    public let raw: Raw?
    /// What the store or the transport reported, where that is part of the failure.
    public internal(set) var notes: [String] = []
    /// A list, since a struct can't hold itself.
    private let causes: [HoplineError]

    /// The first failure, where this one came of a later send.
    public var cause: HoplineError? { causes.first }
}

extension HoplineError: LocalizedError, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The sentence.
    public var description: String { message }
    /// The sentence.
    public var errorDescription: String? { message }

    /// The sentence, and what a report of the problem needs.
    public var debugDescription: String {
        let named = [("request", requestId), ("key", idempotencyKey), ("session", sessionId), ("order", orderNo), ("record", record)]
        let more = named.compactMap { name, value in value.map { ", \(name) \($0)" } }.joined()
        let said = notes.map { "; \($0)" }.joined()
        return "\(message)\(said) [\(kind.rawValue), attempts \(attempts)\(more)\(cause.map { ", after: \($0)" } ?? "")]"
    }

    /// All that may be shown.
    public var customMirror: Mirror {
        let shown: [(String, Any?)] = [
            ("kind", kind), ("isRefusedByUs", isRefusedByUs), ("effect", effect), ("message", message), ("advice", advice), ("field", field), ("code", code), ("status", status),
            ("requestId", requestId), ("idempotencyKey", idempotencyKey), ("intent", intent), ("sessionId", sessionId), ("orderNo", orderNo), ("record", record),
            ("retryAt", retryAt), ("attempts", attempts), ("notes", notes), ("cause", cause),
        ]
        return Mirror(self, children: shown.compactMap { name, value in value.map { (label: name, value: $0) } }, displayStyle: .struct)
    }
}

extension HoplineError: Decodable {
    private enum Keys: String, CodingKey {
        case kind, effect, operation, message, what, advice, field, code, status, text, details, intent, record, attempts, raw, cause
        case isRefusedByUs = "refused_by_us"
        case contentType = "content_type"
        case requestId = "request_id"
        case idempotencyKey = "idempotency_key"
        case sessionId = "session_id"
        case orderNo = "order_no"
        case retryAt = "retry_at"
    }

    /// Reads what the core wrote.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Keys.self)
        kind = try members.decode(Kind.self, forKey: .kind)
        isRefusedByUs = try members.decodeIfPresent(Bool.self, forKey: .isRefusedByUs) ?? false
        effect = try members.decode(Effect.self, forKey: .effect)
        operation = try members.decode(String.self, forKey: .operation)
        what = try members.decode(String.self, forKey: .what)
        message = try members.decodeIfPresent(String.self, forKey: .message) ?? "\(operation): \(what)"
        advice = try members.decode(String.self, forKey: .advice)
        field = try members.decodeIfPresent(String.self, forKey: .field)
        code = try members.decodeIfPresent(String.self, forKey: .code)
        status = try members.decodeIfPresent(Int.self, forKey: .status)
        text = try members.decodeIfPresent(String.self, forKey: .text)
        contentType = try members.decodeIfPresent(String.self, forKey: .contentType)
        // A number that no `Decimal` can hold is not worth losing the failure for.
        details = try? members.decodeIfPresent(JSON.self, forKey: .details)
        requestId = try members.decodeIfPresent(String.self, forKey: .requestId)
        idempotencyKey = try members.decodeIfPresent(String.self, forKey: .idempotencyKey)
        intent = try members.decodeIfPresent(String.self, forKey: .intent)
        sessionId = try members.decodeIfPresent(String.self, forKey: .sessionId)
        orderNo = try members.decodeIfPresent(String.self, forKey: .orderNo)
        record = try members.decodeIfPresent(String.self, forKey: .record)
        retryAt = try members.decodeIfPresent(Int64.self, forKey: .retryAt).map(moment)
        attempts = try members.decode(Int.self, forKey: .attempts)
        raw = try? members.decodeIfPresent(Raw.self, forKey: .raw)
        causes = try members.decodeIfPresent(HoplineError.self, forKey: .cause).map { [$0] } ?? []
    }

    /// An error of the core.
    static func read(_ text: String) -> HoplineError {
        do {
            return try JSONDecoder().decode(HoplineError.self, from: Data(text.utf8))
        } catch {
            return HoplineError(.misuse, "client", "an error of the core could not be read", effect: .unknown, advice: "check_account")
        }
    }

    /// A failure that only this host can tell.
    init(
        _ kind: Kind, _ operation: String, _ what: String, effect: Effect = .none, advice: String = "nothing", say: String? = nil,
        field: String? = nil, intent: String? = nil, facts: Facts = Facts(), raw: Raw? = nil
    ) {
        self.kind = kind
        isRefusedByUs = false
        self.effect = effect
        self.operation = operation
        self.what = what
        self.advice = advice
        self.field = field
        self.intent = intent
        self.raw = raw
        message = "\(operation)\(intent.map { " `\($0)`" } ?? ""): \(what)" + (say.map { "; \($0)" } ?? "")
        (sessionId, orderNo, requestId) = (facts.sessionId, facts.orderNo, facts.requestId)
        (code, status, text, contentType, details, idempotencyKey, record, retryAt) = (nil, nil, nil, nil, nil, nil, nil, nil)
        attempts = 0
        causes = []
    }
}

/// A time of the core, which is in milliseconds.
func moment(_ ms: Int64) -> Date {
    Date(timeIntervalSince1970: Double(ms) / 1000)
}
