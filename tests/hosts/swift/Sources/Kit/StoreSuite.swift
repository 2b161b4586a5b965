import Foundation
import Hopline

/// The clock of a case.
public final class CaseClock: @unchecked Sendable {
    private let lock = NSLock()
    private var time: Int64 = 1_750_000_000_000

    public init() {}

    public var now: Int64 {
        get { lock.withLock { time } }
        set { lock.withLock { time = newValue } }
    }
}

/// A store that the suite tries.
public struct StoreSubject {
    let open: () throws -> any Store
    let damage: ((_ name: String, _ how: String) throws -> Void)?

    /// `open` gives one more client. Without `damage` the cases that need it are left out.
    public init(open: @escaping () throws -> any Store, damage: ((_ name: String, _ how: String) throws -> Void)? = nil) {
        (self.open, self.damage) = (open, damage)
    }
}

/// The requirements of every store, as data: `tests/store/README.md` defines the words.
public struct StoreSuite {
    typealias Object = [String: JSON]
    private static let needs: Set<String> = ["dies", "damage", "leases"]

    /// Runs all cases that this runner can: how many there are, how many of them it left out, and what failed.
    public static func run(_ folder: URL, _ subject: (CaseClock) -> StoreSubject) async throws -> (count: Int, leftOut: Int, failures: [String]) {
        var (names, leftOut, failures) = (Set<String>(), 0, [String]())
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).filter { $0.pathExtension == "json" }
        for file in files.sorted(by: { $0.path < $1.path }) {
            let read = try JSONDecoder().decode(Object.self, from: Data(contentsOf: file))
            try VectorFormat.only(read, ["about", "cases"], file.lastPathComponent)
            for each in read["cases"]?.array ?? [] {
                guard let each = each.object, let name = each["name"]?.string else { throw Unmet("\(file.lastPathComponent): a case has a name") }
                try VectorFormat.only(each, ["name", "needs", "steps"], name)
                try VectorFormat.check(names.insert(name).inserted, "two cases are called `\(name)`")
                let clock = CaseClock()
                let subject = subject(clock)
                let needed = Set((each["needs"]?.array ?? []).compactMap(\.string))
                try VectorFormat.check(needed.isSubset(of: needs), "\(name) needs \(needed)")
                if !needed.isSubset(of: subject.damage == nil ? [] : ["damage"]) {
                    leftOut += 1
                    continue
                }
                do {
                    try await StoreSuite(subject: subject, clock: clock).play(each["steps"]?.array ?? [])
                } catch {
                    failures.append("\(name): \(error)")
                }
            }
        }
        try VectorFormat.check(names.count > leftOut, "there are no cases in \(folder.path)")
        return (names.count, leftOut, failures)
    }

    private let subject: StoreSubject
    private let clock: CaseClock

    private func play(_ steps: [JSON]) async throws {
        var clients: [String: any Store] = [:]
        try VectorFormat.check(!steps.isEmpty, "a case has steps")
        for (place, step) in steps.enumerated() {
            let step = step.object ?? [:]
            do {
                if let name = step["as"]?.string {
                    if clients[name] == nil { clients[name] = try subject.open() }
                    if let client = clients[name] { try await call(client, step) }
                } else if let name = step["close"]?.string {
                    try VectorFormat.only(step, ["close"], "close")
                    await clients.removeValue(forKey: name)?.close()
                } else if let name = step["die"]?.string {
                    try VectorFormat.only(step, ["die"], "die")
                    clients[name] = nil
                } else if let now = step["now"]?.int {
                    try VectorFormat.only(step, ["now"], "now")
                    clock.now = Int64(now)
                } else if let name = step["damage"]?.string, let how = step["how"]?.string {
                    try VectorFormat.only(step, ["damage", "how"], "damage")
                    try subject.damage?(name, how)
                } else {
                    throw Unmet("a step is understood, and this has the members \(step.keys.sorted())")
                }
            } catch {
                throw Unmet("step \(place + 1): \(error)")
            }
        }
    }

    private func call(_ client: any Store, _ step: Object) async throws {
        let verbs: [String: Set<String>] = [
            "claim": ["most", "answer"], "put": ["data", "new", "release", "keep_for", "answer"], "delete": ["answer"],
            "release": ["answer"], "list": ["after", "open", "answer"], "spend": ["space", "day", "amount", "cap", "answer"],
            "fill": ["data", "release", "keep_for"],
        ]
        // `release` is a member of a put, too.
        let verb = step["put"] != nil ? "put" : step["fill"] != nil ? "fill" : verbs.keys.first { step[$0] != nil } ?? ""
        guard let members = verbs[verb], let about = step[verb], let answer = verb == "fill" ? .null : step["answer"] else {
            throw Unmet("a call is understood, and this has the members \(step.keys.sorted())")
        }
        try VectorFormat.only(step, members.union(["as", verb]), verb)
        switch verb {
        case "claim":
            let names = (about.array ?? []).compactMap(\.string)
            try claimed(try await client.claim(names, most: step["most"]?.int ?? -1), answer)
        case "put":
            try said(try await client.put(about.string ?? "", Data((step["data"]?.string ?? "").utf8), how: how(step)), answer)
        case "delete":
            try said(try await client.delete(about.string ?? ""), answer)
        case "release":
            try await client.release(about == "all" ? nil : (about.array ?? []).compactMap(\.string))
            try VectorFormat.same(answer, "done", "answer")
        case "list":
            try listed(try await client.list(about.string ?? "", after: step["after"]?.string, open: step["open"] == true), answer)
        case "spend":
            let spend = try StoreSpend(
                space: step["space"]?.string ?? "", day: step["day"]?.int, entry: about.string ?? "", amount: money(step["amount"]),
                cap: step["cap"].map { try money($0) })
            let over: StoreSpent? = try answer["over"].map { .over(day: answer["day"]?.int ?? -1, total: try money($0)) }
            let expected = over ?? .granted(day: answer["granted"]?.int ?? -1)
            let came = try await client.spend(spend)
            try VectorFormat.check(came == expected, "expected \(expected), came \(came)")
        default:
            let (first, count) = (about["first"]?.int ?? 0, about["count"]?.int ?? 0)
            for number in first..<first + count {
                let digits = String(number, radix: 16)
                let hash = String(repeating: "0", count: 32 - digits.count) + digits
                let name = "\(about["space"]?.string ?? "").\(about["kind"]?.string ?? "")\(hash)"
                let how = StorePut(new: true, keepFor: how(step).keepFor, release: how(step).release)
                try said(try await client.put(name, Data((step["data"]?.string ?? "").utf8), how: how), "done")
            }
        }
    }

    private func how(_ step: Object) -> StorePut {
        StorePut(new: step["new"] == true, keepFor: step["keep_for"]?.int.map { .milliseconds($0) }, release: step["release"] == true)
    }

    private func money(_ text: JSON?) throws -> Decimal {
        guard let found = text?.string.flatMap({ Decimal(string: $0) }) else { throw Unmet("\(text ?? .null) is an amount") }
        return found
    }

    private func said(_ written: StoreWritten, _ expected: JSON) throws {
        try VectorFormat.same(expected, written == .done ? "done" : "lost", "answer")
    }

    private func claimed(_ came: StoreClaim, _ expected: JSON) throws {
        let fits: Bool
        switch (came, expected["claimed"]?.object, expected["of"]?.object, expected["busy"]) {
        case (.claimed(let names), let all?, nil, nil): fits = names.count == all.count && isOf(names, all)
        case (.claimed(let names), nil, let all?, nil): fits = names.count == expected["claimed_count"]?.int && isOf(names, all)
        case (.busy(let data), nil, nil, let busy?): fits = isLike(busy, data)
        default: fits = false
        }
        try VectorFormat.check(fits, "expected \(expected), came \(came)")
    }

    /// True if these are among those, each once.
    private func isOf(_ came: [(name: String, data: Data?)], _ those: Object) -> Bool {
        Set(came.map(\.name)).count == came.count && came.allSatisfy { name, data in those[name].map { isLike($0, data) } ?? false }
    }

    private func isLike(_ expected: JSON, _ data: Data?) -> Bool {
        let isText = { (text: JSON) in text.string.map { Data($0.utf8) } == data }
        if let several = expected["one_of"]?.array { return several.contains(where: isText) }
        if expected["unreadable"] == true { return data.map { (try? JSONDecoder().decode(JSON.self, from: $0)) == nil } ?? false }
        return expected.object == nil && isText(expected)
    }

    private func listed(_ came: StorePage, _ expected: JSON) throws {
        var fits = expected["more"] == .bool(came.more)
        if let entries = expected["entries"]?.array {
            fits = fits && entries.count == came.entries.count
            for (entry, found) in zip(entries, came.entries) {
                let isSame = entry["name"] == .string(found.name) && entry["whose"] == .string(found.whose.rawValue)
                fits = fits && isSame && isLike(entry["data"] ?? .null, found.data)
            }
        } else {
            let ends = [came.entries.first?.name, came.entries.last?.name]
            fits = fits && expected["count"]?.int == came.entries.count && ends == [expected["first"]?.string, expected["last"]?.string]
        }
        try VectorFormat.check(fits, "expected \("\(expected)".prefix(600)), came \("\(came)".prefix(600))")
    }
}
