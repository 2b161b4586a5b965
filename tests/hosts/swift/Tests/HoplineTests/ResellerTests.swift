import Foundation
import Hopline
import Kit
import Testing

@Suite("the rest of the reseller API")
struct ResellerTests {
    @Test(
        "an answer is read alike in any spelling",
        arguments: [[:], ["list": "items", "code": "text", "message": "msg", "product_type": "word", "refusal_status": "ok"], ["list": "list"]] as [JSON])
    func spellings(_ spelling: JSON) async throws {
        let sandbox = try await Sandbox()
        try await sandbox.control("spelling", spelling)
        let reseller = try sandbox.reseller()
        let products = try await reseller.queryProducts(language: .en).items
        let shared = try #require(products.first { $0.productId == "static-shared-us" })
        let exclusive = try #require(products.first { $0.productId == "static-us" })
        #expect(isShared(shared) && needsProjectId(shared) && shared.projectList?.isEmpty == false && !isShared(exclusive))
        #expect(exclusive.unit == .month && exclusive.price != nil && exclusive.proxyType == "103")
        let ranges = try #require(try await reseller.listIpRanges(productNo: "static-us").items.first)
        #expect(!isShared(ranges))
        let read = parseIpRange(try #require(ranges.ipRanges?.first?.ipRange))
        #expect(read.first != nil && read.last != nil)
        let error = try await failure { try await reseller.findDynamicOrder(orderNo: "none") }
        #expect(error.kind == .refused && error.code == "404" && error.effect == .none && error.text != nil, "\(error.debugDescription)")
    }

    @Test("a place that a product is not sold in is refused with those that it is")
    func places() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        let user = try await reseller.createUser(username: "sub-user", password: "a-password", email: "a@mail.example", phone: "13800000000")
        #expect(user.email?.reveal() == "a@mail.example")
        let error = try await failure {
            try await reseller.createStaticOrder(
                poolId: "static-us", userId: try #require(user.id), unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1,
                unit: .month, countryCode: "DE")
        }
        let details: JSON? = try error.details?.decode()
        #expect(error.code == "location_not_supported_for_product" && details?["supportedRegions"] != nil, "\(error.debugDescription)")
    }

    @Test("lists in numbered pages are walked from any position")
    func walks() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        let names = (10..<33).map { "sub-user-\($0)" }
        for name in names { try await reseller.createUser(username: name, password: "a-password") }
        let walk = try reseller.walkSubUsers(pageSize: 10)
        var pages = walk.pages.makeAsyncIterator()
        var found = try await pages.next()?.items.compactMap(\.username) ?? []
        #expect(found.count == 10)
        for try await user in try reseller.walkSubUsers(pageSize: 10, position: walk.position) { found.append(user.username ?? "") }
        #expect(found.sorted() == names)
        let capped = try reseller.walkSubUsers(pageSize: 5, maxPages: 2)
        var count = 0
        for try await _ in capped { count += 1 }
        #expect(count == 10 && capped.end == .pageCap)
        let others = (try reseller.walkStaticOrders(), try reseller.walkDynamicOrders(), try reseller.walkConsumption(pageSize: 1))
        for try await _ in others.0 {}
        for try await _ in others.1 {}
        for try await _ in others.2 {}
        #expect([others.0.end, others.1.end, others.2.end] == [.shortPage, .shortPage, .shortPage])
        let refused = try await failure { try reseller.walkStaticOrders(position: walk.position) }
        #expect(refused.field == "position" && refused.message.contains("walk of that list"))
    }

    @Test("traffic is bought, users are changed, and a transfer is watched until it is there")
    func money() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        let start = try #require(Decimal(string: "40.50"))
        let user = try await reseller.createUser(username: "sub-user", password: "a-password", balance: start)
        #expect(user.balance == start && user.status == .active)
        let id = try #require(user.id)
        let half = try #require(Decimal(string: "0.5"))
        let order = try await reseller.createDynamicOrder(
            poolId: "dynamic-world", trafficAmount: half, unitPrice: 0, totalAmount: 0, remark: "job-17", userId: id)
        let number = try #require(try order.raw.decode(JSON.self)["order_no"]?.string)
        #expect(try await reseller.findDynamicOrder(orderNo: number).raw.text.contains(number))
        #expect(try await !reseller.getRemainingFlow(userId: id, productNo: "dynamic-world").raw.text.isEmpty)
        #expect(try await !reseller.extractDynamicProxies(productNo: "dynamic-world", proxyType: 104).raw.text.isEmpty)
        #expect(try await reseller.setSubUserStatus(userId: id, status: .disabled).raw.decode(JSON.self)["status"] == "disabled")
        try await reseller.editSubUserAccount(userId: id, username: "another-name")
        try await reseller.deleteSubUser(userId: id)
        let deleted = try await reseller.listSubUsers(includeDeleted: true).items
        #expect(deleted.map(\.username) == ["another-name"] && deleted.map(\.status) == [.deleted])

        let transfer = try await reseller.createUsdtOrder(parameters: ["amount": 25]).raw.decode(JSON.self)
        let asked: JSON = ["order_no": try #require(transfer["order_no"])]
        let paid = Until(at: "/status", is: ["paid"])
        #expect(try await reseller.checkUsdtOrder(parameters: asked, until: paid, deadline: .zero).phase == .pending)
        try await sandbox.control("pay", ["order_id": try #require(transfer["order_no"])])
        #expect(try await reseller.checkUsdtOrder(parameters: asked, until: paid, deadline: .seconds(10)).phase == .ready)
        #expect(try await reseller.request(.get, "/usdt/orders").raw.text.contains("paid"))
    }

    @Test("parameters that break a rule are refused by their names before anything is sent")
    func rules() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        let bad: [(String, HoplineError)] = [
            ("password", try await failure { try await reseller.createUser(username: "sub-user", password: "short") }),
            ("phone", try await failure { try await reseller.createUser(username: "sub-user", password: "a-password", phone: "123") }),
            ("startDate", try await failure { try await reseller.listConsumption(startDate: "1.5.2025") }),
            ("orderNo", try await failure { try await reseller.renewStaticOrder(duration: 1, unit: .month, cycleTimes: 1) }),
            ("unit", try await failure { try await reseller.renewStaticOrder(orderNo: "o", duration: 1, unit: OrderUnit(rawValue: "week"), cycleTimes: 1) }),
        ]
        for (field, error) in bad { #expect(error.kind == .invalid && error.effect == .none && error.field == field, "\(error.debugDescription)") }
        #expect(try await sandbox.times("login") == 0)
    }

    @Test("a range is read where it can be, and kept as text where not")
    func ranges() {
        for (text, first, last) in [
            ("192.0.2.0/30", "192.0.2.0", "192.0.2.3"), ("192.0.2.1 - 192.0.2.9", "192.0.2.1", "192.0.2.9"),
            ("2001:db8::/127", "2001:db8::", "2001:db8::1"), ("any", nil, nil), ("\"", nil, nil),
        ] as [(String, String?, String?)] {
            let read = parseIpRange(text)
            #expect(read.text == text && read.first == first && read.last == last)
        }
    }
}
