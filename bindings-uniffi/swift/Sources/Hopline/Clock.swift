import Foundation

/// Both clocks of the system, in milliseconds.
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

/// The time of a client, by which the core waits and requests are late: the system's, or that of a clock that a test moves. A wait for the
/// store or for the end of a client goes by the system's.
struct Time: Sendable {
    static let system = Time(unix: { Clock.unix }, monotonic: { Clock.monotonic }, sleep: { try await Clock.sleep(until: $0) })

    /// The time of day: milliseconds since 1970.
    let unix: @Sendable () -> Int64
    /// Milliseconds since any moment.
    let monotonic: @Sendable () -> Int64
    /// Waits until a monotonic time. Throws when its task is cancelled.
    let sleep: @Sendable (_ until: Int64) async throws -> Void

    private init(
        unix: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (_ until: Int64) async throws -> Void
    ) {
        (self.unix, self.monotonic, self.sleep) = (unix, monotonic, sleep)
    }

    /// The time of a clock, whose time of day begins with the system's.
    init<Given: _Concurrency.Clock>(_ clock: Given) where Given.Duration == Duration {
        if clock is ContinuousClock {
            self = .system
            return
        }
        let (begin, unix) = (clock.now, Clock.unix)
        let monotonic: @Sendable () -> Int64 = { begin.duration(to: clock.now).milliseconds }
        self.init(unix: { unix + monotonic() }, monotonic: monotonic) { until in
            try await clock.sleep(until: begin.advanced(by: .milliseconds(until)), tolerance: nil)
        }
    }
}

/// Returns sixteen bytes from the system's secure generator.
func entropy() -> Data {
    var system = SystemRandomNumberGenerator()
    return Data((0..<16).map { _ in UInt8.random(in: 0 ... .max, using: &system) })
}
