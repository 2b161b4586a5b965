import Foundation

/// What came in place of an answer.
public enum Obstacle: String, Sendable, Hashable, Parameter {
    /// A page that asks for a captcha.
    case captcha
    /// Nothing in time.
    case timeout
    /// A block that shows in another way.
    case block
}

/// Builds an event for `reportSessionEvent` of what a request through a session met.
///
/// The service does not show which members it reads, so these names are Hopline's own; any other object may be reported as well.
///
/// - Parameters:
///   - status: The HTTP status that the target answered with, 100 to 599.
///   - seen: What came in place of an answer.
///   - latency: What the request took, told in milliseconds; at least 0.
///   - bytes: How much was transferred, at least 0.
///   - target: The host name of the target. Of a URL only that is kept, since the rest may hold secrets.
///   - more: Whatever else is worth telling, by names of your own.
public func sessionEvent(
    status: Int? = nil, seen: Obstacle? = nil, latency: Duration? = nil, bytes: Int? = nil, target: String? = nil, more: [String: JSON] = [:]
) throws(HoplineError) -> JSON {
    var facts = Parameters()
    facts.add("status", status)
    facts.add("seen", seen)
    facts.add("latency_ms", latency)
    facts.add("bytes", bytes)
    facts.add("target", target)
    return try ask("session_event", ["facts": facts.json, "more": .object(more)])
}
