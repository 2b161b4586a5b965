import Foundation

internal import HoplineCore

/// Drives a core: carries out its steps, answers each once, and hands out the results. The contract of `poll` is the only part of the API
/// that it knows.
///
/// The driver is a class with a lock and not an actor: a cancelled task must be able to cancel its command at once, from any thread, and
/// all work under the lock is over in microseconds.
final class Driver: @unchecked Sendable {
    /// The result of a command.
    struct Ended: Sendable {
        /// Nil if the result was read before.
        let taken: Taken?
        /// The transport's message about its last request, if that failed.
        let transport: String?
        /// The store's message about its last call that failed.
        let store: String?
    }

    /// The result of a command, and whether the core knows that it was read.
    private struct Early {
        let result: Taken?
        let isTaken: Bool
    }

    /// A call of the store.
    struct StoreStep {
        let id: UInt32
        let command: UInt32?
        let call: StoreCall
    }

    private static let wanted = responseHeaders()

    let core: Client
    let time: Time
    private let transport: any Transport
    private let headers: Headers
    /// Nil if the core has the names in its own memory.
    let store: StoreHandle?
    let lock = NSLock()
    // The lock guards the following members.
    /// By command: the caller that waits for its result.
    var waiting: [UInt32: CheckedContinuation<Ended?, Never>] = [:]
    /// By command: its operation and intent, as long as a caller waits.
    private var operations: [UInt32: (name: String, intent: String?)] = [:]
    /// Commands that have ended before a caller waited for them.
    private var ended: [UInt32: Early] = [:]
    /// The work to do once the lock is free.
    private var work: [() -> Void] = []
    /// By step: the requests that are out or are to be begun.
    var out: [UInt32: Exchange] = [:]
    /// The steps whose requests were not begun, in order.
    var queue: [UInt32] = []
    /// The calls of the store that were not begun, and by step those that are under way.
    var calls: [StoreStep] = []
    var asking: [UInt32: Task<Void, Never>] = [:]
    /// By command: the last messages of the transport and the store, as long as somebody may hear them. The core keeps no errors of its
    /// host.
    private(set) var transportTrouble: [UInt32: String] = [:]
    private(set) var storeTrouble: [UInt32: String] = [:]
    var timer: (at: Int64, task: Task<Void, Never>)?
    var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    private var listened = 0
    /// True while suspended: nothing is sent and the store is not called.
    var isSuspended = false
    /// The number of suspensions and wakes, of which the last counts.
    var turns = 0
    var suspending: Task<Void, any Error>?
    /// The number of times that claims of the store have ended, and the number of releases under way.
    var losses = 0
    var releases = 0
    var state = State.open
    var closers: [CheckedContinuation<Void, Never>] = []
    var deadline: Task<Void, Never>?

    enum State: Comparable {
        case open
        /// Everything that is under way is being cancelled.
        case closing
        /// The store is being released, and gets no more calls.
        case leaving
        case closed
    }

    init(_ core: Client, _ transport: any Transport, _ headers: Headers, _ store: StoreHandle?, _ time: Time) {
        (self.core, self.transport, self.headers, self.store, self.time) = (core, transport, headers, store, time)
        store?.onLost { [weak self] names in self?.lose(names) }
    }

