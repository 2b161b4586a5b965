import Foundation
import Hopline
import Kit
import Testing

@Suite("values")
struct ValueTests {
    @Test(
        "a number is exact, digit for digit",
        arguments: ["0.1", "0.3", "1e-7", "4.10", "1234567890.123456789", "1234567890123456789012345678", "-0.000000000000000001", "3.133"])
    func decimals(_ text: String) async throws {
        let expected = try #require(Decimal(string: text))
        #expect(try JSONDecoder().decode([Decimal].self, from: Data("[\(text)]".utf8)) == [expected])
        #expect(try JSONDecoder().decode(JSON.self, from: Data("{\"n\":\(text)}".utf8))["n"]?.decimal == expected)
        let list = #"{"success":true,"data":{"items":[{"product_no":"p","name":"p","sharing":"dedicated","type":"dynamic","price":\#(text),"currency":"USD","unit":"GB","available":true}]}}"#
        let wire = try Wire(asked: { connection, _ in connection.answer("200 OK", ["content-type: application/json"], list) })
        let read = try await client(wire.url).listProducts()
        #expect(read.items.first?.price == expected)
        #expect(read.raw.text.contains(text))
    }

    @Test("an amount is sent digit for digit, and what is left out is not sent")
    func parameters() async throws {
        let wire = try Wire(asked: { connection, _ in connection.close() })
        let quantity = try #require(Decimal(string: "0.1000000000000000000000000001"))
        _ = try await failure { try await client(wire.url).createSession(sessionType: .dynamic, productNo: "p/ü\"", quantity: quantity) }
        let body = wire.seen.first?.components(separatedBy: "\r\n\r\n").last ?? ""
        #expect(body.contains("0.1000000000000000000000000001"))
        #expect(try JSONDecoder().decode([String: JSON].self, from: Data(body.utf8)).keys.sorted() == ["product_no", "quantity", "session_type"])
        #expect(body.contains("ü"))
    }

    @Test("words that the contract does not name are read as they came, and refused before they are sent")
    func words() async throws {
        let answer = #"{"success":true,"data":{"session_id":"s-1","status":"paused","session_type":"hybrid"}}"#
        let wire = try Wire(asked: { connection, _ in connection.answer("200 OK", ["content-type: application/json"], answer) })
        let session = try await client(wire.url).getSession(sessionId: "s-1")
        #expect(session.status == SessionStatus(rawValue: "paused") && session.sessionType?.rawValue == "hybrid")
        let error = try await failure { try await client(wire.url).createSession(sessionType: SessionType(rawValue: "hybrid"), productNo: "p") }
        #expect(error.kind == .invalid && error.field == "sessionType" && wire.seen.count == 1)
    }

    @Test("an answer that is nested too deep is an error, and nobody falls")
    func deep() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        try await sandbox.fault("get_balance", ["kind": "deep"])
        let deep = try await failure { try await sandbox.client().getBalance() }
        #expect(deep.kind == .protocol)
        for depth in [90, 99, 120] {
            let nest = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let answer = #"{"success":true,"data":{"session_id":"s-1","status":"active","more":\#(nest)}}"#
            let wire = try Wire(asked: { connection, _ in connection.answer("200 OK", ["content-type: application/json"], answer) })
            do {
                let session = try await client(wire.url).getSession(sessionId: "s-1")
                #expect(try session.raw.decode(JSON.self)["more"] != nil)
            } catch let error as HoplineError {
                #expect(error.kind == .protocol && depth > 90)
            }
        }
    }
}
