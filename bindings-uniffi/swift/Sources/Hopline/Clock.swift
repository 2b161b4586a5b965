import Foundation

/// Both clocks of the core, in milliseconds.
enum Clock {
    /// This clock continues while the machine sleeps.
    private static let begin = ContinuousClock.now

    static var unix: Int64 {
        Int64(Date().timeIntervalSince1970 * 1000)
    }

    static var monotonic: Int64 {
        let (seconds, attoseconds) = (ContinuousClock.now - begin).components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }

    /// Waits until a monotonic time. Throws when its task is cancelled.
    static func sleep(until monotonic: Int64) async throws {
        try await Task.sleep(until: begin + .milliseconds(monotonic), clock: .continuous)
    }

    /// Waits. Longer than 24 days counts as 24 days, since the system can't add the longest durations to a time.
    static func sleep(for duration: Duration) async throws {
        try await Task.sleep(for: min(duration, Duration.longest), clock: .continuous)
    }
}

/// Returns sixteen bytes from the system's secure generator.
func entropy() -> Data {
    var system = SystemRandomNumberGenerator()
    return Data((0..<16).map { _ in UInt8.random(in: 0 ... .max, using: &system) })
}