    /// Starts a command, or waits for a `known` one, until it has ended. Cancelling the task cancels its command; its result is still
    /// returned. Nil if the client is closed.
    func run(_ operation: String, _ intent: String?, _ what: Move, known: UInt32? = nil) async -> Ended? {
        let ticket = Ticket()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                act {
                    guard state == .open else { return work.append { waiter.resume(returning: nil) } }
                    let moved = core.advance(what: what, body: Data(), unixMs: time.unix(), monotonicMs: time.monotonic())
                    guard let command = moved.command ?? known else { return work.append { waiter.resume(returning: nil) } }
                    waiting[command] = waiter
                    operations[command] = (operation, intent)
                    if operation == "resume_all" { forgetUnheard() }
                    take(moved)
                    if let ended = read(command) {
                        waiting[command] = nil
                        work.append { waiter.resume(returning: ended) }
                    }
                    // Before anything is begun, so that a command which is cancelled already sends nothing.
                    if ticket.isCancelled(command) { cancel(command) }
                }
            }
        } onCancel: {
            if let command = ticket.cancel() { act { cancel(command) } }
        }
    }

    /// The result of a command that ended as a part of another one.
    func result(of command: UInt32) -> Ended {
        act {
            if let early = read(command) { return early }
            defer { move(.taken(commands: [command])) }
            return ended(command, Early(result: core.result(command: command), isTaken: true))
        }
    }

    /// Moves the core, and carries out the steps that follow. The core is not moved once the store is being given back.
    @discardableResult
    func ask(_ what: Move) -> MoveAnswer {
        act { state < .leaving ? move(what) : .nothing }
    }

    /// Returns the events from now on. If a listener is too slow the oldest are dropped.
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

    /// Returns true if the lease is still this client's.
    func isValid(pool: UInt32, lease: Int64) -> Bool {
        lock.withLock { state == .open && core.isValid(pool: pool, lease: lease) }
    }

    /// Returns the time to come again for the lease's target, if there is one.
    func retryAt(pool: UInt32, lease: Int64) -> Date? {
        let milliseconds = lock.withLock { state == .open ? core.retryAt(pool: pool, lease: lease) : nil }
        return milliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }

    /// Under the lock: the commands that are broken off when the client closes.
    var commandsToBreakOff: [UInt32] {
        waiting.keys.filter { !core.endsSessions(command: $0) }
    }

    /// Runs a function under the lock, and then carries out the core's steps.
    func act<Result>(_ doing: () -> Result) -> Result {
        let (result, todo): (Result, [() -> Void]) = lock.withLock {
            let result = doing()
            // Store calls after the release, and the steps after their answers.
            while state > .closing, !calls.isEmpty {
                let unasked = calls
                calls = []
                refuse(unasked.map(\.id))
            }
            if !isSuspended { beginAll() }
            defer { work = [] }
            return (result, work)
        }
        todo.forEach { $0() }
        rest()
        return result
    }

    /// Under the lock: moves the core, and takes all steps that follow. The core of a closed client is not moved.
    @discardableResult
    func move(_ what: Move, _ body: Data = Data()) -> MoveAnswer {
        guard state < .closed else { return .nothing }
        let moved = core.advance(what: what, body: body, unixMs: time.unix(), monotonicMs: time.monotonic())
        take(moved)
        return moved.answer
    }

    /// Under the lock: takes the steps of a move, and all that come after them.
    private func take(_ moved: Moved) {
        var (read, isWait): ([UInt32], Bool) = ([], false)
        for step in moved.steps {
            switch step {
            case .store(let id, let command, let call):
                calls.append(StoreStep(id: id, command: command, call: call))
            case .send(let id, let command, let request):
                let before = losses
                let claimsStand: @Sendable () async -> Bool = { await self.claimsStand(since: before) }
                let sent: @Sendable (String) -> Void = { line in self.lock.withLock { self.tell(command, .sent(request: line)) } }
                out[id] = Exchange(request, Self.wanted, transport, headers, claimsStand, time, sent: sent) { self.answered(id, command, $0) }
                queue.append(id)
            case .completed(let command, let result):
                let early = Early(result: result, isTaken: moved.taken.contains(command))
                if let waiter = waiting.removeValue(forKey: command) {
                    let ended = ended(command, early)
                    work.append { waiter.resume(returning: ended) }
                    if !early.isTaken { read.append(command) }
                } else {
                    ended[command] = early
                }
            case .notify(let event):
                tell(event)
            case .wait(let until):
                keepTime(until)
                isWait = true
            }
        }
        // The core may forget a result that was read, which brings further steps behind the wait that came with it.
        if !read.isEmpty { move(.taken(commands: read)) } else if !isWait { move(.go) }
    }

    /// Under the lock: the result of a command that ended before a caller waited for it.
    private func read(_ command: UInt32) -> Ended? {
        guard let early = ended.removeValue(forKey: command) else { return nil }
        if !early.isTaken { move(.taken(commands: [command])) }
        return ended(command, early)
    }

    private func ended(_ command: UInt32, _ early: Early) -> Ended {
        operations[command] = nil
        let (transport, store) = (transportTrouble.removeValue(forKey: command), storeTrouble.removeValue(forKey: command))
        return Ended(taken: early.result, transport: transport, store: store)
    }

    /// Under the lock.
    func cancel(_ command: UInt32) {
        guard case .abort(let step?) = move(.cancel(command: command)), let exchange = out[step] else { return }
        work.append { exchange.abort() }
    }

    /// Under the lock: begins the waiting steps. Calls of the store come first, since a request may depend on them.
    private func beginAll() {
        for step in calls {
            asking[step.id] = Task.detached { await self.perform(step) }
        }
        calls = []
        for next in queue {
            guard let exchange = out[next] else { continue }
            keepTime(time.monotonic() + exchange.timeout)
            let mayStart = state == .open || state == .closing && exchange.endsSession
            work.append(mayStart ? { exchange.start() } : { exchange.abort() })
        }
        queue = []
    }

    /// Returns true if a request may be sent that was requested at that count of lost claims.
    private func claimsStand(since before: Int) async -> Bool {
        guard let store else { return true }
        let vouches = await store.vouches()
        return vouches && lock.withLock { losses == before && releases == 0 }
    }

    /// Under the lock: true if a caller waits for the command, or may wait for it as a part of another one. A pool's own commands go on
    /// without end, and nobody hears of them.
    private func isHeard(_ command: UInt32) -> Bool {
        waiting[command] != nil || waiting.keys.contains { operations[$0]?.name == "resume_all" }
    }

    /// Under the lock: forgets the messages of an earlier `resume_all` that no part of it has taken.
    private func forgetUnheard() {
        transportTrouble = transportTrouble.filter { waiting[$0.key] != nil }
        storeTrouble = storeTrouble.filter { waiting[$0.key] != nil }
    }

    private func perform(_ step: StoreStep) async {
        guard let store else { return }
        let (answer, said) = await store.ask(step.call)
        act {
            asking[step.id] = nil
            if let command = step.command, let said, isHeard(command) { storeTrouble[command] = "the store said: \(said)" }
            move(.stored(step: step.id, answer: answer))
        }
    }

    /// Under the lock: these calls of the store have no answer.
    func refuse(_ steps: [UInt32]) {
        for step in steps { move(.stored(step: step, answer: .failed)) }
    }

    private func answered(_ id: UInt32, _ command: UInt32, _ outcome: Exchange.Outcome) {
        act {
            if let age = out.removeValue(forKey: id)?.age {
                let status: Int? = if case .response(let response) = outcome { response.status } else { nil }
                tell(command, .answered(status: status, duration: age))
            }
            queue.removeAll { $0 == id }
            switch outcome {
            case .response(let response):
                transportTrouble[command] = nil
                let headers = response.headers.compactMap { name, value in
                    Self.wanted.contains(name.lowercased()) ? Header(name: name.lowercased(), value: value) : nil
                }
                let status = UInt16(clamping: response.status)
                move(.respond(step: id, status: status, headers: headers, truncated: response.truncated), response.body)
            case .unfit(let rule):
                move(.refuseHeaders(step: id, rule: rule))
            case .failed(let kind, let sent, let note):
                if isHeard(command) { transportTrouble[command] = note }
                move(.fail(step: id, kind: kind, sent: sent))
            }
        }
    }

    private func tell(_ packed: Data) {
        guard !listeners.isEmpty, let event = Event(Packed.read(packed, EventFields.init)) else { return }
        listeners.values.forEach { $0.yield(event) }
    }

    /// Under the lock: reports an event of this host for a command.
    private func tell(_ command: UInt32, _ what: Event.What) {
        guard !listeners.isEmpty else { return }
        let (operation, intent) = operations[command] ?? ("pool", nil)
        let event = Event(operation, intent, what)
        listeners.values.forEach { $0.yield(event) }
    }

    private func leave(_ listener: Int) {
        lock.withLock { _ = listeners.removeValue(forKey: listener) }
    }

    /// A wake that is too early does no harm, so a timer is only ever replaced by an earlier one.
    private func keepTime(_ until: Int64?) {
        guard let until, state <= .closing, timer.map({ until < $0.at }) ?? true else { return }
        timer?.task.cancel()
        let task = Task.detached { [weak self, time] in
            guard (try? await time.sleep(until)) != nil else { return }
            self?.awake(until)
        }
        timer = (until, task)
    }

    private func awake(_ at: Int64) {
        let sends = lock.withLock {
            if timer?.at == at { timer = nil }
            return Array(out.values)
        }
        let next = sends.compactMap { $0.look(at: time.monotonic()) }.min()
        act {
            keepTime(next)
            move(.go)
        }
    }
}

extension Moved {
    /// The command that was started.
    fileprivate var command: UInt32? {
        if case .command(let command) = answer { command } else { nil }
    }
}

/// A command that may be cancelled before it is known.
private final class Ticket: @unchecked Sendable {
    private let lock = NSLock()
    private var command: UInt32?
    private var wasCancelled = false

    /// Sets the command, and returns true if it was cancelled already.
    func isCancelled(_ command: UInt32) -> Bool {
        lock.withLock {
            self.command = command
            return wasCancelled
        }
    }

    /// Cancels the command; returns it, if it is known.
    func cancel() -> UInt32? {
        lock.withLock {
            wasCancelled = true
            return command
        }
    }
}
