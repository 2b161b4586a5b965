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
