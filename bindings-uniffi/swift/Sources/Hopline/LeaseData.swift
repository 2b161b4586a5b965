import Foundation

/// Values that callers keep with an exit, by names of their own.
///
/// Those that are JSON (texts, truth values, numbers, and lists and dictionaries of them) are kept by the store when the lease is given
/// back, up to 4 KB together, so another client finds them as whoever had the session last left them: as `String`, `Bool`, `Int` or else
/// `Decimal`, `[any Sendable]` and `[String: any Sendable]`, which `as? [String: String]` turns into what they were. All others, such as an
/// HTTP client, stay in this client.
public final class LeaseData: @unchecked Sendable {
    private let lock = NSLock()
    /// The lock guards it, and the others.
    private var values: [String: any Sendable] = [:]
    /// The values in the store, as far as this client knows.
    private var stored: [String: JSON] = [:]
    /// The values when the store was read or told last.
    private var told: [String: JSON] = [:]

    /// The value of that name.
    public subscript(name: String) -> (any Sendable)? {
        get { lock.withLock { values[name] } }
        set { lock.withLock { values[name] = newValue } }
    }

    /// Takes over the values that come with a lease, unless this client has them already: if another client has changed them, they win
    /// over all values that are JSON.
    func take(_ given: Raw) {
        guard let members = try? given.decode([String: JSON].self) else { return }
        lock.withLock {
            guard members != stored else { return }
            var writer = DataWriter()
            values = values.filter { stored[$0.key] == nil && writer.written($0.value) == nil }
            for (name, value) in members { values[name] = value.plain }
            stored = members
            told = json() ?? members
        }
    }

    /// Returns the values that are JSON, if they have changed.
    func news() -> JSON? {
        lock.withLock {
            guard let members = json(), members != told else { return nil }
            told = members
            return .object(members)
        }
    }

    /// Notes that the store has these.
    func store(_ news: JSON) {
        lock.withLock { stored = news.object ?? stored }
    }

    /// Nil if they are more than the store keeps.
    private func json() -> [String: JSON]? {
        var writer = DataWriter()
        var members: [String: JSON] = [:]
        for (name, value) in values { members[name] = writer.written(value) }
        return writer.isFull ? nil : members
    }
}

extension LeaseData: CustomReflectable {
    /// Shows no values, since cookies are secrets.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }
}

/// Writes values as JSON, and ends at more of them than the store keeps.
private struct DataWriter {
    /// Each value has a letter at least, and the store keeps 4 KB.
    private var left = 4096

    var isFull: Bool { left < 0 }

    /// Nil if it is no JSON, such as an object of a class.
    mutating func written(_ value: Any, levels: Int = 32) -> JSON? {
        left -= 1
        guard levels > 0, left >= 0 else { return nil }
        switch value {
        case let json as JSON where json == .null: return .null
        case let json as JSON: return json.plain.flatMap { written($0, levels: levels) }
        case let text as String: return .string(text)
        case let flag as Bool: return .bool(flag)
        case is Decimal, is any FixedWidthInteger, is any BinaryFloatingPoint:
            // What is infinite or not a number is no JSON.
            return amount("\(value)").flatMap { $0.isFinite ? .number($0) : nil }
        case let items as [Any]:
            var all: [JSON] = []
            for item in items {
                guard let next = written(item, levels: levels - 1) else { return nil }
                all.append(next)
            }
            return .array(all)
        case let members as [String: Any]:
            var all: [String: JSON] = [:]
            for (name, item) in members {
                guard let next = written(item, levels: levels - 1) else { return nil }
                all[name] = next
            }
            return .object(all)
        default: return nil
        }
    }
}

extension JSON {
    /// The value as callers write it; nil for null.
    fileprivate var plain: (any Sendable)? {
        switch self {
        case .null: return nil
        case .bool(let flag): return flag
        case .number(let number):
            if let whole = Int(number.description) { return whole }
            return number
        case .string(let text): return text
        case .array(let items): return items.map(\.item)
        case .object(let members): return members.mapValues(\.item)
        }
    }

    /// The same, of which null stays.
    private var item: any Sendable {
        if let plain { plain } else { JSON.null }
    }
}
