/// A session as it was when waiting for it ended: usable, over, or (`pending`, `unknown`) not usable yet, at the deadline.
public struct OpenSession: Sendable {
    /// Its id: the handle for everything that comes after.
    public let sessionId: String
    /// Where it is.
    public let phase: Phase
    /// The last read of it.
    public let session: Reply<Session>
    let client: AgentClient

    /// How to reach it; nothing as long as it is not usable.
    public var proxy: Proxy? { session.proxy }

    /// Waits on until it is usable, over, or the deadline has come.
    ///
    /// - Parameters:
    ///   - credentials: Whether the username and password are wanted once it is active.
    ///   - deadline: How long to wait; 5 minutes where it is left out.
    public func wait(credentials: Bool = false, deadline: Duration? = nil) async throws(HoplineError) -> OpenSession {
        try await client.waitSession(sessionId: sessionId, credentials: credentials, deadline: deadline)
    }

    /// Advice on what was seen through it; with `autoRotate`, what `observe` of the client does.
    public func observe(_ seen: Seen) async throws(HoplineError) -> Verdict? {
        try await client.observe(sessionId: sessionId, seen: seen)
    }

    /// Follows it no more, without ending it: another client of the store may have it then. Returns whether it was followed.
    @discardableResult
    public func release() throws(HoplineError) -> Bool {
        try client.releaseSession(sessionId)
    }
}

extension OpenSession: CustomStringConvertible, CustomReflectable {
    /// Which session, and where it is.
    public var description: String { "\(sessionId) (\(phase.rawValue))" }

    /// All but the client.
    public var customMirror: Mirror {
        Mirror(self, children: ["sessionId": sessionId, "phase": phase, "session": session], displayStyle: .struct)
    }
}
