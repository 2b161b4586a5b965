import Foundation

/// Progress of a command, for people and metrics. Nothing depends on it.
public struct Event: Sendable {
    /// What happened.
    public enum What: Sendable {
        /// It will be sent again.
        case repeating(attempts: Int, delay: Duration, because: HoplineError)
        /// The service is asked for its time, to know how old a restored key is.
        case askingTime
        /// The purchase was accepted.
        case accepted(sessionId: String, estimatedChargeUsd: Decimal?)
        /// A write that spends money was accepted: once for each key. With what it cost, where the answer says so.
        case charged(idempotencyKey: String?, sessionId: String?, orderNo: String?, chargedUsd: Decimal?)
        /// The session's status was read.
        case status(sessionId: String, status: SessionStatus, phase: Phase)
        /// The order was accepted.
        case ordered(orderNo: String)
        /// The order's status was read.
        case orderStatus(orderNo: String, status: StaticOrderStatus, phase: Phase)
        /// Members of an answer came in two spellings with two values. The table's first spelling counts; `raw` has both.
        case differing(members: [String])
        /// An answer has numbers of more than 28 digits, which were rounded up.
        case rounded(members: [String])
        /// The price of what is to be bought was read, in USD for one unit.
        case priced(unitPrice: Decimal)
        /// What a read is repeated for is not as it was; what it is now, where that is a word or a number.
        case watched(value: String?)
        /// It ended in doubt; its record is kept.
        case inDoubt(record: String?)
        /// A session was ended, and a renewal of it is in doubt, which may still arrive.
        case renewalInDoubt(record: String, sessionId: String)
        /// A record that nothing waits for could not be saved or deleted.
        case storeFailed(record: String)
        /// A pool buys nothing, for this reason, until one purchase is tried; nil if somebody has to act first.
        case poolHeld(reason: PoolHoldReason, retryAt: Date?)
        /// A pool buys again.
        case poolFreed
        /// A pool has given a session another exit, for this reason.
        case poolRotated(sessionId: String, cause: RotateReason)
        /// A lease is not back after the time that its pool says.
        case leaseLeaked(lease: Int, sessionId: String)
        /// A request was handed to the transport: its method and its URL without the query.
        case sent(request: String)
        /// What was sent was answered, with this HTTP status; nil where there was no response. With the time since it was sent.
        case answered(status: Int?, duration: Duration)
    }

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

    /// Each event has the members that belong to it.
    init?(_ told: EventFields) {
        let (phase, status) = (told.phase ?? .unknown, told.status ?? "")
        let what: What? =
            switch told.event {
            case .repeating: told.because.map { .repeating(attempts: told.attempts ?? 0, delay: told.delay ?? .zero, because: $0) }
            case .askingTime: .askingTime
            case .accepted: told.sessionId.map { .accepted(sessionId: $0, estimatedChargeUsd: told.estimatedChargeUsd) }
            case .charged:
                .charged(idempotencyKey: told.idempotencyKey, sessionId: told.sessionId, orderNo: told.orderNo, chargedUsd: told.chargedUsd)
            case .status: told.sessionId.map { .status(sessionId: $0, status: SessionStatus(rawValue: status), phase: phase) }
            case .ordered: told.orderNo.map { .ordered(orderNo: $0) }
            case .orderStatus: told.orderNo.map { .orderStatus(orderNo: $0, status: StaticOrderStatus(rawValue: status), phase: phase) }
            case .differing: .differing(members: told.members ?? [])
            case .rounded: .rounded(members: told.members ?? [])
            case .priced: told.unitPrice.map { .priced(unitPrice: $0) }
            case .watched: .watched(value: told.value)
            case .inDoubt: .inDoubt(record: told.record)
            case .renewalInDoubt: told.record.map { .renewalInDoubt(record: $0, sessionId: told.sessionId ?? "") }
            case .storeFailed: told.record.map { .storeFailed(record: $0) }
            case .poolHeld: told.reason.map { .poolHeld(reason: $0, retryAt: told.retryAt) }
            case .poolFreed: .poolFreed
            case .poolRotated: told.sessionId.map { .poolRotated(sessionId: $0, cause: RotateReason(rawValue: told.cause ?? "")) }
            case .leaseLeaked: told.lease.map { .leaseLeaked(lease: $0, sessionId: told.sessionId ?? "") }
            }
        guard let what else { return nil }
        (level, operation, intent, self.what) = (told.event.level, told.operation, told.intent, what)
    }
}
