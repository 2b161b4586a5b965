import Foundation

/// The outcome of a request without a usable answer.
public enum Obstacle: String, Sendable, Hashable, Parameter {
    /// A page that asks for a captcha.
    case captcha
    /// A timeout.
    case timeout
    /// A block that shows in another way.
    case block
}

/// Builds an event for `reportSessionEvent` from a request through a session.
///
/// The service does not document which members it reads, so these names are Hopline's own; any other object may be reported as well.
///
/// - Parameters:
///   - status: The HTTP status of the target's answer, 100 to 599.
///   - seen: The outcome if there was no usable answer.
///   - latency: The duration of the request, reported in milliseconds; at least 0.
///   - bytes: The transferred bytes, at least 0.
///   - target: The host name of the target. Of a URL only the host is kept, since the rest may hold secrets.
///   - more: Further members, by names of your own.
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
