import Foundation
import Hopline
import Kit
import Testing

@Suite("the shared vectors")
struct VectorTests {
    static let folder = ProcessInfo.processInfo.environment["HOPLINE_VECTORS"].map { URL(fileURLWithPath: $0) }
        ?? URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../vectors").standardized

    @Test("every case goes as it is written")
    func cases() throws {
        let cases = try VectorFormat.cases(Self.folder)
        var failures: [String] = []
        for (name, each) in cases {
            do { try Vectors.run(each) } catch { failures.append("\(name): \(error)") }
        }
        print("vectors: \(cases.count) cases, \(failures.count) failed")
        #expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
        #expect(Set(cases.map(\.name)).count == cases.count, "two cases have one name")
        #expect(try cases.count == counted(), "a case was not run")
    }

    /// How many cases there are, found out in another way: each has one name at its own depth of its file.
    private func counted() throws -> Int {
        let files = FileManager.default.enumerator(at: Self.folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        return try files.filter { $0.pathExtension == "json" }.reduce(0) { sum, file in
            let read = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
            return sum + ((read?["cases"] as? [Any])?.count ?? 0)
        }
    }

    @Test("what the runner does not understand does not pass")
    func misunderstood() throws {
        let start: JSON = ["start": "a", "operation": "get_balance"]
        let send: JSON = ["send": "GET /billing/balance", "answer": ["ok": ["n": 1]]]
        func run(_ script: JSON...) throws { try Vectors.run(["name": "n", "script": .array(script)]) }
        try run(start, send, ["complete": "a", "ok": ["raw": ["n": 1]]])
        let product: JSON = [
            "product_no": "p", "name": "n", "type": "dynamic", "sharing": "shared", "available": true, "price": 1, "currency": "USD", "unit": "GB",
        ]
        let page: JSON = ["send": "GET /products", "answer": ["ok": ["items": [product], "next_cursor": nil]]]
        func walk(_ members: VectorFormat.Object) -> JSON { .object(["walk": "w", "operation": "list_products"].merging(members) { $1 }) }
        try run(walk(["pages": [page], "items": [product], "end": "last_page"]))
        func ask(_ members: VectorFormat.Object) -> JSON {
            .object(["ask": "session_event", "given": ["facts": ["status": 200]]].merging(members) { $1 })
        }
        try run(ask(["ok": ["status": 200]]))
        let bad: [[JSON]] = [
            [ask([:])], [ask(["ok": [:]])], [ask(["ok": ["status": 201]])], [ask(["error": [:]])], [ask(["given": [:], "ok": [:]])],
            [walk(["pages": [page]])], [walk(["pages": [page], "end": "page_cap"])], [walk(["pages": [page, page], "end": "last_page"])],
            [walk(["pages": [page], "items": [2], "end": "last_page"])], [walk(["from": "v"])], [walk(["error": [:]])],
            [walk(["pages": [["sned": 1]], "end": "last_page"])], [walk(["position_text": "x"])],
            [["observe": "s", "seen": "block", "verdict": "rotate", "reason": "block"]], [["observe": "s", "seen": "block", "as": "r"]],
            [["starts": "a"]], [["start": "a", "operation": "get_balance", "hurry": true]], [start], [start, send], [],
            [start, ["send": "GET /billing/balance", "answer": ["ok": 1, "colour": 1]], ["complete": "a"]],
            [start, send, ["complete": "a", "ok": ["raw": ["n": 2]]]], [start, send, ["complete": "a", "error": [:]]], [["wait": ["least": 1]]],
        ]
        for script in bad {
            #expect(throws: Unmet.self, "\(script)") { try Vectors.run(["name": "n", "script": .array(script)]) }
        }
    }
}
