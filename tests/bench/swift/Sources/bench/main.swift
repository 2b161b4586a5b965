import Foundation
import Hopline

// The costs of Hopline in Swift, beside others: `cargo xtask bench swift` runs it and writes its lines into a table.
//
// bench BODY VERSION [--once]

struct Item: Decodable {
    let product_no: String
    let name: String
    let type: String
    let sharing: String
    let available: Bool
    let price: Decimal
    let currency: String
    let unit: String
    let stock: Int?
    let country: String?
    let city: String?
}

struct Items: Decodable {
    let items: [Item]
    let next_cursor: String?
    let total: Int?
    let cache_ttl_seconds: Int?
}

struct Answer: Decodable {
    let success: Bool
    let data: Items
}

struct Canned: Transport {
    let body: Data

    func send(_ request: Hopline.Request) async throws -> Response {
        Response(status: 200, headers: [("content-type", "application/json")], body: body)
    }
}

/// Microseconds that the work took, once: for each contender those of each round. Contenders take turns; the first round warms up.
func rounds(_ once: Bool, _ contenders: [() async throws -> Bool]) async throws -> [[Double]] {
    var times: [[Double]] = contenders.map { _ in [] }
    for round in 0..<(once ? 2 : 26) {
        for (index, work) in contenders.enumerated() {
            let begun = ContinuousClock.now
            var done = 0
            repeat {
                guard try await work() else { fatalError("it does not come to its result") }
                done += 1
            } while !once && ContinuousClock.now - begun < .milliseconds(5)
            let took = (ContinuousClock.now - begun).components
            if round > 0 { times[index].append((Double(took.seconds) * 1e6 + Double(took.attoseconds) / 1e12) / Double(done)) }
        }
    }
    return times
}

let arguments = CommandLine.arguments
let list = try Data(contentsOf: URL(fileURLWithPath: arguments[1]))
func agent(_ body: Data) throws -> AgentClient {
    try AgentClient(apiKey: Secret("key"), baseURL: "https://api.example/v1", transport: Canned(body: body))
}
let (products, balance) = (try agent(list), try agent(Data(#"{"success":true,"data":{"balance":12.50}}"#.utf8)))
let same = try await products.listProducts().items.map(\.price) == JSONDecoder().decode(Answer.self, from: list).data.items.map(\.price)
guard same else { fatalError("the prices differ") }

let times = try await rounds(
    arguments.contains("--once"),
    [
        { try await products.listProducts().items.count == 100 },
        { try JSONDecoder().decode(Answer.self, from: list).data.items.count == 100 },
        { try await !balance.getBalance().raw.text.isEmpty },
    ])
func row(_ work: String, _ own: [Double], _ more: [String: Any] = [:]) -> [String: Any] {
    more.merging(["work": work, "unit": "µs", "figures": own]) { $1 }
}
let told: [String: Any] = [
    "versions": ["hopline": arguments[2], "Swift": swift],
    "rows": [
        row("a list of 100, the whole call", times[0], ["goal": 0.3, "beside": ["what": "`JSONDecoder`, typed, with `Decimal`", "figures": times[1]]]),
        row("a small call", times[2]),
    ],
]
print(String(decoding: try JSONSerialization.data(withJSONObject: told), as: UTF8.self))
await products.close()
await balance.close()

/// The compiler, as far as a program knows it.
var swift: String {
    #if compiler(>=6.2)
        "6.2 or later"
    #elseif compiler(>=6.1)
        "6.1"
    #else
        "6.0"
    #endif
}
