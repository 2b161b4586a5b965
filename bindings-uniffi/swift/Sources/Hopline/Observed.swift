import Foundation

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
    /// The proxy refused the request, or could not be reached.
    case proxy
    /// The target could not be reached, or failed in another way. It says nothing about the session.
    case target

    /// What an error of an HTTP client means: `URLError`, `POSIXError`, or AsyncHTTPClient's, which is known by its name. Whatever can't be
    /// found or reached from here is the proxy, since the target is reached by way of it.
    public init(_ error: any Error) {
        let behind = sequence(first: error as NSError) { $0.userInfo[NSUnderlyingErrorKey] as? NSError }
        // CFNetwork's errors of SOCKS (100 to 124) and of HTTP proxies (306 to 311).
        if behind.contains(where: { $0.domain == "kCFErrorDomainCFNetwork" && (100...124 ~= $0.code || 306...311 ~= $0.code) }) {
            self = .proxy
            return
        }
        self =
            switch error {
            case let error as URLError: Self.proxies.contains(error.code) ? .proxy : error.code == .timedOut ? .timeout : .target
            case let error as POSIXError:
                [.ECONNREFUSED, .EHOSTUNREACH].contains(error.code) ? .proxy : error.code == .ETIMEDOUT ? .timeout : .target
            default: Self.named["\(error)"] ?? .target
            }
    }

    private static let proxies: Set<URLError.Code> = [.cannotFindHost, .dnsLookupFailed, .cannotConnectToHost]
    private static let named: [String: Seen] = [
        "HTTPClientError.proxyAuthenticationRequired": .proxy, "HTTPClientError.invalidProxyResponse": .proxy,
        "HTTPClientError.httpProxyHandshakeTimeout": .proxy, "HTTPClientError.socksHandshakeTimeout": .proxy,
        "HTTPClientError.connectTimeout": .proxy, "HTTPClientError.readTimeout": .timeout, "HTTPClientError.deadlineExceeded": .timeout,
    ]

    var json: JSON {
        if case .status(let status) = self { ["status": status.parameter] } else { .string("\(self)") }
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

    /// Of what is not being rotated.
    init(_ told: VerdictFields) {
        switch (told.verdict, told.reason) {
        case (.keep, _): self = .keep
        case (.rotate, let reason?): self = .rotate(reason)
        default: self = .unsure(told.why ?? "")
        }
    }
}
