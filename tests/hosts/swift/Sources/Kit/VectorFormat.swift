import Foundation
@testable import Hopline
import HoplineCore

/// The format of the shared vectors: what a file may say, and when a value is like another. `tests/vectors/README.md` defines it.
public enum VectorFormat {
    public typealias Object = [String: JSON]

    /// The members that each verb must have, and those that it may have.
    static let verbs: [String: (must: Set<String>, may: Set<String>)] = [
        "start": (["operation"], ["params", "params_text", "options"]),
        "put": ([], ["has", "new", "keep_for", "releases", "as", "answer"]),
        "delete": ([], ["as", "answer"]),
        "claim": ([], ["as", "answer"]),
        "release": ([], ["as", "answer"]),
        "list": ([], ["as", "answer"]),
        "spend": ([], ["usd", "day", "cap", "as", "answer"]),
        "send": ([], ["for", "headers", "key", "body", "body_text", "timeout_ms", "max_body", "within", "as", "answer"]),
        "resolve": (["answer"], ["misuse"]),
        "wait": ([], []),
        "sleep": ([], []),
        "advance": ([], []),
        "completed": ([], []),
        "complete": ([], ["ok", "error", "parts"]),
        "take": ([], ["ok", "error", "nothing"]),
        "notify": ([], []),
        "cancel": ([], []),
        "crash": ([], []),
        "plant": ([], ["text", "change", "name"]),
        "lost": ([], []),
        "resume": (["as"], ["options"]),
        "resume_intent": (["as"], ["options"]),
        "resume_all": ([], ["options"]),
        "reconcile": (["as"], []),
        "settle": (["as", "happened"], ["became", "early"]),
        "forget": (["as"], []),
        "release_session": ([], ["done"]),
        "saved": ([], []),
        "observe": (["seen"], ["verdict", "reason", "why", "as"]),
        "walk": (["operation"], ["params", "from", "position_text", "max_pages", "pages", "items", "end", "error"]),
        "ask": (["given"], ["ok", "error"]),
    ]
    /// The answers of the store.
    static let words: Set<String> = ["done", "lost", "failed", "never", "claimed", "busy", "listed", "counted", "over"]
    static let answer: Set<String> = ["ok", "error", "text", "repeat", "hex", "failed", "sent", "status", "headers", "meta", "truncated"]

    /// Every case, by its file and its name. An unknown member is a failure.
    public static func cases(_ folder: URL) throws -> [(name: String, case: Object)] {
        var found: [(String, Object)] = []
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        for file in files.filter({ $0.pathExtension == "json" }).sorted(by: { $0.path < $1.path }) {
            let read = try JSONDecoder().decode(Object.self, from: Data(contentsOf: file))
            try only(read, ["about", "source", "cases"], file.lastPathComponent)
            let cases = read["cases"]?.array ?? []
            try check(!cases.isEmpty, "\(file.lastPathComponent) has no cases")
            for each in cases {
                guard let each = each.object, let name = each["name"]?.string else { throw Unmet("\(file.lastPathComponent): a case has a name") }
                try only(each, ["name", "client", "now", "entropy", "refused", "script"], name)
                for step in each["script"]?.array ?? [] { _ = try verb(step.object ?? [:]) }
                found.append(("\(file.lastPathComponent): \(name)", each))
            }
        }
        try check(!found.isEmpty, "there are no vectors in \(folder.path)")
        return found
    }

    /// The verb of a step that is understood.
    public static func verb(_ step: Object) throws -> String {
        let found = step.keys.filter { verbs[$0] != nil }
        // `as` and others are no verbs, but a verb's name may be a member of another: there is none such.
        guard found.count == 1, let verb = found.first, let (must, may) = verbs[verb] else {
            throw Unmet("a step has one verb, and this has the members \(step.keys.sorted())")
        }
        try only(step, must.union(may).union([verb]), verb)
        try check(must.isSubset(of: step.keys), "\(verb) needs \(must.sorted())")
        for page in step["pages"]?.array ?? [] { try check(self.verb(page.object ?? [:]) == "send", "a page is a send") }
        switch step["answer"] {
        case .object(let members)?:
            try only(members, answer, "an answer")
            try check(["ok", "error", "text", "hex", "failed"].filter { members[$0] != nil }.count == 1, "an answer has one body or failure")
        case .string(let word)? where words.contains(word): break
        case nil: break
        case let other?: throw Unmet("an answer can't be \(other)")
        }
        return verb
    }

