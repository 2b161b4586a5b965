/// Progress of a command, for people and metrics. Nothing depends on it.
public struct Event: Sendable {
    /// For whom it is.
    public enum Level: String, Sendable, Comparable {
        /// For who looks for a fault.
        case debug
        /// For who watches what is bought, and why nothing is.
        case info
        /// Somebody should look.
        case warning

        /// By how much it matters.
        public static func < (one: Level, other: Level) -> Bool {
            (one == .debug && other != .debug) || (one == .info && other == .warning)
        }
    }

    /// For whom it is: purchases and holds are `info`, doubts, leases that are not given back and failures of the store are `warning`, all else is
    /// `debug`.
    public let level: Level
    /// Which operation.
    public let operation: String
    /// Your own name for it.
    public let intent: String?
    /// What happened.
    public let what: What

    /// What this host did.
    init(_ operation: String, _ intent: String?, _ what: What) {
        (level, self.operation, self.intent, self.what) = (.debug, operation, intent, what)
    }

    /// Nil if the event lacks a member that it should have.
    init?(_ told: EventFields) {
        guard let what = What(told) else { return nil }
        (level, operation, intent, self.what) = (told.event.level, told.operation, told.intent, what)
    }
}
