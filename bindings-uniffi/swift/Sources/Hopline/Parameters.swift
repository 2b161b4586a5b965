import Foundation

/// A value that can be sent as a parameter.
protocol Parameter {
    var parameter: JSON { get }
}

extension String: Parameter {
    var parameter: JSON { .string(self) }
}

extension Secret: Parameter {
    var parameter: JSON { .string(reveal()) }
}

extension Bool: Parameter {
    var parameter: JSON { .bool(self) }
}

extension Int: Parameter {
    var parameter: JSON { .number(Decimal(self)) }
}

extension Decimal: Parameter {
    // The core takes a number's text for the number.
    var parameter: JSON { .string(description) }
}

extension Duration: Parameter {
    /// Whole milliseconds. Longer than 24 days counts as 24 days.
    var parameter: JSON {
        let (seconds, attoseconds) = min(self, Duration.longest).components
        return .number(Decimal(seconds) * 1000 + Decimal(attoseconds / 1_000_000_000_000_000))
    }

    static let longest = Duration.milliseconds(Int32.max)
}

extension JSON: Parameter {
    var parameter: JSON { self }
}

extension Array: Parameter where Element: Parameter {
    var parameter: JSON { .array(map(\.parameter)) }
}

extension [String: Secret]: Parameter {
    var parameter: JSON { .object(mapValues(\.parameter)) }
}

extension RawRepresentable where RawValue == String {
    var parameter: JSON { .string(rawValue) }
}

/// Parameters or options by their names. Omitted ones are absent.
struct Parameters {
    private(set) var members: [String: JSON] = [:]

    mutating func add(_ name: String, _ value: (any Parameter)?) {
        members[name] = value?.parameter
    }

    mutating func add<Value: Parameter>(_ name: String, _ patch: Patch<Value>) {
        switch patch {
        case .absent: members[name] = nil
        case .null: members[name] = .null
        case .set(let value): members[name] = value.parameter
        }
    }

    var json: JSON { .object(members) }
}
