/// A text that never prints. Only `reveal()` returns it.
///
/// There is no literal for it, since a secret does not belong in source code: read it from the Keychain or the environment.
public struct Secret: Sendable, Hashable {
    private let text: String

    /// Makes a secret of a text.
    public init(_ text: String) {
        self.text = text
    }

    /// Returns the text.
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
    /// A placeholder instead of the text.
    public var description: String { "[redacted]" }
    /// A placeholder instead of the text.
    public var debugDescription: String { description }
    /// No members.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
