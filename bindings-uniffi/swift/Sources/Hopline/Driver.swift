import Foundation

internal import HoplineCore

/// Drives a core: does what its steps say, answers each once, and hands out the results. All that it knows of the API is the
/// contract of `poll`.
///
/// It is a class with a lock and no actor: a cancelled task must be able to cancel its command at once, from wherever it is,
/// and all that is done under the lock is over in microseconds.
final class Driver: @unchecked Sendable {
    /// What a command ended with.
    struct Ended: Sendable {
        /// Nothing where it was taken before.
        let taken: Taken?
        /// What the transport said of its last request, if that failed.
        let transport: String?
        /// What the store said of its last call that failed.
        let store: String?
    }

    /// A call of the store.
    struct StoreStep {
        let id: UInt32
        let command: UInt32?
        let call: StoreCall
    }

    private static let wanted = responseHeaders()
    /// More requests than this wait for their turn: a process has few descriptors, on Apple's systems often 256.
    private static let mostAtOnce = 64

    let core: Client
    private let transport: any Transport
    private let headers: Headers
    /// Nil where the core has the names in its own memory.
    let store: StoreHandle?
    let lock = NSLock()
    // The lock guards what follows.
    /// By command: whoever waits for its result.
    var waiting: [UInt32: CheckedContinuation<Ended, Never>] = [:]
    /// Commands that have ended before anybody waited for them.
    private var ended: Set<UInt32> = []
    /// By step: the requests that are out or wait for their turn.
    var out: [UInt32: Exchange] = [:]
    /// The steps whose requests wait for their turn, in order.
    var queue: [UInt32] = []
    /// The calls of the store that were not begun, and by step those that are under way.
    var calls: [StoreStep] = []
    var asking: [UInt32: Task<Void, Never>] = [:]
    /// By command: what the transport and the store said last. The core keeps no errors of its host.
    private var transportTrouble: [UInt32: String] = [:]
    private var storeTrouble: [UInt32: String] = [:]
    var timer: (at: Int64, task: Task<Void, Never>)?
    var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    private var listened = 0
    /// While it is suspended, nothing is sent and the store is not asked.
    var isSuspended = false
    /// How often it was suspended or woken, of which the last counts.
    var turns = 0
    var suspending: Task<Void, any Error>?
    /// How often claims of the store have ended, and how often they are being given back at this moment.
    var losses = 0
    var releases = 0
    var state = State.open
    var closers: [CheckedContinuation<Void, Never>] = []
    var deadline: Task<Void, Never>?

    enum State: Comparable {
        case open
        /// What is under way is being cancelled.
        case closing
        /// The store is being given back, and is asked nothing more.
        case leaving
        case closed
    }

    init(_ core: Client, _ transport: any Transport, _ headers: Headers, _ store: StoreHandle?) {
        (self.core, self.transport, self.headers, self.store) = (core, transport, headers, store)
        store?.onLost { [weak self] names in self?.lose(names) }
    }

    /// Runs a command until it has ended. Cancelling the task cancels its command; what became of it is still returned.
    /// Nil if the client is closed.
    func run(_ start: @escaping @Sendable (Client) -> UInt32) async -> Ended? {
        let ticket = Ticket()
        return await withTaskCancellationHandler {
            guard let command = begin(start) else { return nil }
            return await withCheckedContinuation { continuation in
                wait(for: command, continuation, ticket)
            }
        } onCancel: {
            if let command = ticket.cancel() { cancel(command) }
        }
    }

    /// What a command ended with that ended as a part of another one.
    func result(of command: UInt32) -> Ended {
        defer { pump() }
        return lock.withLock { take(command) }
    }

    /// Asks the core for something that is answered at once, and does what it wants done then.
    func ask<Answer>(_ question: (Client) throws -> Answer) rethrows -> Answer {
        defer { pump() }
        return try question(core)
    }

