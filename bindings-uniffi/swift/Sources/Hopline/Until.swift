import Foundation

/// What a read is repeated for. It ends when the value at `at` is one of `is`, or a number of at least `atLeast`.
public struct Until: Sendable, Hashable {
    /// Where in the answer to look, a JSON pointer (RFC 6901) such as `/status`.
    public var at: String
    /// The words that end it; what is no text is compared with its JSON.
    public var `is`: [String]
    /// The number that ends it, once it is reached.
    public var atLeast: Decimal?

    /// A condition; `is`, `atLeast` or both must say what ends it.
    public init(at: String, is words: [String] = [], atLeast: Decimal? = nil) {
        self.at = at
        self.is = words
        self.atLeast = atLeast
    }
}

extension Until: Parameter {
    var parameter: JSON {
        var told = Parameters()
        told.add("at", at)
        told.add("is", `is`)
        told.add("at_least", atLeast)
        return told.json
    }
}
