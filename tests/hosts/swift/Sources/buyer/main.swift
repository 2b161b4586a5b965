// A program that buys under intents, with its records in a folder: to be killed and started again.
//
//     buyer FOLDER FIRST COUNT [POINT]
//
// It kills itself, with no chance to do anything about it, when it comes to that point: every save and every send is two.

import Foundation
import Hopline

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Counts the points of a purchase at which a process can die.
final class Points: @unchecked Sendable {
    private let lock = NSLock()
    private var left: Int?

    init(_ fatal: Int?) {
        left = fatal
    }

    func passed() {
        lock.withLock {
            guard let now = left else { return }
            if now == 0 { kill(getpid(), SIGKILL) }
            left = now - 1
        }
    }
}

/// A folder, with a point before and after each save.
struct PointedStore: Store {
    let folder: FolderStore
    let points: Points

    func open() throws -> any Shelf {
        PointedShelf(shelf: try folder.open(), points: points)
    }
}

struct PointedShelf: Shelf {
    let shelf: any Shelf
    let points: Points

    func keep(_ record: String, _ data: Data?) throws {
        points.passed()
        try shelf.keep(record, data)
        points.passed()
    }

    func scanning<Found>(_ body: () throws -> Found) throws -> Found { try shelf.scanning(body) }
    func free() throws -> [(record: String, data: Data)] { try shelf.free() }
    func claim(_ record: String) throws -> Data? { try shelf.claim(record) }
    func release(_ record: String) { shelf.release(record) }
    func claimIntent(_ intent: String) throws -> Bool { try shelf.claimIntent(intent) }
    func releaseIntent(_ intent: String) { shelf.releaseIntent(intent) }
    func close() { shelf.close() }
}

/// The same for each send.
struct PointedTransport: Transport {
    let transport = URLSessionTransport()
    let points: Points

    func send(_ request: Request) async throws -> Response {
        points.passed()
        let response = try await transport.send(request)
        points.passed()
        return response
    }
}

func say(_ text: String) {
    print(text)
    fflush(nil)
}

let arguments = CommandLine.arguments
guard arguments.count >= 4, let first = Int(arguments[2]), let count = Int(arguments[3]) else { fatalError("buyer FOLDER FIRST COUNT [POINT]") }
let points = Points(arguments.count > 4 ? Int(arguments[4]) : nil)
let store = PointedStore(folder: FolderStore(arguments[1]), points: points)
let agent = try AgentClient(store: store, transport: PointedTransport(points: points), options: ClientOptions(attempts: 8))
// Another process may have taken up what this one left, and then goes on with it.
_ = try await agent.resumeAll()
if count > 1 { say("begun") }
try await withThrowingTaskGroup(of: String.self) { group in
    for job in first..<first + count {
        group.addTask {
            do {
                return try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-\(job)", credentials: count == 1).sessionId
            } catch let error as HoplineError where error.kind == .busy {
                return "busy"
            }
        }
    }
    for try await came in group { say(came) }
}
// What others left is theirs to resume as long as they live, and anybody's after that.
if count > 1 { while readLine() != nil {} }
await agent.close()
