import Foundation
import Hopline
import Kit
import Testing

/// The programs of the README, and of the site's pages, are those of this package, and they run.
@Suite("the README")
struct ReadmeTests {
    static let sources = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../Sources").standardized

    @Test("its programs are those that are built here, word for word")
    func same() throws {
        let readme = try String(contentsOf: Self.sources.appendingPathComponent("../../../../bindings-uniffi/swift/README.md"), encoding: .utf8)
        let blocks = readme.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
        let programs = try ["first", "shortest"].map { try String(contentsOf: Self.sources.appendingPathComponent("\($0)/main.swift"), encoding: .utf8) }
        #expect(blocks.filter { $0.contains("import Hopline") } == programs)
        let phone = try String(contentsOf: Self.sources.appendingPathComponent("../Tests/HoplineTests/PhoneTests.swift"), encoding: .utf8)
        #expect(blocks.count == programs.count + 1 && blocks.filter { phone.contains($0) }.count == 1)
    }

    @Test("the first lists what is offered")
    func first() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let first = try Child(program("first"), [], environment: sandbox.environment)
        let listed = await first.text()
        #expect(await first.wait() == 0 && listed.contains("dynamic-world"))
    }

    private func start(_ name: String, _ sandbox: Sandbox, _ folder: Folder, _ arguments: [String] = []) throws -> Child {
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let environment = sandbox.environment.merging(["SUB_USER_PASSWORD": "a long password"]) { $1 }
        // No more descriptors than most systems give.
        let limited = ["-c", "ulimit -n 1024 && exec \"$0\" \"$@\"", program(name)] + arguments
        return try Child("/bin/sh", limited, environment: environment, folder: folder.path)
    }

    @Test("the shortest fetches a page, goes on with its purchase wherever it was killed, and buys anew once that is over")
    func shortest() async throws {
        let lines = try String(contentsOf: Self.sources.appendingPathComponent("shortest/main.swift"), encoding: .utf8).split(separator: "\n")
        #expect(lines.count <= 12)
        // Each is held at the next step, so that it is killed before that: a request to end its session does not end it for an hour.
        let places = [("list_products", "create_session", "delay"), ("create_session", "get_session", "delay"), ("get_session", "terminate_session", "in_progress")]
        for (operation, then, kind) in places {
            let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
            try await sandbox.fault(then, ["kind": .string(kind), "ms": 3_600_000])
            let killed = try start("shortest", sandbox, folder, [sandbox.ready.target_url])
            try await until("\(operation) is done") { try await sandbox.times(operation) > 0 }
            killed.kill()
            _ = await killed.text()
            #expect(await killed.wait() == -9, "\(operation)")
            try await sandbox.clearFaults()
            for charges in 1...3 {
                let again = try start("shortest", sandbox, folder, [sandbox.ready.target_url])
                let said = await again.text()
                #expect(await again.wait() == 0 && said == "200 for 2 USD\n", "\(operation): \(said)")
                #expect(try await sandbox.charges() == charges, "\(operation)")
                if charges == 2 { try await sandbox.control("clock", ["advance_ms": 86_400_000]) }
            }
            #expect(try await sandbox.state().sessions.allSatisfy { $0.status == "terminated" }, "\(operation)")
        }
    }

    @Test("the second goes on with one session, wherever it was killed, also when prices have changed, and then says that it is over")
    func killed() async throws {
        for operation in ["get_account", "list_products", "create_session", "get_session", "rotate_session", "get_session_health", "terminate_session"] {
            let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
            try await sandbox.fault(operation, ["kind": "delay", "ms": 600_000])
            let killed = try start("program", sandbox, folder)
            try await until("\(operation) is done") { try await sandbox.times(operation) > 0 }
            killed.kill()
            _ = await killed.text()
            #expect(await killed.wait() == -9, "\(operation)")
            try await sandbox.control("clock", ["advance_ms": 600_000])
            if operation != "list_products" { try await sandbox.control("price", ["product_no": "dynamic-de", "price": "0.01"]) }
            let again = try start("program", sandbox, folder)
            let said = await again.text()
            #expect(await again.wait() == 0, "\(operation)")
            // Killed after the end it finds the session over.
            #expect(said.contains("[redacted]") && said.contains("the session is over") || operation == "terminate_session", "\(operation): \(said)")
            let last = try start("program", sandbox, folder)
            let end = await last.text()
            #expect(await last.wait() == 0 && end.contains("job-17 was done before"), "\(operation)")
            let state = try await sandbox.state()
            #expect(state.charges.count == 1 && state.sessions.map { "\($0.status) \($0.rotations)" } == ["terminated 1"], "\(operation): \(state.sessions)")
            #expect(state.orders.isEmpty, "it tops up nothing")
        }
    }

    @Test("that of a pool buys at most three sessions for 1500 pages, and none when it is started again for one")
    func pool() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        var bought: [Int] = []
        for count in [1500, 1, 1500] {
            let pages = (0..<count).map { "https://shop.example/\($0)" }
            let child = try start("pool", sandbox, folder, pages)
            let said = await child.text()
            let read = said.split(separator: "\n").filter { $0.hasSuffix(" met 200 advice keep") }.compactMap { $0.split(separator: " ").first }
            #expect(await child.wait() == 0 && read.map(String.init).sorted() == pages.sorted(), "\(said.prefix(3000))")
            bought.append(try await sandbox.charges())
        }
        // How many are needed for many pages depends on how quickly they are read.
        #expect(1...3 ~= bought[0] && bought[1] == bought[0] && bought[0]...3 ~= bought[2])
        #expect(try await sandbox.state().sessions.map(\.status) == Array(repeating: "active", count: bought[2]))
    }

    /// The output of the program of the reseller API.
    func sell(_ sandbox: Sandbox, _ folder: Folder) async throws -> String {
        let child = try start("reseller", sandbox, folder)
        let text = await child.text()
        guard await child.wait() == 0 else { throw Unmet("it ends well: \(text)") }
        return text
    }

    @Test("that of the reseller API orders, renews and cancels once, however often it is started")
    func reseller() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let sold = try await sell(sandbox, folder)
        #expect(sold.contains("is ready\na proxy at 127.") && sold.contains("purchase") && sold.contains("renewal"), "\(sold)")
        // Started again it finds the order that it has cancelled.
        #expect(try await sell(sandbox, folder).contains("is ended"))
        for operation in ["create_static_order", "renew_static_order", "cancel_static_order"] {
            #expect(try await sandbox.times(operation) == 1)
        }
    }

    /// How many records hold a write that nobody knows the end of.
    private func underWay(_ folder: Folder) throws -> Int {
        let names = "\(folder.path)/hopline-records/names"
        let paths = try FileManager.default.subpathsOfDirectory(atPath: names).filter { $0.split(separator: "/").count == 3 }
        #expect(!paths.isEmpty, "the program has kept nothing")
        // One that is replaced just now is none at the moment.
        let records = paths.map { (try? String(contentsOfFile: "\(names)/\($0)", encoding: .utf8)) ?? "\"call\":{" }
        return records.filter { $0.contains("\"call\":{") && !$0.contains("\"order_no\":") }.count
    }

    @Test("that of the reseller API does nothing twice, wherever it was killed, and shows what a write in doubt may have become")
    func killedReseller() async throws {
        let writes = ["create_user", "adjust_sub_user_balance", "create_static_order", "renew_static_order", "cancel_static_order"]
        for operation in writes + ["query_products", "list_static_orders", "list_consumption"] {
            let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
            try await sandbox.fault(operation, ["kind": "delay", "ms": 600_000])
            let killed = try start("reseller", sandbox, folder)
            try await until("\(operation) is done") { try await sandbox.times(operation) > 0 }
            // The answers before it may not be kept yet.
            let own = writes.contains(operation) ? 1 : 0
            try await until("the writes before \(operation) are kept") { try underWay(folder) <= own }
            killed.kill()
            _ = await killed.text()
            #expect(await killed.wait() == -9, "\(operation)")
            try await sandbox.control("clock", ["advance_ms": 600_000])
            for start in 1...2 {
                let again = try self.start("reseller", sandbox, folder)
                let said = await again.text()
                #expect(await again.wait() == 0, "\(operation)")
                // A write may have been done, and can't be asked about; but the order shows whether it was cancelled.
                let isCancelled = operation == "cancel_static_order" || start == 2
                let expected =
                    writes.dropLast().contains(operation)
                    ? "do not start another one\nlist_" : isCancelled ? "is ended" : "is ready\na proxy at 127."
                #expect(said.contains(expected), "\(operation): \(said)")
            }
            for write in writes { #expect(try await sandbox.times(write) <= 1, "\(operation): \(write)") }
        }
    }

    @Test("that of the reseller API looks for an order in doubt")
    func doubt() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        try await sandbox.fault("create_static_order", ["kind": "drop_after"])
        let doubt = try await sell(sandbox, Folder())
        let placed = try await sandbox.purchases()
        #expect(placed.count == 1 && doubt.contains("agrees in") && doubt.contains(placed[0]), "\(doubt)")
    }
}
