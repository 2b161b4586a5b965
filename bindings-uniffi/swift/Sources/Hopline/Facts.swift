import Foundation

/// Where a session or an order is, as far as waiting for it goes.
public enum Phase: String, Sendable, Decodable {
    /// Not usable yet.
    case pending
    /// Usable.
    case ready
    /// Over.
    case ended
    /// The contract does not say what its status means.
    case unknown
}

/// What an answer holds that the contract does not document: read it from `raw`.
public struct Unshown: Sendable {}

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
        /// The session's status was read.
        case status(sessionId: String, status: SessionStatus, phase: Phase)
        /// The order was accepted.
        case ordered(orderNo: String)
        /// The order's status was read.
        case orderStatus(orderNo: String, status: StaticOrderStatus, phase: Phase)
        /// Members of an answer came in two spellings with two values. The table's first spelling counts; `raw` has both.
        case differing(members: [String])
        /// The price of what is to be bought was read, in USD for one unit.
        case priced(unitPrice: Decimal)
        /// What a read is repeated for is not as it was; what it is now, where that is a word or a number.
        case watched(value: String?)
        /// It ended in doubt; its record is kept.
        case inDoubt(record: String?)
        /// A record that nothing waits for could not be saved or deleted.
        case storeFailed(record: String)
        /// Something that this version does not know.
        case other(String)
    }

    /// Which operation.
    public let operation: String
    /// Your own name for it.
    public let intent: String?
    /// What happened.
    public let what: What
}

extension Event: Decodable {
    private enum Keys: String, CodingKey {
        case operation, intent, event, attempts, because, status, phase, record, value, members
        case delay = "delay_ms"
        case sessionId = "session_id"
        case orderNo = "order_no"
        case charge = "estimated_charge_usd"
        case unitPrice = "unit_price"
    }

    /// Reads what the core wrote.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Keys.self)
        operation = try members.decode(String.self, forKey: .operation)
        intent = try members.decodeIfPresent(String.self, forKey: .intent)
        let event = try members.decode(String.self, forKey: .event)
        switch event {
        case "repeating":
            let delay = try Duration.milliseconds(members.decode(Int64.self, forKey: .delay))
            what = try .repeating(
                attempts: members.decode(Int.self, forKey: .attempts), delay: delay, because: members.decode(HoplineError.self, forKey: .because))
        case "asking_time":
            what = .askingTime
        case "accepted":
            let charge = try members.decodeIfPresent(String.self, forKey: .charge).flatMap(amount)
            what = try .accepted(sessionId: members.decode(String.self, forKey: .sessionId), estimatedChargeUsd: charge)
        case "status":
            what = try .status(
                sessionId: members.decode(String.self, forKey: .sessionId), status: members.decode(SessionStatus.self, forKey: .status),
                phase: members.decode(Phase.self, forKey: .phase))
        case "ordered":
            what = try .ordered(orderNo: members.decode(String.self, forKey: .orderNo))
        case "order_status":
            what = try .orderStatus(
                orderNo: members.decode(String.self, forKey: .orderNo), status: members.decode(StaticOrderStatus.self, forKey: .status),
                phase: members.decode(Phase.self, forKey: .phase))
        case "differing":
            what = try .differing(members: members.decode([String].self, forKey: .members))
        case "priced":
            what = try .priced(unitPrice: amount(members.decode(String.self, forKey: .unitPrice)) ?? .nan)
        case "watched":
            what = try .watched(value: members.decodeIfPresent(String.self, forKey: .value))
        case "in_doubt":
            what = try .inDoubt(record: members.decodeIfPresent(String.self, forKey: .record))
        case "store_failed":
            what = try .storeFailed(record: members.decode(String.self, forKey: .record))
        default:
            what = .other(event)
        }
    }
}

/// A number of the core, which is text; a point is a point in every country.
func amount(_ text: String) -> Decimal? {
    Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
}

/// Something that the store holds.
public struct Saved: Sendable, Hashable {
    /// What a record stands for.
    public enum Holds: String, Sendable, Decodable {
        /// An operation that is under way, in this client or another.
        case underWay = "under_way"
        /// One that may have been done: resume it.
        case inDoubt = "in_doubt"
        /// One that may have been done and can't be sent again: settle it.
        case inDoubtForGood = "in_doubt_for_good"
        /// A session.
        case session
        /// An order that was accepted and is to be watched: resume it.
        case order
        /// A write that was accepted, with or without an intent: `resume` gives its answer again, or says that its session is over.
        case accepted
        /// A record that can't be used. What it stands for may have been bought, so its intent buys nothing until it is forgotten.
        case refused
    }

