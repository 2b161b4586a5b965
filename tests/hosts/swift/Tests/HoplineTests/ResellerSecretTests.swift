import Foundation
import Hopline
import Kit
import Testing

@Suite("secrets of the reseller API")
struct ResellerSecretTests {
    /// Every secret place of every answer at once.
    private static let order = #"""
        {"orderNo":"o-1","order_no":"o-1","status":"active","userId":7,"username":"sub","email":"canary@mail.example",
        "instances":[{"ip":"192.0.2.1","username":"canary-proxy-user","password":"canary-proxy-password"}]}
        """#
    private static let data = #"""
        {"token":"canary-token","id":7,"orderNo":"o-1","status":"active","email":"canary@mail.example","user":{"id":1},"items":[\#(order)],
        "projectList":[{"key":"canary-project"}],"password":"canary-echoed"}
        """#

    private typealias Calls = [@Sendable () async throws -> Any]

    private func calls(_ reseller: ResellerClient, _ headers: CallOptions) -> Calls {
        let free: JSON = ["note": "canary-body"]
        let people: Calls = [
            { try await reseller.login(username: "canary-reseller", password: "canary-password", options: headers) },
            { try await reseller.createUser(username: "sub-user", password: "canary-sub-password", email: "canary@mail.example", options: headers) },
            { try await reseller.getCurrentBalance() }, { try await reseller.listSubUsers() },
            { try await reseller.adjustSubUserBalance(userId: 7, amount: 1, remark: "why") },
            { try await reseller.editSubUserAccount(userId: 7, password: "canary-new-password") },
            { try await reseller.setSubUserStatus(userId: 7, status: .active) }, { try await reseller.deleteSubUser(userId: 7) },
            { try await reseller.queryProducts() }, { try await reseller.listIpRanges() },
        ]
        let orders: Calls = [
            { try await reseller.createDynamicOrder(poolId: "p", userId: 7) }, { try await reseller.listDynamicOrders() },
            { try await reseller.getDynamicOrder(orderId: "7") }, { try await reseller.findDynamicOrder(orderNo: "o-1") },
            { try await reseller.extractDynamicProxies(productNo: "p", proxyType: 104) }, { try await reseller.getProductsFlow(userId: 7) },
            { try await reseller.getRemainingFlow(userId: 7, productNo: "p") },
            {
                try await reseller.createStaticOrder(
                    poolId: "p", userId: 7, unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: .month)
            },
            { try await reseller.listStaticOrders() }, { try await reseller.getStaticOrderStatistics() },
            { try await reseller.renewStaticOrder(orderNo: "o-1", duration: 1, unit: .month, cycleTimes: 1) },
            { try await reseller.cancelStaticOrder(orderNo: "o-1") }, { try await reseller.place(7) },
            { try await reseller.waitOrder(orderNo: "o-1", deadline: .milliseconds(100)) },
        ]
        let money: Calls = [
            { try await reseller.getDashboard() }, { try await reseller.listConsumption() }, { try await reseller.listAgentTransactions() },
            { try await reseller.getUsdtWallet() }, { try await reseller.createUsdtOrder(parameters: free) },
            { try await reseller.checkUsdtOrder(parameters: ["order_no": "u-1"]) }, { try await reseller.listUsdtOrders() },
            { try await reseller.cancelUsdtOrder(parameters: ["order_no": "u-1"]) },
            { try await reseller.request(.post, "/x", body: free, options: headers) },
        ]
        return people + orders + money
    }

    @Test("no secret of the whole API is printed, dumped, told, kept, or said by an error")
    func everywhere() async throws {
        let failing = Counter()
        let wire = try Wire(asked: { connection, number in
            switch failing.total {
            case 0, 3: connection.answer("200 OK", ["content-type: application/json"], #"{"code":0,"message":"ok","data":\#(Self.data)}"#)
            case 1: connection.close()
            default: connection.answer("400 Bad Request", ["content-type: application/json"], #"{"code":400,"message":"canary-password is no","data":\#(Self.data)}"#)
            }
        })
        let folder = Folder()
        let reseller = try ResellerClient(
            username: "canary-reseller", password: "canary-password", baseURL: wire.url, store: folder.store, options: ClientOptions(attempts: 1))
        let events = reseller.events()
        let headers = CallOptions(headers: ["x-more": "canary-header"])
        let calls = calls(reseller, headers)
        #expect(calls.count == 33, "all thirty, those that wait, and one of its own")
        var told: [Any] = [reseller, headers]
        for call in calls { told.append(try await call()) }
        #expect(reseller.token?.reveal() == "canary-token")
        told.append(reseller.token as Any)
        let placed = try await reseller.waitOrder(orderNo: "o-1")
        #expect(try placed.instance(of: "canary-proxy-password"))
        let walks = (try reseller.walkSubUsers(), try reseller.walkStaticOrders())
        for try await user in walks.0 { told.append(user) }
        for try await page in walks.1.pages { told.append(page) }
        told += [walks.0, walks.1]
        var records = try folder.records
        for fails in 1...2 {
            failing.add(1)
            for call in calls {
                do { told.append(try await call()) } catch { told.append(error) }
            }
            if fails == 1 {
                records += try folder.records
                #expect(try await reseller.saved().contains { $0.holds == .inDoubtForGood })
            }
        }
        let doubts = try await reseller.saved().filter { $0.holds == .inDoubtForGood }
        failing.add(1)
        var candidates = 0
        for doubt in doubts {
            do {
                let found = try await reseller.reconcile(doubt.record)
                candidates += found.candidates.count
                told += [found, found.candidates]
            } catch { told.append(error) }
        }
        #expect(candidates > 0, "a candidate is shown, and does not print what it holds")
        told += [try await reseller.saved(), try await reseller.resumeAll()]
        records += try folder.records
        await reseller.close()
        for await event in events { told.append(event) }
        let sent = wire.seen.joined()
        for secret in ["reseller", "password", "sub-password", "new-password", "token", "header", "body"] {
            #expect(sent.contains("canary-\(secret)"), "\(secret) was never sent, so nothing is shown by its absence")
        }
        #expect(sent.contains("canary@mail.example") && !records.isEmpty && told.count > 100)
        for text in told.map(shown) + records { #expect(!text.contains("canary"), "\(text.prefix(600))") }
    }
}

extension OrderReply {
    fileprivate func instance(of password: String) throws -> Bool {
        try order.items.first?.decode(JSON.self)["instances"]?[0]?["password"]?.string == password
    }
}