    /// Progress from now on. Of somebody who does not listen the oldest is forgotten.
    func listen() -> AsyncStream<Event> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1024)) { listener in
            let number: Int? = lock.withLock {
                if state > .open { return nil }
                listened += 1
                listeners[listened] = listener
                return listened
            }
            guard let number else { return listener.finish() }
            listener.onTermination = { [weak self] _ in self?.leave(number) }
        }
    }

    var closed: Bool {
        lock.withLock { state > .open }
    }

    private func begin(_ start: (Client) -> UInt32) -> UInt32? {
        lock.withLock { state > .open ? nil : start(core) }
    }

    private func wait(for command: UInt32, _ continuation: CheckedContinuation<Ended, Never>, _ ticket: Ticket) {
        let ended: Ended? = lock.withLock {
            if self.ended.remove(command) != nil { return take(command) }
            waiting[command] = continuation
            return nil
        }
        if let ended { continuation.resume(returning: ended) }
        // Before its first step is taken, so that a command which is cancelled already stores and sends nothing.
        if ticket.isCancelled(command) || closed { cancel(command) } else { pump() }
    }

    private func cancel(_ command: UInt32) {
        let exchange = lock.withLock {
            core.cancel(command: command, unixMs: Clock.unix, monotonicMs: Clock.monotonic).flatMap { out[$0] }
        }
        exchange?.abort()
        pump()
    }

    /// Does all that the core wants done now.
    func pump() {
        var work: [() -> Void] = []
        lock.withLock {
            drain(&work)
            // What the core asks of a store that was given back, and what it makes of the answers.
            while state > .closing, !calls.isEmpty {
                refuse(calls.map(\.id))
                calls = []
                drain(&work)
            }
            if !isSuspended { beginAll(&work) }
        }
        work.forEach { $0() }
        rest()
    }

    /// Under the lock: takes all steps that there are.
    func drain(_ work: inout [() -> Void]) {
        var isMore = true
        while isMore {
            isMore = false
            let steps = core.steps(results: false, unixMs: Clock.unix, monotonicMs: Clock.monotonic)
            // A result that is taken brings further steps, behind the wait that came with it.
            for step in steps { if take(step, &work) { isMore = true } }
        }
    }

    /// Under the lock: begins what was not begun. Calls of the store come first, since a request may depend on them.
    private func beginAll(_ work: inout [() -> Void]) {
        for step in calls {
            asking[step.id] = Task.detached { await self.perform(step) }
        }
        calls = []
        while out.count - queue.count < Self.mostAtOnce, let next = queue.first {
            queue.removeFirst()
            if let exchange = out[next] { work.append { exchange.start() } }
        }
    }

    /// Under the lock: takes a step, and says whether there may be more. What is to be done without the lock it adds to `work`.
    private func take(_ step: Step, _ work: inout [() -> Void]) -> Bool {
        switch step {
        case .store(let id, let command, let call):
            calls.append(StoreStep(id: id, command: command, call: call))
        case .send(let id, let command, let request):
            let before = losses
            let claimsStand: @Sendable () async -> Bool = { await self.claimsStand(since: before) }
            out[id] = Exchange(request, Self.wanted, transport, headers, claimsStand) { self.answered(id, command, $0) }
            queue.append(id)
        case .completed(let command, _):
            if let waiter = waiting.removeValue(forKey: command) {
                let ended = take(command)
                work.append { waiter.resume(returning: ended) }
            } else {
                ended.insert(command)
            }
        case .notify(let event):
            tell(event)
        case .wait(let until):
            keepTime(until)
            return false
        }
        return true
    }

    /// Whether a request may be sent that was asked for when claims had ended so often.
    private func claimsStand(since before: Int) async -> Bool {
        guard let store else { return true }
        let vouches = await store.vouches()
        return vouches && lock.withLock { losses == before && releases == 0 }
    }

    private func take(_ command: UInt32) -> Ended {
        let (transport, store) = (transportTrouble.removeValue(forKey: command), storeTrouble.removeValue(forKey: command))
        return Ended(taken: core.take(command: command), transport: transport, store: store)
    }

    private func perform(_ step: StoreStep) async {
        guard let store else { return }
        let (answer, said) = await store.ask(step.call)
        lock.withLock {
            asking[step.id] = nil
            if let command = step.command, let said { storeTrouble[command] = "the store said: \(said)" }
            try? core.stored(step: step.id, answer: answer, unixMs: Clock.unix, monotonicMs: Clock.monotonic)
        }
        pump()
    }

    /// Under the lock: these calls of the store have no answer.
    func refuse(_ steps: [UInt32]) {
        for step in steps { try? core.stored(step: step, answer: .failed, unixMs: Clock.unix, monotonicMs: Clock.monotonic) }
    }

    private func answered(_ id: UInt32, _ command: UInt32, _ outcome: Exchange.Outcome) {
        lock.withLock {
            out[id] = nil
            queue.removeAll { $0 == id }
            let (unix, monotonic) = (Clock.unix, Clock.monotonic)
            switch outcome {
            case .response(let response):
                transportTrouble[command] = nil
                let headers = response.headers.compactMap { name, value in
                    Self.wanted.contains(name.lowercased()) ? Header(name: name.lowercased(), value: value) : nil
                }
                try? core.respond(
                    step: id, status: UInt16(clamping: response.status), headers: headers, body: response.body,
                    truncated: response.truncated, unixMs: unix, monotonicMs: monotonic)
            case .unfit(let rule):
                try? core.refuseHeaders(step: id, rule: rule, unixMs: unix, monotonicMs: monotonic)
            case .failed(let kind, let sent, let note):
                transportTrouble[command] = note
                try? core.fail(step: id, kind: kind, sent: sent, unixMs: unix, monotonicMs: monotonic)
            }
        }
        pump()
    }

    private func tell(_ packed: Data) {
        guard !listeners.isEmpty, let event = Event(Packed.read(packed, EventFields.init)) else { return }
        listeners.values.forEach { $0.yield(event) }
    }

    private func leave(_ listener: Int) {
        lock.withLock { _ = listeners.removeValue(forKey: listener) }
    }

    /// To wake too early does no harm, so a timer is only ever replaced by an earlier one.
    private func keepTime(_ until: Int64?) {
        guard let until, state == .open, timer.map({ until < $0.at }) ?? true else { return }
        timer?.task.cancel()
        let task = Task.detached { [weak self] in
            guard (try? await Clock.sleep(until: until)) != nil else { return }
            self?.awake(until)
        }
        timer = (until, task)
    }

    private func awake(_ at: Int64) {
        lock.withLock { if timer?.at == at { timer = nil } }
        pump()
    }
}

/// A command that may be cancelled before it is known.
private final class Ticket: @unchecked Sendable {
    private let lock = NSLock()
    private var command: UInt32?
    private var wasCancelled = false

    /// Says which command it is, and whether it was cancelled already.
    func isCancelled(_ command: UInt32) -> Bool {
        lock.withLock {
            self.command = command
            return wasCancelled
        }
    }

    /// Cancels it; which command that is, if that is known.
    func cancel() -> UInt32? {
        lock.withLock {
            wasCancelled = true
            return command
        }
    }
}
