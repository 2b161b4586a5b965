import Foundation

internal import HoplineCore

extension HoplineError: LocalizedError, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The sentence.
    public var description: String { message }
    /// The sentence.
    public var errorDescription: String? { message }

    /// The sentence, and the facts that a problem report needs.
    public var debugDescription: String {
        let named = [("request", requestId), ("key", idempotencyKey), ("session", sessionId), ("order", orderNo), ("record", record)]
        let more = named.compactMap { name, value in value.map { ", \(name) \($0)" } }.joined()
        let said = notes.map { "; \($0)" }.joined()
        return "\(message)\(said) [\(kind.rawValue), attempts \(attempts)\(more)\(cause.map { ", after: \($0)" } ?? "")]"
    }

    /// The members that may be shown.
    public var customMirror: Mirror {
        let shown: [(String, Any?)] = [
            ("kind", kind), ("isRefusedByUs", isRefusedByUs), ("effect", effect), ("message", message), ("advice", advice), ("field", field), ("code", code), ("status", status),
            ("requestId", requestId), ("idempotencyKey", idempotencyKey), ("intent", intent), ("sessionId", sessionId), ("orderNo", orderNo), ("record", record), ("reason", reason),
            ("retryAt", retryAt), ("attempts", attempts), ("notes", notes), ("cause", cause),
        ]
        return Mirror(self, children: shown.compactMap { name, value in value.map { (label: name, value: $0) } }, displayStyle: .struct)
    }
}

extension HoplineError {
    /// An error of the core.
    init(packed: Data) {
        self = Packed.read(packed, HoplineError.init)
    }

    /// A failure that only this host detects.
    init(_ kind: Kind, _ operation: String, _ what: String, effect: Effect = .none, advice: Advice, say: String, field: String? = nil) {
        self.init(
            message: "\(operation): \(what); \(say)", kind: kind, effect: effect, operation: operation, what: what, advice: advice, field: field,
            attempts: 0)
    }

    /// The error of a call that the core refused.
    init(refusal error: any Error) {
        switch error {
        case let error as HoplineError: self = error
        case ClientError.Refused(let packed): self.init(packed: packed)
        default: self = .unheard("the core said \(type(of: error))")
        }
    }

    /// The error for a core whose answer can't be understood.
    static func unheard(_ what: String) -> HoplineError {
        let say = "it may have taken effect; check the account's resources and charges, and settle its record if it has one"
        return HoplineError(.misuse, "client", what, effect: .unknown, advice: .checkAccount, say: say)
    }
}

/// Asks the core.
func core<Answer>(_ question: () throws -> Answer) throws(HoplineError) -> Answer {
    do {
        return try question()
    } catch {
        throw HoplineError(refusal: error)
    }
}

/// Asks the core a question that needs no client.
func ask<Answer: Decodable>(_ question: String, _ given: JSON) throws(HoplineError) -> Answer {
    try core { try JSONDecoder().decode(Answer.self, from: Data(hostText(question: question, given: given.text).utf8)) }
}

/// The error of a call that is not made, in the words that every host uses for it.
func refused(_ operation: String, because: String, _ more: [String: String] = [:]) -> HoplineError {
    let given = more.merging(["operation": operation, "because": because]) { $1 }.mapValues { JSON.string($0) }
    do {
        return .unheard(try hostText(question: "refusal", given: JSON.object(given).text))
    } catch {
        return HoplineError(refusal: error)
    }
}
