import Foundation

internal import HoplineCore

/// The items of a list, over all of its pages. Pages are fetched lazily, in the order that the core determines.
///
/// A read that fails throws a `HoplineError` and moves nothing: iterate again to try that page again.
public final class Walk<List: Sendable, Item: Sendable>: AsyncSequence, @unchecked Sendable {
    /// An item of the list.
    public typealias Element = Item

    private let client: HoplineClient
    private let operation: String
    private let params: String
    private let told: Parameters
    private let items: @Sendable (List) -> [Item]
    private let reply: @Sendable (Answered) throws(HoplineError) -> Reply<List>
    private let lock = NSLock()
    /// The lock guards it.
    private var turn: Turn

    init(
        _ client: HoplineClient, _ operation: String, _ params: Parameters, _ told: Parameters, _ begin: Turn,
        _ items: @escaping @Sendable (List) -> [Item]
    ) where List: Packable {
        (self.client, self.operation, self.params, self.told, self.items) = (client, operation, params.json.text, told, items)
        reply = { answered throws(HoplineError) in try answered.reply(operation) }
        turn = begin
    }

    /// The position to continue from, as JSON: save it anywhere, and pass it to another walk. The position moves when a page, or the last
    /// item of one, was handed out, and is nil at the end of the list.
    public var position: String? { lock.withLock { turn.position } }

    /// The reason why the walk is over; nil as long as it is not.
    public var end: WalkEnd? { lock.withLock { turn.end } }

    /// The walk, a page at a time.
    public var pages: Pages { Pages(walk: self) }

    /// Continues from `position`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(walk: self)
    }

    /// An iterator over the items.
    public struct Iterator: AsyncIteratorProtocol {
        let walk: Walk
        private var items: ArraySlice<Item> = []
        private var after: Turn?

        init(walk: Walk) {
            self.walk = walk
        }

        /// Returns the next item, or throws a `HoplineError`.
        public mutating func next() async throws -> Item? {
            while items.isEmpty {
                guard let page = try await walk.read() else { return nil }
                (items, after) = (page.items[...], page.turn)
                if items.isEmpty { walk.move(page.turn) }
            }
            let item = items.removeFirst()
            if items.isEmpty, let after { walk.move(after) }
            return item
        }
    }

    /// The pages of a list.
    public struct Pages: AsyncSequence, Sendable {
        /// A page, as its own operation answers it.
        public typealias Element = Reply<List>
        let walk: Walk

        /// Continues from the walk's `position`.
        public func makeAsyncIterator() -> Iterator {
            Iterator(walk: walk)
        }

        /// An iterator over the pages.
        public struct Iterator: AsyncIteratorProtocol {
            let walk: Walk

            /// Returns the next page, or throws a `HoplineError`.
            public mutating func next() async throws -> Reply<List>? {
                guard let page = try await walk.read() else { return nil }
                walk.move(page.turn)
                return page.turn.isRepeated ? nil : page.reply
            }
        }
    }

    /// The next page, if there is one, and the continuation after it.
    private func read() async throws(HoplineError) -> (reply: Reply<List>, items: [Item], turn: Turn)? {
        let now = lock.withLock { turn }
        guard now.end == nil, let position = now.position else { return nil }
        let asked = try core { try pageParams(position: position, params: params) }
        let answered = try await client.answer(operation, asked, told)
        let reply = try self.reply(answered)
        let after = try core { try pageTurn(position: position, facts: answered.facts) }
        let next = try core { try JSONDecoder().decode(Turn.self, from: Data(after.utf8)) }
        return (reply, next.isRepeated ? [] : items(reply.value), next)
    }

    private func move(_ next: Turn) {
        lock.withLock { turn = next }
    }
}

extension Walk: CustomStringConvertible, CustomReflectable {
    /// The operation and the position.
    public var description: String { "\(operation) at \(position ?? end?.rawValue ?? "its end")" }
    /// No members.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }
}

/// The position of a walk, or the continuation after a page.
struct Turn: Decodable, Sendable {
    let position: String?
    let end: WalkEnd?

    /// True if the page repeats items, which are not given again.
    var isRepeated: Bool { end == .repeatedPage }
}

extension HoplineClient {
    /// Every walk begins here. Nothing is sent.
    func walk<List: Packable, Item>(
        _ operation: String, _ params: Parameters, _ told: Parameters, _ position: String?, _ maxPages: Int?,
        _ items: @escaping @Sendable (List) -> [Item]
    ) throws(HoplineError) -> Walk<List, Item> {
        var begin = Parameters()
        begin.add("operation", operation)
        begin.add("position", position)
        begin.add("max_pages", maxPages)
        return Walk(self, operation, params, told, try ask("walk", begin.json), items)
    }
}
