import Foundation

/// An observation from one request through a session.
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
    /// The target could not be reached, or failed in another way. This is no observation about the session.
    case target

    /// A failure that may be the proxy's or the target's, such as a connection that broke off. After three in a row the session has to be
    /// read again; a pool does that by itself.
    case unknown

    /// Interprets an error of an HTTP client: the proxy's failures apart from the target's. The library knows `URLError`, `POSIXError`,
    /// CFNetwork's errors, and AsyncHTTPClient's by their names. Another one is a timeout or the proxy's failure if its name or its words
    /// say so, and else `unknown`.
    public init(_ error: any Error) {
        let behind = sequence(first: error as NSError) { $0.userInfo[NSUnderlyingErrorKey] as? NSError }.dropFirst().prefix(7)
        let chain = [Self.facts(error)] + behind.map { .object(["names": ["NSError"], "code": .string("\($0.domain) \($0.code)")]) }
        let seen: SeenFacts? = try? ask("seen", .object(["chain": .array(chain)]))
        self =
            switch seen {
            case .status(let status): .status(status)
            case .word("timeout"): .timeout
            case .word("proxy"): .proxy
            case .word("target"): .target
            default: .unknown
            }
    }

    private static func facts(_ error: any Error) -> JSON {
        var facts = Parameters()
        switch error {
        case let error as URLError:
            facts.add("names", ["URLError"])
            facts.add("code", "NSURLErrorDomain \(error.errorCode)")
            // Foundation has no message for it on Linux.
            facts.add("said", error.code == .timedOut ? "The request timed out." : error.localizedDescription)
        case let error as POSIXError:
            let known: [POSIXErrorCode: String] = [.ECONNREFUSED: "ECONNREFUSED", .EHOSTUNREACH: "EHOSTUNREACH", .ENETUNREACH: "ENETUNREACH", .ETIMEDOUT: "ETIMEDOUT", .ECONNRESET: "ECONNRESET"]
            facts.add("names", ["POSIXError"])
            facts.add("code", known[error.code])
            facts.add("said", error.localizedDescription)
        default:
            // AsyncHTTPClient's errors are of one type, and print as the case that they are.
            let said = String("\(error)".prefix(4000))
            facts.add("names", [said.contains(" ") ? "\(type(of: error))" : said, "\(type(of: error))"])
            facts.add("said", said)
        }
        return facts.json
    }

    var json: JSON {
        if case .status(let status) = self { ["status": status.parameter] } else { .string("\(self)") }
    }
}

/// The core's interpretation of an error.
private enum SeenFacts: Decodable {
    case status(Int)
    case word(String)

    private struct WithStatus: Decodable { let status: Int }

    init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) { self = .word(word) } else { self = .status(try WithStatus(from: decoder).status) }
    }
}

/// The advice after an observation of a session. Rotating is your decision, unless the session has `autoRotate`.
public enum Verdict: Sendable, Hashable {
    /// Keep the exit: it works.
    case keep
    /// Rotate the session, with this reason.
    case rotate(RotateReason)
    /// The session was rotated, for this reason: use it as it is now, with its new exit.
    case rotated(RotateReason, Reply<Session>)
    /// No advice: too little is known, or a rotation would not help; the text says why.
    case unsure(String)

    /// The advice for a session that is not being rotated.
    init(_ told: VerdictFields) {
        switch (told.verdict, told.reason) {
        case (.keep, _): self = .keep
        case (.rotate, let reason?): self = .rotate(reason)
        default: self = .unsure(told.why ?? "")
        }
    }
}
