import Foundation

/// A store of your own, such as a table of a database: names with data, each owned by at most one living client.
///
/// An object serves one client; a further client needs another object, even once the first is closed. The repository's `tests/store` has
/// cases, as data, for what each call must do, and nine rules: run these cases against your store. Each call may come again and then does
/// nothing new. A call that throws may or may not be done, and must not be done after that; one that throws a `StoreFailure` with
/// `isNotOpened` was certainly not done. A call that takes longer than 30 s counts as one that threw, and no other call is made before it has
/// ended.
///
/// Names and spaces are text of at most 66 characters of `0-9`, `a-z` and `.`; a name begins with its space and a point.
public protocol Store: AnyObject, Sendable {
    /// Makes this client the owner of at most `most` of the names that no other living client owns: those that it owns already first, then
    /// those with data.
    func claim(_ names: [String], most: Int) async throws -> StoreClaim
    /// Stores data under a name that this client owns, so that it survives a crash. A crash before the return leaves the old data or the
    /// new.
    func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten
    /// Deletes the data of a name that this client owns, and releases the name. A name without data counts as deleted.
    func delete(_ name: String) async throws -> StoreWritten
    /// Releases those of the names that this client owns, or all (`nil`).
    func release(_ names: [String]?) async throws
    /// Returns the names of a space that have data, in order: those after `after`, at most 500. `open` leaves out data with `keepFor`.
    /// Claims nothing.
    func list(_ space: String, after: String?, open: Bool) async throws -> StorePage
    /// Sets the amount of an entry on a day, unless it would grow and the day's sum pass the cap.
    func spend(_ spend: StoreSpend) async throws -> StoreSpent
    /// Ends the use of this object. All names were released before.
    func close() async
    /// Registers a function to call whenever claims have ended while their owner lives, as in a database, with their names, or with `nil`
    /// for all. Called once, before any other call. Any thread may call the function, but before a claim that was made meanwhile is
    /// granted, or the client would forget that one, too. The default is for stores whose claims last as long as their owner.
    func onLost(_ lost: @escaping @Sendable (_ names: [String]?) -> Void)
    /// Returns true if this client's claims stand for the next 20 seconds; for stores whose claims can end. Called before each request; if
    /// it returns false, the request is not sent, and its record is stored again first. The default returns true.
    func vouches() async -> Bool
    /// True if a call may still be done after it has thrown, as after a time limit of the store's own. Then a purchase whose record could
    /// not be put is never reported as without effect. The default is false.
    var lateCalls: Bool { get }
}

extension Store {
    public func onLost(_ lost: @escaping @Sendable (_ names: [String]?) -> Void) {}
    public func vouches() async -> Bool { true }
    public var lateCalls: Bool { false }
}

/// The result of a claim.
public enum StoreClaim: Sendable {
    /// This client owns these names now. Each comes with its data, if it has any.
    case claimed([(name: String, data: Data?)])
    /// Other living clients own all of the names. Holds the data that the owner of one of them put last.
    case busy(Data?)
}

/// The way in which data is put.
public struct StorePut: Sendable, Hashable {
    /// True to make a name that has no data and that no other client owns, and own it.
    public let new: Bool
    /// The time for which to keep the data once the name has no owner, counted from now. Default: forever.
    public let keepFor: Duration?
    /// True to release the name in the same step.
    public let release: Bool

    /// Makes the way in which data is put.
    public init(new: Bool = false, keepFor: Duration? = nil, release: Bool = false) {
        (self.new, self.keepFor, self.release) = (new, keepFor, release)
    }
}

/// The result of a put or delete.
public enum StoreWritten: Sendable {
    /// The change was made.
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
        /// The data that was put last.
        public let data: Data
        /// The owner.
        public let whose: Whose

        /// A name that has data.
        public init(name: String, data: Data, whose: Whose) {
            (self.name, self.data, self.whose) = (name, data, whose)
        }
    }

    /// The names, in the order of their bytes.
    public let entries: [Entry]
    /// True if more follow.
    public let more: Bool

    /// Names of a space.
    public init(entries: [Entry], more: Bool) {
        (self.entries, self.more) = (entries, more)
    }
}

/// The amount that an entry is to count on a day.
public struct StoreSpend: Sendable, Hashable {
    /// The space whose day it is.
    public let space: String
    /// The day, in days since 1 January 1970 by UTC. Default: today by the store's clock, which never goes back to an earlier day.
    public let day: Int?
    /// The entry: hexadecimal digits.
    public let entry: String
    /// The amount in USD.
    public let amount: Decimal
    /// The cap on the sum of the day's entries, in USD. Default: no cap.
    public let cap: Decimal?

    /// Makes the amount that an entry is to count on a day.
    public init(space: String, day: Int? = nil, entry: String, amount: Decimal, cap: Decimal? = nil) {
        (self.space, self.day, self.entry, self.amount, self.cap) = (space, day, entry, amount, cap)
    }
}

/// The result of a `StoreSpend`.
public enum StoreSpent: Sendable, Hashable {
    /// The entry counts on that day.
    case granted(day: Int)
    /// Nothing was changed: the entry would grow and the day's sum pass the cap. Holds the day, and its sum as it stands.
    case over(day: Int, total: Decimal)
}

/// The reason why a store can't carry out a call. A store of your own may throw it, so that errors contain the sentence; of any other error
/// they contain only the type.
public struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// One sentence for a person. The sentence must hold no secret.
    public let description: String
    /// True if the store could not be opened at all, so that the call was certainly not done.
    public let isNotOpened: Bool

    /// A failure.
    public init(_ description: String, isNotOpened: Bool = false) {
        (self.description, self.isNotOpened) = (description, isNotOpened)
    }
}
