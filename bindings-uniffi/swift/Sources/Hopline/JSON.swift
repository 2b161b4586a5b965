import Foundation

/// Any JSON. Numbers are exact, up to the 38 digits of a `Decimal`.
public enum JSON: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number
    case number(Decimal)
    /// A text
    case string(String)
    /// A list
    case array([JSON])
    /// An object
    case object([String: JSON])

    /// The member of that name, where this is an object that has one.
    public subscript(name: String) -> JSON? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    /// The item at that place, where this is a list that is long enough.
    public subscript(place: Int) -> JSON? {
        if case .array(let items) = self, items.indices.contains(place) { items[place] } else { nil }
    }

    /// The text, where this is one.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, where this is one.
    public var decimal: Decimal? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The truth value, if this is one.
    public var bool: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    /// The items, where this is a list.
    public var array: [JSON]? {
        if case .array(let items) = self { items } else { nil }
    }

    /// The members, where this is an object.
    public var object: [String: JSON]? {
        if case .object(let members) = self { members } else { nil }
    }
}

extension JSON: Codable {
    /// Reads any JSON.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .bool(flag)
        } else if let members = try? container.decode([String: JSON].self) {
            self = .object(members)
        } else if let items = try? container.decode([JSON].self) {
            self = .array(items)
        } else {
            self = .number(try container.decode(Decimal.self))
        }
    }

    /// Writes it, numbers digit for digit.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .string(let text): try container.encode(text)
        case .array(let items): try container.encode(items)
        case .object(let members): try container.encode(members)
        }
    }

    /// The JSON as text, members in the order of their names. Nothing deeper than 101 levels is written: one level more than the core
    /// reads, which refuses it by name.
    var text: String {
        var text = ""
        write(to: &text, levels: 101)
        return text
    }

    private func write(to text: inout String, levels: Int) {
        switch self {
        case .bool(let flag): text += flag ? "true" : "false"
        // An invalid number is not JSON, which the core refuses.
        case .number(let number): text += number.description
        case .string(let string): string.write(to: &text)
        case .array(let items):
            text += "["
            for (place, item) in items.enumerated() where levels > 1 {
                if place > 0 { text += "," }
                item.write(to: &text, levels: levels - 1)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (place, (name, value)) in members.sorted(by: { $0.key < $1.key }).enumerated() where levels > 1 {
                if place > 0 { text += "," }
                name.write(to: &text)
                text += ":"
                value.write(to: &text, levels: levels - 1)
            }
            text += "}"
        case .null: text += "null"
        }
    }
}

extension String {
    /// Written as JSON.
    fileprivate func write(to text: inout String) {
        text += "\""
        if utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            text += self
        } else {
            for scalar in unicodeScalars {
                switch scalar {
                case "\"", "\\": text += "\\\(scalar)"
                case ..<" ": text += "\\u00\(scalar.value < 16 ? "0" : "")\(String(scalar.value, radix: 16))"
                default: text.unicodeScalars.append(scalar)
                }
            }
        }
        text += "\""
    }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `nil` is `null`.
    public init(nilLiteral: ()) {
        self = .null
    }

    /// A truth value.
    public init(booleanLiteral flag: Bool) {
        self = .bool(flag)
    }

    /// A text.
    public init(stringLiteral text: String) {
        self = .string(text)
    }

    /// A whole number.
    public init(integerLiteral number: Int) {
        self = .number(Decimal(number))
    }

    /// A list.
    public init(arrayLiteral items: JSON...) {
        self = .array(items)
    }

    /// An object; of two members of one name the last counts.
    public init(dictionaryLiteral members: (String, JSON)...) {
        self = .object(Dictionary(members) { $1 })
    }
}
