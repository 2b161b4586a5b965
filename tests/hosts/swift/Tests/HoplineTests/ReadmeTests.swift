import Foundation
import Hopline
import Kit
import Testing

/// The programs of the README are those of this package, and they run.
@Suite("the README")
struct ReadmeTests {
    static let sources = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../Sources").standardized

    @Test("its programs are those that are built here, word for word")
    func same() throws {
        let readme = try String(contentsOf: Self.sources.appendingPathComponent("../../../../bindings-uniffi/swift/README.md"), encoding: .utf8)
        let blocks = readme.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
        let programs = try ["first", "program", "reseller"].map { try String(contentsOf: Self.sources.appendingPathComponent("\($0)/main.swift"), encoding: .utf8) }
        #expect(blocks.filter { $0.contains("import Hopline") } == programs)
    }

    @Test("they do what they say")
    func run() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let first = try Child(program("first"), [], environment: sandbox.environment)
        let listed = first.text()
        #expect(first.wait() == 0 && listed.contains("dynamic-world"))
        let folder = Folder()
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let whole = try Child(program("program"), [], environment: sandbox.environment, folder: folder.path)
        // Somebody who pays the order, once it is there.
        let payer = Task {
            while !Task.isCancelled {
                for order in try await sandbox.state().orders where order.status == "pending" {
                    try await sandbox.control("pay", ["order_id": .string(order.order_id)])
                }
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        let said = await withCheckedContinuation { continuation in
            // A thread of its own, since it waits for the program.
            Thread.detachNewThread { continuation.resume(returning: whole.text()) }
        }
        payer.cancel()
        #expect(whole.wait() == 0 && said.contains("is ready at") && said.contains("[redacted]") && said.contains("the top-up is ready"), "\(said)")
        let state = try await sandbox.state()
        #expect(state.charges.count == 1 && state.sessions.map(\.status) == ["terminated"])
    }

    /// What the program of the reseller API says.
    func sell(_ sandbox: Sandbox, _ folder: Folder) throws -> String {
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let child = try Child(program("reseller"), [], environment: sandbox.environment, folder: folder.path)
        let text = child.text()
        guard child.wait() == 0 else { throw Unmet("it ends well: \(text)") }
        return text
    }

    @Test("that of the reseller API orders, renews and cancels once, however often it is started")
    func reseller() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let sold = try sell(sandbox, folder)
        #expect(sold.contains("is ready\na proxy at 127.") && sold.contains("purchase") && sold.contains("renewal"), "\(sold)")
        // Started again it finds the order that it has cancelled.
        #expect(try sell(sandbox, folder).contains("is ended"))
        for operation in ["create_static_order", "renew_static_order", "cancel_static_order"] {
            #expect(try await sandbox.times(operation) == 1)
        }
    }

    @Test("that of the reseller API looks for an order in doubt")
    func doubt() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        try await sandbox.fault("create_static_order", ["kind": "drop_after"])
        let doubt = try sell(sandbox, Folder())
        let placed = try await sandbox.purchases()
        #expect(placed.count == 1 && doubt.contains("agrees in") && doubt.contains(placed[0]), "\(doubt)")
    }
}
