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

/// A point before and after each send.
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
