import Foundation
import Hopline

/// The state that the clients of an app's own store share: here in memory, elsewhere in a database.
public final class OwnShelf: @unchecked Sendable {
    struct Kept {
        var data: Data
        var until: Int64?
        var isOpen: Bool
    }

    struct Entry: Hashable {
        let space: String, day: Int, name: String
    }

    let clock: CaseClock
    let lock = NSLock()
    /// The lock guards what follows.
    var kept: [String: Kept] = [:]
    var owners: [String: ObjectIdentifier] = [:]
    var day = 0
    var spent: [Entry: Decimal] = [:]

    public init(_ clock: CaseClock = CaseClock()) {
        self.clock = clock
    }

    /// The names that living clients own.
    public var owned: Set<String> { lock.withLock { Set(owners.keys) } }
}

/// One client of it.
public final class OwnStore: Store {
    private let shelf: OwnShelf

    public init(_ shelf: OwnShelf) {
        self.shelf = shelf
    }

    deinit {
        letGo(nil)
    }

    public func claim(_ names: [String], most: Int) async throws -> StoreClaim {
        shelf.lock.withLock {
            sweep()
            let rank = { (name: String) in self.isMine(name) ? 0 : self.shelf.kept[name] != nil ? 1 : 2 }
            let usable = names.filter { isMine($0) || shelf.owners[$0] == nil }.sorted { rank($0) < rank($1) }.prefix(most)
            if usable.isEmpty { return .busy(names.lazy.compactMap { self.shelf.kept[$0]?.data }.first) }
            return .claimed(usable.map { name in
                shelf.owners[name] = ObjectIdentifier(self)
                return (name: name, data: shelf.kept[name]?.data)
            })
        }
    }

    public func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten {
        shelf.lock.withLock {
            sweep()
            let isNew = how.new && shelf.kept[name] == nil && shelf.owners[name] == nil
            guard isMine(name) || isNew else { return .lost }
            let until = how.keepFor.map { shelf.clock.now + $0.components.seconds * 1000 + $0.components.attoseconds / 1_000_000_000_000_000 }
            shelf.kept[name] = OwnShelf.Kept(data: data, until: until, isOpen: until == nil)
            shelf.owners[name] = how.release ? nil : ObjectIdentifier(self)
            return .done
        }
    }

    public func delete(_ name: String) async throws -> StoreWritten {
        shelf.lock.withLock {
            sweep()
            guard isMine(name) else { return shelf.kept[name] == nil ? .done : .lost }
            (shelf.kept[name], shelf.owners[name]) = (nil, nil)
            return .done
        }
    }

    public func release(_ names: [String]?) async throws {
        letGo(names)
    }

    public func list(_ space: String, after: String?, open: Bool) async throws -> StorePage {
        shelf.lock.withLock {
            sweep()
            let found = shelf.kept.filter { $0.key.hasPrefix("\(space).") && $0.key > after ?? "" && (!open || $0.value.isOpen) }
            let entries = found.sorted { $0.key < $1.key }.prefix(500).map { name, kept in
                StorePage.Entry(name: name, data: kept.data, whose: isMine(name) ? .mine : shelf.owners[name] == nil ? .free : .other)
            }
            return StorePage(entries: entries, more: found.count > 500)
        }
    }

    public func spend(_ spend: StoreSpend) async throws -> StoreSpent {
        shelf.lock.withLock {
            shelf.day = max(shelf.day, Int(shelf.clock.now / 86_400_000))
            let entry = OwnShelf.Entry(space: spend.space, day: spend.day ?? shelf.day, name: spend.entry)
            let total = shelf.spent.filter { $0.key.space == entry.space && $0.key.day == entry.day }.values.reduce(0, +)
            let before = shelf.spent[entry] ?? 0
            if let cap = spend.cap, spend.amount > before, total - before + spend.amount > cap { return .over(day: entry.day, total: total) }
            shelf.spent[entry] = spend.amount
            shelf.day = max(shelf.day, entry.day)
            return .granted(day: entry.day)
        }
    }

    public func close() async {
        letGo(nil)
    }

    private func isMine(_ name: String) -> Bool {
        shelf.owners[name] == ObjectIdentifier(self)
    }

    private func letGo(_ names: [String]?) {
        shelf.lock.withLock {
            for name in names ?? Array(shelf.owners.keys) where isMine(name) { shelf.owners[name] = nil }
        }
    }

    /// A record whose time is over and that has no owner is gone.
    private func sweep() {
        shelf.kept = shelf.kept.filter { $1.until.map { $0 > shelf.clock.now } ?? true || shelf.owners[$0] != nil }
    }
}

/// A store around another, for tests that watch it, hold it up or make it fail.
public final class Watched: Store {
    private let store: any Store
    private let atEnds: Bool
    /// Called at the beginning of each call, with its name, and at the end, unless that is not wanted.
    private let passed: @Sendable (String) async throws -> Void

    public init(_ store: any Store, atEnds: Bool = true, passed: @escaping @Sendable (String) async throws -> Void) {
        (self.store, self.atEnds, self.passed) = (store, atEnds, passed)
    }

    public func claim(_ names: [String], most: Int) async throws -> StoreClaim { try await around("claim") { try await $0.claim(names, most: most) } }
    public func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten {
        try await around("put") { try await $0.put(name, data, how: how) }
    }
    public func delete(_ name: String) async throws -> StoreWritten { try await around("delete") { try await $0.delete(name) } }
    public func release(_ names: [String]?) async throws { try await around("release") { try await $0.release(names) } }
    public func list(_ space: String, after: String?, open: Bool) async throws -> StorePage {
        try await around("list") { try await $0.list(space, after: after, open: open) }
    }
    public func spend(_ spend: StoreSpend) async throws -> StoreSpent { try await around("spend") { try await $0.spend(spend) } }
    public func close() async { await store.close() }

    private func around<Answer>(_ call: String, _ body: (any Store) async throws -> Answer) async throws -> Answer {
        try await passed(call)
        let answer = try await body(store)
        if atEnds { try await passed(call) }
        return answer
    }
}
