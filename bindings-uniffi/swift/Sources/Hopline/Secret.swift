/// A text that never prints. `reveal()` gives it, and whoever calls that answers for where it goes.
public struct Secret: Sendable, Hashable, ExpressibleByStringLiteral {
    private let text: String

    /// Makes a secret of a text.
    public init(_ text: String) {
        self.text = text
    }

    /// Makes a secret of a literal.
    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// The text itself.
    public func reveal() -> String {
        text
    }
}

extension Secret: Decodable {
    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Not the text.
    public var description: String { "[redacted]" }
    /// Not the text.
    public var debugDescription: String { description }
    /// Nothing to look into.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
