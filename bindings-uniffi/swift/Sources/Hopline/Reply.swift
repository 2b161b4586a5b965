import Foundation

/// What an operation was answered with. The members of its value can be read as if they were its own.
@dynamicMemberLookup
public struct Reply<Value: Sendable>: Sendable {
    /// The typed view of the answer.
    public let value: Value
    /// The whole answer, known and unknown members alike.
    public let raw: Raw
    /// To quote when reporting a problem.
    public let requestId: String?
    /// Of a session or an order: where it is. Of a read with `until`: `ready` where it holds, `pending` where the deadline came first.
    public let phase: Phase?

    /// A member of the value.
    public subscript<Member>(dynamicMember member: KeyPath<Value, Member>) -> Member {
        value[keyPath: member]
    }
}

extension Reply: Equatable where Value: Equatable {}
extension Reply: Hashable where Value: Hashable {}

/// An answer, or a part of one, as the service wrote it. It may hold secrets, so it does not print.
public struct Raw: Sendable, Hashable {
    /// The text, digit for digit.
    public let text: String

    /// The answer as a type of your own, for what the contract does not document.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

extension Raw: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Not the text.
    public var description: String { "[redacted]" }
    /// Not the text.
    public var debugDescription: String { description }
    /// Nothing to look into.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// A value that a change may leave as it is, take away, or set: three things, which are sent as three.
public enum Patch<Value: Sendable>: Sendable {
    /// Left as it is: not sent.
    case absent
    /// Sent as null. What that does the contract does not document.
    case null
    /// Set to this.
    case set(Value)
}
