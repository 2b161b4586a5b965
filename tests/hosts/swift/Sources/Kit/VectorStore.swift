import Foundation
import Hopline
import HoplineCore

/// The store of a case: what a store would answer, so that a script names only what it is about.
struct CaseStore {
    private struct Kept {
        var data: Data
        var until: Int64?
        var owned: Bool
    }

    private struct Entry: Hashable {
        let day: Int64
        let name: String
    }

    private static let page = 500
    private var kept: [String: Kept] = [:]
    /// The records that were put or deleted without confirmation: they may be on the disk.
    private var unsure: [String: Data?] = [:]
    private var day: Int64 = 0
    private var entries: [Entry: Decimal] = [:]

    /// The answer of the store.
    mutating func call(_ call: StoreCall, _ unix: Int64) -> StoreAnswer {
        kept = kept.filter { $1.owned || $1.until.map { $0 > unix } ?? true }
        switch call {
        case .claim(let names, _):
            names.forEach { kept[$0]?.owned = true }
            return .claimed(names: names.map { ClaimedName(name: $0, data: kept[$0]?.data) })
        case .put(let name, let data, let new, let keepFor, let release):
            unsure[name] = nil
            if new, kept[name]?.owned == false { return .lost }
            kept[name] = Kept(data: data, until: keepFor.map { unix + $0 }, owned: !release)
            return .done
        case .delete(let name):
            (unsure[name], kept[name]) = (nil, nil)
            return .done
        case .release(let names):
            (names ?? Array(kept.keys)).forEach { kept[$0]?.owned = false }
            return .done
        case .list(let space, let after, let open):
            let isListed = { (name: String, known: Kept) in name.hasPrefix("\(space).") && name > after ?? "" && !(open && known.until != nil) }
            let found = kept.filter(isListed).sorted { $0.key < $1.key }
            let page = found.prefix(Self.page).map { ListedName(name: $0.key, data: $0.value.data, whose: $0.value.owned ? .mine : .free) }
            return .listed(entries: page, more: found.count > Self.page)
        case .spend(_, let given, let name, let usd, let cap):
            return spend(given, name, usd, cap, unix)
        }
    }

    private mutating func spend(_ given: Int64?, _ name: String, _ usd: String, _ cap: String?, _ unix: Int64) -> StoreAnswer {
        let latest = today(unix)
        let entry = Entry(day: given ?? latest, name: name)
        let (amount, cap) = (Decimal(string: usd) ?? .nan, cap.flatMap { Decimal(string: $0) })
        let total = entries.filter { $0.key.day == entry.day && $0.key != entry }.values.reduce(0, +)
        let grows = entries[entry].map { amount > $0 } ?? true
        if let cap, grows, total + amount > cap { return .over(day: entry.day, total: total.description) }
        entries[entry] = amount
        return .granted(day: entry.day)
    }

    /// The day by a clock that never goes back.
    mutating func today(_ unix: Int64) -> Int64 {
        day = max(day, unix / 86_400_000)
        return day
    }

    /// A call was made, and nobody knows yet what came of it.
    mutating func doubt(_ call: StoreCall) {
        switch call {
        case .put(let name, let data, _, _, _): unsure[name] = .some(data)
        case .delete(let name): unsure[name] = .some(nil)
        default: break
        }
    }

    /// Another client has these names from now on.
    mutating func takeAway(_ names: [String]) {
        names.forEach { kept[$0]?.owned = false }
    }

    /// The process dies: what it had is free, and these writes are on the disk though nobody confirmed them.
    mutating func crash(_ also: [String]) throws {
        for name in also {
            guard let data = unsure[name] else { throw Unmet("every write of `\(name)` was confirmed") }
            kept[name] = data.map { Kept(data: $0, until: nil, owned: false) }
        }
        unsure = [:]
        kept.keys.forEach { kept[$0]?.owned = false }
    }

    func data(_ name: String) -> Data? { kept[name]?.data }

    mutating func plant(_ name: String, _ data: Data) {
        kept[name] = Kept(data: data, until: kept[name]?.until, owned: kept[name]?.owned ?? false)
    }
}

