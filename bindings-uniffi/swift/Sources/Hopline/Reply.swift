import Foundation

/// The answer of an operation. The members of its value can be read directly from it.
@dynamicMemberLookup
public struct Reply<Value: Sendable>: Sendable {
    /// The typed view of the answer.
    public let value: Value
    /// The whole answer, known and unknown members alike.
    public let raw: Raw
    /// The request id, to quote when reporting a problem.
    public let requestId: String?
    /// Of a session or an order: its phase. Of a read with `until`: `ready` if its condition holds, `pending` if the deadline came first.
    public let phase: Phase?

    /// A member of the value.
    public subscript<Member>(dynamicMember member: KeyPath<Value, Member>) -> Member {
        value[keyPath: member]
    }
}

extension Reply {
    /// An answer as a fake of the client gives it.
    public init(_ value: Value, requestId: String? = nil, phase: Phase? = nil) {
        self.init(value: value, raw: Raw(text: "null"), requestId: requestId, phase: phase)
    }
}

extension Reply: Equatable where Value: Equatable {}
extension Reply: Hashable where Value: Hashable {}

/// An answer, or a part of one, as the service wrote it. The text may hold secrets, so it does not print.
public struct Raw: Sendable, Hashable {
    /// The text, digit for digit.
    public let text: String

    /// The answer as a type of your own, for undocumented members.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

extension Raw: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A placeholder instead of the text.
    public var description: String { "[redacted]" }
    /// A placeholder instead of the text.
    public var debugDescription: String { description }
    /// No members.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// A value that a change may leave as it is, take away, or set: three things, which are sent as three.
public enum Patch<Value: Sendable>: Sendable {
    /// Left unchanged: not sent.
    case absent
    /// Sent as null. The contract does not document the effect.
    case null
    /// Set to this.
    case set(Value)
}
