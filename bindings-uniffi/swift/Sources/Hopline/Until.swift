import Foundation

/// The condition that ends a repeated read: the value at `at` is one of `is`, or a number of at least `atLeast`.
public struct Until: Sendable, Hashable {
    /// The place of the value in the answer, a JSON pointer (RFC 6901) such as `/status`.
    public var at: String
    /// The words that end the read; a value that is not a text is compared by its JSON.
    public var `is`: [String]
    /// The least number that ends the read.
    public var atLeast: Decimal?

    /// Makes a condition; `is`, `atLeast` or both must be given.
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
