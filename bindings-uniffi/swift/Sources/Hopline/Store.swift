import Foundation

/// A store that several clients may share.
public protocol Store: Sendable {
    /// The store for one more client.
    func open() throws -> any Shelf
}

/// A store as one client has it. What a client claims, no other living client of the store has. Its methods may wait for a
/// disk: they are called from threads of their own.
public protocol Shelf: Sendable {
    /// Keeps a record so that it survives a crash, or deletes it (`nil`). Throws unless that is certain, and if another living
    /// client has the record.
    func keep(_ record: String, _ data: Data?) throws
    /// Held while free records are looked for and claimed, by one client of the store at a time.
    func scanning<Found>(_ body: () throws -> Found) throws -> Found
    /// The records that no living client has.
    func free() throws -> [(record: String, data: Data)]
    /// Makes a record this client's and reads it; nothing if another client has it or it is gone.
    func claim(_ record: String) throws -> Data?
    /// Gives a record back, as it is. One that is not this client's is left alone.
    func release(_ record: String)
    /// Makes an intent this client's; whether no other living client has it.
    func claimIntent(_ intent: String) throws -> Bool
    /// Gives an intent back.
    func releaseIntent(_ intent: String)
    /// Gives everything back.
    func close()
}

/// Records in memory. Clients of one process can share them; they end with the process.
public final class MemoryStore: Store, @unchecked Sendable {
    fileprivate let lock = NSLock()
    /// The lock guards both.
    fileprivate var records: [String: Data] = [:]
    fileprivate var claims: [Claim: MemoryShelf] = [:]

    fileprivate enum Claim: Hashable {
        case record(String)
        case intent(String)
    }

    /// An empty store.
    public init() {}

    /// The store for one more client.
    public func open() throws -> any Shelf {
        MemoryShelf(self)
    }
}

private final class MemoryShelf: Shelf {
    private let store: MemoryStore

    init(_ store: MemoryStore) {
        self.store = store
    }

    func keep(_ record: String, _ data: Data?) throws {
        try store.lock.withLock {
            guard take(.record(record)) else { throw Trouble.taken }
            store.records[record] = data
            if data == nil { give(.record(record)) }
        }
    }

    func scanning<Found>(_ body: () throws -> Found) throws -> Found {
        try body()
    }

    func free() throws -> [(record: String, data: Data)] {
        store.lock.withLock {
            store.records.filter { store.claims[.record($0.key)] == nil }.map { (record: $0.key, data: $0.value) }
        }
    }

    func claim(_ record: String) throws -> Data? {
        store.lock.withLock { store.records[record].flatMap { take(.record(record)) ? $0 : nil } }
    }

    func release(_ record: String) {
        store.lock.withLock { give(.record(record)) }
    }

    func claimIntent(_ intent: String) throws -> Bool {
        store.lock.withLock { take(.intent(intent)) }
    }

    func releaseIntent(_ intent: String) {
        store.lock.withLock { give(.intent(intent)) }
    }

    func close() {
        store.lock.withLock { store.claims = store.claims.filter { $0.value !== self } }
    }

    private func take(_ claim: MemoryStore.Claim) -> Bool {
        if store.claims[claim] == nil { store.claims[claim] = self }
        return store.claims[claim] === self
    }

    private func give(_ claim: MemoryStore.Claim) {
        if store.claims[claim] === self { store.claims[claim] = nil }
    }
}