    static func only(_ members: Object, _ known: Set<String>, _ what: String) throws {
        let strange = Set(members.keys).subtracting(known)
        try check(strange.isEmpty, "\(what) has the unknown members \(strange.sorted())")
    }

    static func check(_ holds: Bool, _ said: @autoclosure () -> String) throws {
        if !holds { throw Unmet(said()) }
    }

    static func noSecret(_ what: String, _ text: String) throws {
        try check(!text.contains("canary"), "\(what) holds a secret: \(text)")
    }

    static func like(_ expected: JSON, _ found: JSON, _ at: String) throws {
        let said = { "at `\(at)` expected \("\(expected)".prefix(600)), came \("\(found)".prefix(600))" }
        switch (expected, found) {
        case (.object(let members), _) where members.count == 1 && members["contains"] != nil:
            try check(found.string?.contains(members["contains"]?.string ?? "\u{0}") == true, said())
        case (.object(let members), _) where Set(members.keys) == ["repeated", "times"]:
            let times = members["times"]?.int ?? 0
            try check(found.string == String(repeating: members["repeated"]?.string ?? "", count: times), said())
        case (.object(let members), .number(let number)) where Set(members.keys) == ["min", "max"]:
            guard let least = members["min"]?.decimal, let most = members["max"]?.decimal else { throw Unmet(said()) }
            try check(least <= number && number <= most, said())
        case (.object(let members), .object(let others)):
            for (name, value) in members { try like(value, others[name] ?? .null, "\(at).\(name)") }
        case (.array(let items), .array(let others)) where items.count == others.count:
            for (place, (item, other)) in zip(items, others).enumerated() { try like(item, other, "\(at)[\(place)]") }
        default:
            try check(expected == found, said())
        }
    }

    /// An expectation of an error or an event with the names as Swift spells them; vectors are in the core's spelling.
    static func inSwift(_ expected: JSON) -> JSON {
        guard case .object(let members) = expected else { return expected }
        let spelt = members.map { name, value in
            switch name {
            case "cause", "because": (name, inSwift(value))
            case "message", "what": (name, value.mapText { Packed.inSwift(spelled(told: $0)) })
            case "field": (name, value.mapText { Packed.inSwift(spelledField(field: $0)) })
            default: (name, value)
            }
        }
        return .object(Object(uniqueKeysWithValues: spelt))
    }

    static func same(_ expected: JSON, _ found: JSON, _ at: String) throws {
        try like(expected, found, at)
        try like(found, expected, at)
    }

    static func overlay(_ base: Object, _ over: Object) -> Object {
        base.merging(over) { below, above in
            guard case (.object(let below), .object(let above)) = (below, above) else { return above }
            return .object(overlay(below, above))
        }
    }
}

extension JSON {
    var int: Int? { decimal.flatMap { Int(exactly: NSDecimalNumber(decimal: $0)) } }

    static func text(_ text: String) throws -> JSON {
        try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    /// As text: members by their names, as in the other hosts' runners, and slashes as they are.
    var written: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return try String(decoding: encoder.encode(self), as: UTF8.self)
        }
    }

    /// Replaces every text.
    func mapText(_ change: (String) -> String) -> JSON {
        switch self {
        case .string(let text): .string(change(text))
        case .array(let items): .array(items.map { $0.mapText(change) })
        case .object(let members): .object(members.mapValues { $0.mapText(change) })
        default: self
        }
    }
}

/// Names that a script gives to what the client makes up.
struct Names {
    private(set) var values: [String: String] = [:]
    /// In the order of their first mentions.
    private var order: [String] = []

    mutating func bind(_ name: String, _ value: String) throws {
        let known = values[name, default: value]
        try VectorFormat.check(known == value, "expected `\(name)` (\(known)), came \(value)")
        let other = values.first { $0.value == value && $0.key != name }
        try VectorFormat.check(other == nil, "expected a new value for `\(name)`, came that of `\(other?.key ?? "")`")
        if values.updateValue(value, forKey: name) == nil { order.append(name) }
    }

    func value(_ name: String) throws -> String {
        guard let value = values[name] else { throw Unmet("nothing is named `\(name)` yet") }
        return value
    }

    /// The name of a text, or of what the text is a version of; the text, where it has none.
    func name(_ text: String) -> String {
        let name = text.lastIndex(of: ".").map { text[..<$0] } ?? text[...]
        return values.first { $0.value == text || $0.value == name }?.key ?? text
    }

    /// Where a name comes; what has none comes last.
    func place(_ name: String) -> Int {
        order.firstIndex(of: name) ?? .max
    }
}
