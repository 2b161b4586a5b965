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

    /// A failure that may be the proxy's or the target's, such as a connection that broke off. After three in a row the session is to be read
    /// again; a pool does that by itself.
    case unknown

    /// What an error of an HTTP client means: the proxy's failures apart from the target's. The library knows `URLError`, `POSIXError`, CFNetwork's
    /// errors, and AsyncHTTPClient's by their names. Another one is a timeout or the proxy's if its name or its words say so, and else `unknown`.
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
            // Foundation has no words of its own for it on Linux.
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

/// What the core makes of an error.
private enum SeenFacts: Decodable {
    case status(Int)
    case word(String)

    private struct WithStatus: Decodable { let status: Int }

    init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) { self = .word(word) } else { self = .status(try WithStatus(from: decoder).status) }
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
