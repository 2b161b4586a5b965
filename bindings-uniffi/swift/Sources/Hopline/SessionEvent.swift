import Foundation

/// What came in place of an answer.
public enum Hindrance: String, Sendable, Hashable, Parameter {
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
///   - target: The host name of the target, and no more of its URL: the rest may hold secrets.
///   - more: Whatever else is worth telling, by names of your own.
public func sessionEvent(
    status: Int? = nil, seen: Hindrance? = nil, latency: Duration? = nil, bytes: Int? = nil, target: String? = nil, more: [String: JSON] = [:]
) throws(HoplineError) -> JSON {
    func check(_ field: String, _ holds: Bool?, _ rule: String) throws(HoplineError) {
        if holds == false { throw .unfit("report_session_event", field, rule) }
    }
    try check("status", status.map { 100...599 ~= $0 }, "must be an HTTP status, 100 to 599")
    try check("latency", latency.map { $0 >= .zero }, "must be at least 0")
    try check("bytes", bytes.map { $0 >= 0 }, "must be at least 0")
    try check("target", target.map { !$0.isEmpty && !$0.contains { "/?#@\\ ".contains($0) } }, "must be a host name, and no more of a URL")
    var told = Parameters()
    told.add("status", status)
    told.add("seen", seen)
    told.add("latency_ms", latency)
    told.add("bytes", bytes)
    told.add("target", target)
    return .object(more.merging(told.members) { $1 })
}
