import Foundation

/// A store of your own, such as a table of a database: names with data, each owned by at most one living client.
///
/// An object serves one client; a further client needs another object, also once the first is closed. What each call must do is written down as data, with nine rules,
/// in `tests/store` of the repository: run these cases against yours. Each call may come again and then does nothing new. A call that
/// throws may be done or not, and must not be done after that; one that throws a `StoreFailure` with `isNotOpened` was surely not done.
///
/// Names and spaces are text of at most 66 characters of `0-9`, `a-z` and `.`; a name begins with its space and a point.
public protocol Store: AnyObject, Sendable {
    /// Makes this client the owner of names that no other living client owns, of `most` at most: those that it owns already first, then
    /// those with data.
    func claim(_ names: [String], most: Int) async throws -> StoreClaim
    /// Stores data under a name that this client owns, so that it outlasts a crash. A crash before the return leaves the old data or the
    /// new.
    func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten
    /// Deletes the data of a name that this client owns, which nobody owns afterwards. Where there is no data it is done.
    func delete(_ name: String) async throws -> StoreWritten
    /// Lets go of those names that this client owns, or of all (`nil`).
    func release(_ names: [String]?) async throws
    /// The names of a space that have data, in order: those after `after`, 500 at most. `open` leaves out what has `keepFor`. It claims
    /// nothing.
    func list(_ space: String, after: String?, open: Bool) async throws -> StorePage
    /// Sets what an entry counts on a day, unless it would grow and the day's sum pass the cap.
    func spend(_ spend: StoreSpend) async throws -> StoreSpent
    /// Ends the use of this object. All names were released before.
    func close() async
    /// Of a store whose claims can end while their owner lives, as in a database: it is called once, before any other call, and gets a
    /// function to call whenever claims have ended, with their names, or with `nil` for all. It may be called from anywhere, and
    /// before a claim that was made meanwhile is granted, or the client would forget that one, too. A store that leaves this out has claims that last as long as their owner.
    func onLost(_ lost: @escaping @Sendable (_ names: [String]?) -> Void)
    /// Of such a store: whether this client's claims stand for the next 20 seconds. It is called before each request; if it returns
    /// false, the request is not sent, and its record is stored again first. A store that leaves this out always vouches.
    func vouches() async -> Bool
    /// Whether a call may still be done after it has thrown, as after a time limit of the store's own. Then a purchase whose record could not be
    /// put is never said to have had no effect. A store that leaves this out does no call after it has thrown.
    var lateCalls: Bool { get }
}

extension Store {
    public func onLost(_ lost: @escaping @Sendable (_ names: [String]?) -> Void) {}
    public func vouches() async -> Bool { true }
    public var lateCalls: Bool { false }
}

/// What a claim brought.
public enum StoreClaim: Sendable {
    /// This client owns these names now. Each comes with its data, if it has any.
    case claimed([(name: String, data: Data?)])
    /// Other living clients own all of them. With what the owner of one of them put last.
    case busy(Data?)
}

/// How data is put.
public struct StorePut: Sendable, Hashable {
    /// Whether to make a name that has no data and that no other client owns, and own it.
    public let new: Bool
    /// How long to keep the data once nobody owns the name, counted from now. Without it: for good.
    public let keepFor: Duration?
    /// Whether to let go of the name in the same step.
    public let release: Bool

    /// How data is put.
    public init(new: Bool = false, keepFor: Duration? = nil, release: Bool = false) {
        (self.new, self.keepFor, self.release) = (new, keepFor, release)
    }
}

/// Whether data was put or deleted.
public enum StoreWritten: Sendable {
    /// It was done.
    case done
    /// Nothing has changed: this client does not own the name, or a new name was there already.
    case lost
}

/// Names of a space.
public struct StorePage: Sendable {
    /// A name that has data.
    public struct Entry: Sendable, Hashable {
        /// The name.
        public let name: String
        /// What was put last.
        public let data: Data
        /// Who owns it.
        public let whose: Whose

        /// A name that has data.
        public init(name: String, data: Data, whose: Whose) {
            (self.name, self.data, self.whose) = (name, data, whose)
        }
    }

    /// The names, in the order of their bytes.
    public let entries: [Entry]
    /// Whether more follow.
    public let more: Bool

    /// Names of a space.
    public init(entries: [Entry], more: Bool) {
        (self.entries, self.more) = (entries, more)
    }
}

/// What an entry is to count on a day.
public struct StoreSpend: Sendable, Hashable {
    /// Whose day it is.
    public let space: String
    /// The day, in days since 1 January 1970 by UTC. Without it: today by the store's clock, which never goes back to an earlier day.
    public let day: Int?
    /// The entry: hexadecimal digits.
    public let entry: String
    /// What it counts, in USD.
    public let amount: Decimal
    /// The most that the day's entries may come to, in USD. Without it there is no cap.
    public let cap: Decimal?

    /// What an entry is to count on a day.
    public init(space: String, day: Int? = nil, entry: String, amount: Decimal, cap: Decimal? = nil) {
        (self.space, self.day, self.entry, self.amount, self.cap) = (space, day, entry, amount, cap)
    }
}

/// What became of a `StoreSpend`.
public enum StoreSpent: Sendable, Hashable {
    /// The entry counts on that day.
    case granted(day: Int)
    /// Nothing has changed: the entry would grow and the day's sum pass the cap. With the day, and its sum as it stands.
    case over(day: Int, total: Decimal)
}

/// Why a store can't do what it is asked. A store of your own may throw it, so that errors tell the sentence; of any other error only
/// the type is told.
public struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// One sentence for a person. It must hold no secret.
    public let description: String
    /// Whether the store could not be opened at all, so that the call was surely not done.
    public let isNotOpened: Bool

    /// A failure.
    public init(_ description: String, isNotOpened: Bool = false) {
        (self.description, self.isNotOpened) = (description, isNotOpened)
    }
}
