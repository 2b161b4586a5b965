import Foundation
import Hopline
import Kit
import Testing

@Suite("lists that are walked page by page")
struct WalkTests {
    /// A service whose pages hold one product each and name these next ones.
    private func pages(_ cursors: String?...) throws -> Wire {
        try Wire(asked: { connection, number in
            let item = #"{"product_no":"p-\#(number)","name":"","type":"dynamic","sharing":"shared","available":true,"price":1,"currency":"USD","unit":"GB"}"#
            let next = cursors[number - 1].map { "\"\($0)\"" } ?? "null"
            connection.answer("200 OK", ["content-type: application/json"], #"{"success":true,"data":{"items":[\#(item)],"next_cursor":\#(next)}}"#)
        })
    }

    private func all<Sequence: AsyncSequence>(_ sequence: Sequence) async throws -> [Sequence.Element] {
        var found: [Sequence.Element] = []
        for try await element in sequence { found.append(element) }
        return found
    }

    @Test("a walk gives every item once, in order", arguments: [1, 2, 3, 100])
    func items(_ limit: Int) async throws {
        let sandbox = try await Sandbox()
        let agent = try sandbox.client()
        let whole = try await agent.listProducts(inStock: false, limit: 100)
        #expect(whole.nextCursor == nil && whole.items.count > 4)
        let walk = try agent.walkProducts(inStock: false, limit: limit)
        #expect(try await all(walk) == whole.items)
        #expect(walk.end == .lastPage && walk.position == nil)
        #expect(try await all(walk).isEmpty, "it is over")
        let read = try await all(agent.walkProducts(inStock: false, limit: limit).pages)
        #expect(read.count == (whole.items.count + limit - 1) / limit && read.flatMap(\.items) == whole.items)
        let open = try await agent.listPublicProducts(type: .static, limit: 100).items
        #expect(try await all(agent.walkPublicProducts(type: .static, limit: limit)) == open)
    }

    @Test("a walk goes on in another client where it was left")
    func goesOn() async throws {
        let sandbox = try await Sandbox()
        let agent = try sandbox.client()
        let whole = try await agent.listProducts(inStock: false, limit: 100).items
        let walk = try agent.walkProducts(inStock: false, limit: 2)
        let begin = walk.position
        var items = walk.makeAsyncIterator()
        #expect(try await items.next() == whole[0])
        #expect(walk.position == begin, "the page is not at its end")
        #expect(try await items.next() == whole[1])
        #expect(walk.position != begin)
        let further = try sandbox.client().walkProducts(inStock: false, limit: 2, position: walk.position)
        #expect(try await all(further) == Array(whole[2...]) && further.end == .lastPage)
    }

    @Test("a cap ends a walk, and a higher one goes on")
    func cap() async throws {
        let sandbox = try await Sandbox()
        let agent = try sandbox.client()
        let whole = try await agent.listProducts(inStock: false, limit: 100).items
        let walk = try agent.walkProducts(inStock: false, limit: 1, maxPages: 2)
        #expect(try await all(walk) == Array(whole[..<2]) && walk.end == .pageCap)
        let further = try agent.walkProducts(inStock: false, limit: 1, position: walk.position, maxPages: 3)
        #expect(try await all(further) == [whole[2]] && further.end == .pageCap)
    }

    @Test("a list that never ends is left, and an empty cursor is its end")
    func endless() async throws {
        let wire = try pages("a", "b", "a", "c")
        let walk = try client(wire.url).walkProducts()
        #expect(try await all(walk).map(\.productNo) == ["p-1", "p-2", "p-3"] && walk.end == .repeatedCursor)
        let asked = wire.seen.map { $0.prefix { $0 != "\r" }.components(separatedBy: "cursor=").dropFirst().first?.prefix(1) }
        #expect(asked == [nil, "a", "b"])
        let empty = try pages("")
        #expect(try await all(client(empty.url).walkProducts()).count == 1 && empty.seen.count == 1)
    }

    @Test("a page that can't be read loses nothing")
    func failing() async throws {
        let sandbox = try await Sandbox()
        let agent = try sandbox.client(options: ClientOptions(attempts: 1))
        let whole = try await agent.listProducts(inStock: false, limit: 100).items
        let walk = try agent.walkProducts(inStock: false, limit: 2)
        var given: [Product] = []
        let error = try await failure {
            for try await item in walk {
                given.append(item)
                if given.count == 2 { try await sandbox.fault("list_products", ["kind": "html", "status": 502]) }
            }
        }
        #expect(error.operation == "list_products" && given.count == 2 && walk.end == nil)
        #expect(try await given + all(walk) == whole)
    }

    @Test("what can't be walked is refused before anything is sent")
    func misuse() async throws {
        let wire = try Wire()
        let agent = try client(wire.url)
        for position in ["", "nothing", "{}", "[]", #"{"operation":"get_balance"}"#, #"{"operation":"list_products","pages":-1}"#] {
            let error = try await failure { try agent.walkProducts(position: position) }
            #expect(error.kind == .invalid && error.effect == .none, "\(position): \(error)")
        }
        let other = try await failure { try agent.walkProducts(position: agent.walkPublicProducts().position) }
        #expect(other.field == "position" && other.message.contains("belongs to `listPublicProducts`"))
        for pages in [0, -1, 1 << 32] {
            let error = try await failure { try agent.walkProducts(maxPages: pages) }
            #expect(error.kind == .invalid && error.field == "maxPages" && error.effect == .none)
        }
        let limit = try await failure { try await all(agent.walkProducts(limit: 0)) }
        #expect(limit.field == "limit" && wire.seen.isEmpty)
    }
}