    /// Its record, as it is now: what `resume`, `reconcile`, `settle` and `forget` take.
    public let record: String
    /// Who has it. What another living client has is shown as that one stored it last.
    public let whose: Whose
    /// The operation that made it.
    public let operation: String
    /// What it stands for.
    public let holds: Holds
    /// Your own name for it.
    public let intent: String?
    /// Its session.
    public let sessionId: String?
    /// Its order's number.
    public let orderNo: String?
    /// The status of the session or of the order, when it was last read.
    public let status: String?
    /// Of a record that can't be used: why, such as `damaged`, `other_version`, `other_api` or `other_account`.
    public let reason: String?
    /// Since when it is in doubt.
    public let inDoubtSince: Date?
    /// From when on it can be settled as not happened: an hour after it was last under way.
    public let settleFrom: Date?
}

extension Saved: Decodable {
    private enum Keys: String, CodingKey {
        case record, whose, operation, holds, intent, status, reason
        case sessionId = "session_id"
        case orderNo = "order_no"
        case inDoubtSince = "in_doubt_since"
        case settleFrom = "settle_from"
    }

    /// Reads what the core wrote.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Keys.self)
        record = try members.decode(String.self, forKey: .record)
        whose = try members.decode(Whose.self, forKey: .whose)
        operation = try members.decode(String.self, forKey: .operation)
        holds = try members.decode(Holds.self, forKey: .holds)
        intent = try members.decodeIfPresent(String.self, forKey: .intent)
        sessionId = try members.decodeIfPresent(String.self, forKey: .sessionId)
        orderNo = try members.decodeIfPresent(String.self, forKey: .orderNo)
        status = try members.decodeIfPresent(String.self, forKey: .status)
        reason = try members.decodeIfPresent(String.self, forKey: .reason)
        inDoubtSince = try members.decodeIfPresent(Int64.self, forKey: .inDoubtSince).map(moment)
        settleFrom = try members.decodeIfPresent(Int64.self, forKey: .settleFrom).map(moment)
    }
}

/// A part of what the store holds.
struct SavedPage: Decodable {
    let entries: [Saved]
    /// Where the next part begins.
    let after: String?
}

/// What a request through a session met.
public enum Seen: Sendable, Hashable {
    /// A response with this HTTP status.
    case status(Int)
    /// A page that asks for a captcha.
    case captcha
    /// No answer in time.
    case timeout
    /// A block that shows in another way.
    case block

    var json: JSON {
        switch self {
        case .status(let status): ["status": JSON.number(Decimal(status))]
        case .captcha: "captcha"
        case .timeout: "timeout"
        case .block: "block"
        }
    }
}

/// What was seen of a session comes to this. To rotate is your decision, unless it was made by `autoRotate`.
public enum Verdict: Sendable, Hashable {
    /// It works.
    case keep
    /// Rotate it, with this reason.
    case rotate(RotateReason)
    /// It was rotated, for this reason: use it as it is now, with its new exit.
    case rotated(RotateReason, Reply<Session>)
    /// Not enough is known, or to rotate would not help; this says why.
    case unsure(String)
}

/// What the core wrote of it. With a `command` it is being rotated.
struct Advice: Decodable {
    private let word: String
    let reason: RotateReason?
    private let why: String?
    let command: UInt32?

    private enum CodingKeys: String, CodingKey {
        case word = "verdict", reason, why, command
    }

    /// For whoever need not wait.
    var verdict: Verdict {
        switch (word, reason) {
        case ("keep", _): .keep
        case ("rotate", let reason?): .rotate(reason)
        default: .unsure(why ?? "")
        }
    }
}

/// What the core knows of an answer.
struct Facts: Decodable, Sendable {
    var sessionId: String?
    var orderNo: String?
    var requestId: String?
    var sessionType: String?
    /// Whether an intent that was to be resumed stands for nothing.
    var nothing: Bool?

    enum CodingKeys: String, CodingKey {
        case sessionId = "session_id"
        case orderNo = "order_no"
        case requestId = "request_id"
        case sessionType = "session_type"
        case nothing
    }
}
