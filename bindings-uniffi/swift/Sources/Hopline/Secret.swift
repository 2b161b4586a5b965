/// A text that never prints. Only `reveal()` returns it.
///
/// There is no literal for it, since a secret does not belong in source code: read it from the Keychain or the environment.
public struct Secret: Sendable, Hashable {
    private let text: String

    /// Makes a secret of a text.
    public init(_ text: String) {
        self.text = text
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