extension StoreCall {
    /// True if the store answers the call where the script does not name it.
    var answersItself: Bool {
        switch self {
        case .put, .delete: false
        case .claim, .release, .list, .spend: true
        }
    }

    /// The verb of a script that names it, and the names that it is about.
    var verb: (String, names: [String]) {
        switch self {
        case .put(let name, _, _, _, _): ("put", [name])
        case .delete(let name): ("delete", [name])
        case .claim(let names, _): ("claim", names)
        case .release(let names): ("release", names ?? [])
        case .list: ("list", [])
        case .spend: ("spend", [])
        }
    }
}

/// The part of a script about calls of the store.
extension Vectors {
    mutating func asked(_ step: Step) throws {
        let found = try next { $0.verb.0 == step.verb }
        guard case .store(let id, _, let call) = found, call.verb.0 == step.verb else { throw Unmet("expected a \(step.verb) of \(step.about), came \(found)") }
        switch call {
        case .put(let name, let data, let new, let keepFor, let release):
            let text = String(decoding: data, as: UTF8.self)
            try VectorFormat.noSecret("a record", text)
            try records.bind(step.name, name)
            try said(step, "new", .bool(new))
            try said(step, "releases", .bool(release))
            try said(step, "keep_for", keepFor.map { .number(Decimal($0)) } ?? .null)
            try VectorFormat.like(step["has"] ?? [:], named(JSON.text(text)), "has")
        case .delete, .claim, .release:
            guard let name = call.verb.names.first, call.verb.names.count == 1 else { throw Unmet("expected one name, came \(found)") }
            try records.bind(step.name, name)
        case .list(_, _, let open):
            try VectorFormat.same(step.about, open ? "open" : "all", "list")
        case .spend(_, let day, let entry, let usd, let cap):
            try entries.bind(step.name, entry)
            try said(step, "usd", .string(usd))
            try said(step, "day", day.map { .number(Decimal($0)) } ?? .null)
            try said(step, "cap", cap.map { .string($0) } ?? .null)
        }
        store.doubt(call)
        calls[id] = call
        try name(step, id)
    }

    /// Compares what the script says, where it says something.
    private func said(_ step: Step, _ member: String, _ found: JSON) throws {
        if let expected = step[member] { try VectorFormat.same(expected, found, member) }
    }

    /// The store answers.
    mutating func storeAnswered(_ id: UInt32, _ word: String) throws {
        let call = calls[id]
        let names = call?.verb.names ?? []
        let answer: StoreAnswer
        switch word {
        case "failed": answer = .failed
        case "never": answer = .never
        case "lost":
            store.takeAway(names)
            answer = .lost
        case "busy": answer = .busy(data: names.first.flatMap(store.data))
        case "over": answer = .over(day: store.today(unix), total: "0")
        default: answer = call.map { store.call($0, unix) } ?? .done
        }
        switch (word, answer) {
        case ("failed", _), ("never", _), ("lost", _), ("busy", _), ("over", _), ("done", .done), ("done", .lost), ("claimed", .claimed), ("listed", .listed),
            ("counted", .granted), ("counted", .over):
            break
        default: throw Unmet("the store would not answer `\(word)`, but \(answer)")
        }
        try act(.stored(step: id, answer: answer))
        calls[id] = nil
    }

    mutating func plant(_ step: Step) throws {
        if let name = step["name"]?.string { try records.bind(step.name, name) }
        let record = try records.value(step.name)
        if let change = step["change"]?.object {
            guard let data = store.data(record) else { throw Unmet("\(step.about) is in the store") }
            let changed = try VectorFormat.overlay(JSON.text(String(decoding: data, as: UTF8.self)).object ?? [:], change)
            try store.plant(record, Data(JSON.object(changed).written.utf8))
        } else {
            store.plant(record, Data((step["text"]?.string ?? "").utf8))
        }
    }

    mutating func lost(_ step: Step) throws {
        let names = try (step.about.array ?? []).map { try records.value($0.string ?? "") }
        store.takeAway(names)
        try act(.lost(names: names))
    }
}
