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
