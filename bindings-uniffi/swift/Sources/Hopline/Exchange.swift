import Foundation

internal import HoplineCore

/// One send, for no longer than it may take, whatever the transport makes of that. It ends once.
final class Exchange: @unchecked Sendable {
    enum Outcome: Sendable {
        case response(Response)
        case failed(HoplineCore.FailureKind, HoplineCore.Sent, note: String?)
    }

    /// What a transport may still take to tell what it knows, after its time is up.
    private static let grace = Duration.milliseconds(250)

    let command: UInt32
    private let request: Request
    private let sendBefore: Int64
    private let transport: any Transport
    private let lock = NSLock()
    /// The lock guards what follows.
    private var answer: (@Sendable (Outcome) -> Void)?
    private var tasks: [Task<Void, Never>] = []
    private var isLate = false

    init(_ command: UInt32, _ request: HoplineCore.Request, _ wanted: [String], _ transport: any Transport, answer: @escaping @Sendable (Outcome) -> Void) {
        self.command = command
        self.request = Request(
            method: request.method, url: request.url, headers: request.headers.map { (name: $0.name, value: $0.value) }, body: request.body,
            timeout: .milliseconds(request.timeoutMs), maxBody: Int(request.maxBody), wanted: wanted)
        sendBefore = request.sendBefore
        self.transport = transport
        self.answer = answer
    }

    func start() {
        // It took too long to come to this: the core decides anew.
        if Clock.monotonic > sendBefore { return end(.failed(.late, .never, note: nil)) }
        lock.withLock {
            guard answer != nil else { return }
            let sending = Task.detached { await self.send() }
            let watching = Task.detached { await self.watch(sending) }
            tasks = [sending, watching]
        }
    }

    /// Nobody waits for it any more.
    func abort() {
        end(.failed(.aborted, .maybe, note: nil))
    }

    private func send() async {
        do {
            let response = try await transport.send(request)
            end(.response(response))
        } catch {
            let late = lock.withLock { isLate }
            end(late ? .failed(.timeout, .maybe, note: nil) : Self.outcome(of: error))
        }
    }

    private func watch(_ sending: Task<Void, Never>) async {
        do {
            try await Task.sleep(for: request.timeout, clock: .continuous)
            lock.withLock { isLate = true }
            sending.cancel()
            try await Task.sleep(for: Self.grace, clock: .continuous)
            end(.failed(.timeout, .maybe, note: nil))
        } catch {
            // It has ended.
        }
    }

    private func end(_ outcome: Outcome) {
        let (answer, tasks) = lock.withLock {
            defer { (self.answer, self.tasks) = (nil, []) }
            return (self.answer, self.tasks)
        }
        answer?(outcome)
        tasks.forEach { $0.cancel() }
    }

    private static func outcome(of error: any Error) -> Outcome {
        guard let failure = error as? TransportFailure else {
            // Its own text is left out, since it may hold secrets.
            return .failed(.other, .maybe, note: "the transport threw \(type(of: error))")
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
