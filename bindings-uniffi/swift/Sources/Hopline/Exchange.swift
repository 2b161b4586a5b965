import Foundation

internal import HoplineCore

/// One send, for no longer than it may take, even if the transport ignores its timeout. An exchange ends once.
final class Exchange: @unchecked Sendable {
    enum Outcome: Sendable {
        case response(Response)
        case failed(HoplineCore.FailureKind, HoplineCore.Sent, note: String?)
        /// A header of the caller's own can't be sent.
        case unfit(rule: String)
    }

    /// The time beyond the timeout in which the transport may still report what it knows.
    private static let grace: Int64 = 250
    /// The timeout, in milliseconds.
    let timeout: Int64
    private let request: Request
    private let sendBefore: Int64
    /// True for a termination, which is never late, and is sent whatever the store says, and while the client closes.
    let endsSession: Bool
    private let transport: any Transport
    private let headers: Headers
    private let time: Time
    /// Returns true if the store's claims stand, under which the request is sent.
    private let claimsStand: @Sendable () async -> Bool
    /// Called when the transport gets the request.
    private let sent: @Sendable (String) -> Void
    private let lock = NSLock()
    // The lock guards the following members.
    private var answer: (@Sendable (Outcome) -> Void)?
    private var task: Task<Void, Never>?
    /// The end of its time, and then of the grace, by the monotonic clock; nil as long as it has not started.
    private var due: Int64?
    /// True if the transport has the request. The value is set under the lock that `end` takes, so that an exchange which ends before it
    /// never sends, and one which ends after it may have sent.
    private var isOut: Bool { sentAt != nil }
    private var sentAt: ContinuousClock.Instant?
    private var isLate = false

    init(
        _ request: HoplineCore.Request, _ wanted: [String], _ transport: any Transport, _ headers: Headers,
        _ claimsStand: @escaping @Sendable () async -> Bool, _ time: Time = .system, sent: @escaping @Sendable (String) -> Void = { _ in },
        answer: @escaping @Sendable (Outcome) -> Void
    ) {
        self.request = Request(
            method: request.method, url: request.url, headers: request.headers.map { (name: $0.name, value: $0.value) }, body: request.body,
            timeout: .milliseconds(request.timeoutMs), maxBody: Int(request.maxBody), wanted: wanted)
        timeout = Int64(request.timeoutMs)
        (sendBefore, endsSession) = (request.sendBefore, request.endsSession)
        self.transport = transport
        self.headers = headers
        self.time = time
        self.claimsStand = claimsStand
        self.sent = sent
        self.answer = answer
    }

    func start() {
        lock.withLock {
            guard answer != nil else { return }
            due = time.monotonic() + timeout
            task = Task.detached { await self.send() }
        }
    }

    /// Gives up if the time is up. Returns the time of the next look.
    func look(at now: Int64) -> Int64? {
        let isOver = lock.withLock {
            guard let due, now >= due else { return false }
            defer { (isLate, self.due) = (true, due + Self.grace) }
            if !isLate { task?.cancel() }
            return isLate
        }
        if isOver { end(.timeout) }
        return lock.withLock { answer == nil ? nil : due }
    }

    /// The time since the transport got the request; nil if it never did.
    var age: Duration? { lock.withLock { sentAt.map { .now - $0 } } }

    /// Aborts the exchange, which no caller waits for any more.
    func abort() {
        end(.aborted)
    }

    private func send() async {
        let complete: Request
        do {
            complete = try await headers.added(to: request)
        } catch let error as Headers.Unfit {
            return end { _ in .unfit(rule: error.rule) }
        } catch {
            let late = lock.withLock { isLate }
            // The error's own text may hold a token that this client never saw.
            return end(late ? .timeout : .headers, note: late ? nil : "`headers` threw \(type(of: error))")
        }
        // The request is late, or another client may own its name by now: the core decides anew.
        if !endsSession {
            guard await claimsStand() else { return end(.late, note: "the store did not vouch for its claims") }
            if time.monotonic() > sendBefore { return end(.late) }
        }
        guard handOver() else { return }
        sent("\(request)")
        do {
            let response = try await transport.send(complete)
            end { _ in .response(response) }
        } catch {
            let late = lock.withLock { isLate }
            let wasSent = (error as? TransportFailure)?.sent != .never
            end { _ in late ? .failed(.timeout, wasSent ? .maybe : .never, note: nil) : Self.outcome(of: error, complete) }
        }
    }

    /// Returns true if the transport may have the request: not if the exchange has ended, or its time is up.
    private func handOver() -> Bool {
        lock.withLock {
            if answer != nil, !isLate { sentAt = .now }
            return isOut
        }
    }

    /// Ends the exchange without a response. A request that the transport never had was never sent.
    private func end(_ kind: HoplineCore.FailureKind, note: String? = nil) {
        end { isOut in .failed(kind, isOut ? .maybe : .never, note: note) }
    }

    private func end(_ outcome: (_ isOut: Bool) -> Outcome) {
        let (answer, task, isOut) = lock.withLock {
            defer { (self.answer, self.task) = (nil, nil) }
            return (self.answer, self.task, self.isOut)
        }
        answer?(outcome(isOut))
        task?.cancel()
    }

    private static func outcome(of error: any Error, _ request: Request) -> Outcome {
        guard let failure = error as? TransportFailure else {
            return .failed(.other, .maybe, note: "the transport threw \(described(error, request))")
        }
        let kind: HoplineCore.FailureKind =
            switch failure.kind {
            case .dns: .dns
            case .connect: .connect
            case .tls: .tls
            case .timeout: .timeout
            case .closed: .closed
            case .aborted: .aborted
            case .other: .other
            }
        return .failed(kind, failure.sent == .never ? .never : .maybe, note: failure.note.map { "the transport said: \($0)" })
    }
}
