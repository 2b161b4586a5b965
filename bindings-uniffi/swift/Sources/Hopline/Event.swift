/// An event of a command, for people and metrics. Nothing depends on it.
public struct Event: Sendable {
    /// The audience of an event.
    public enum Level: String, Sendable, Comparable {
        /// For finding a fault.
        case debug
        /// For following purchases and their obstacles.
        case info
        /// A person should look.
        case warning

        /// Orders levels by their importance.
        public static func < (one: Level, other: Level) -> Bool {
            (one == .debug && other != .debug) || (one == .info && other == .warning)
        }
    }

    /// The audience of the event: purchases and holds are `info`, doubts, leases that are not given back and failures of the store are
    /// `warning`, all others are `debug`.
    public let level: Level
    /// The operation.
    public let operation: String
    /// Your own name for the operation.
    public let intent: String?
    /// The kind of the event.
    public let what: What

    /// An event of this host.
    init(_ operation: String, _ intent: String?, _ what: What) {
        (level, self.operation, self.intent, self.what) = (.debug, operation, intent, what)
    }

    /// Nil if the event lacks a member that it should have.
    init?(_ told: EventFields) {
        guard let what = What(told) else { return nil }
        (level, operation, intent, self.what) = (told.event.level, told.operation, told.intent, what)
    }
}
