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
        let taken: Taken
        /// What the transport said of its last request, if that failed.
        let transport: String?
        /// What the store said last, if it has ever failed.
        let store: String?
    }

    private static let wanted = responseHeaders()
    /// More requests than this wait for their turn: a process has few descriptors, on Apple's systems often 256.
    private static let mostAtOnce = 64

    let core: Client
    private let transport: any Transport
    private let headers: Headers
    private let records: Records
    private let disk = OperationQueue()
    private let lock = NSLock()
    // The lock guards what follows.
    /// By command: whoever waits for its result.
    private var waiting: [UInt32: CheckedContinuation<Ended, Never>] = [:]
    /// Commands that have ended before anybody waited for them.
    private var ended: Set<UInt32> = []
    /// By step: the requests that are out or wait for their turn.
    private var out: [UInt32: Exchange] = [:]
    /// The steps whose requests wait for their turn, in order.
    private var queue: [UInt32] = []
    /// By record: how many saves are under way, and who waits for them.
    private var saves: [String: Int] = [:]
    private var unsaved: [String: [CheckedContinuation<Bool, Never>]] = [:]
    /// By command: what the transport said last. The core keeps no errors of its host.
    private var trouble: [UInt32: String] = [:]
    private var storeTrouble: String?
    /// The records that the store could neither keep nor delete when it was last asked to.
    private var unkept: Set<String> = []
    private var timer: (at: Int64, task: Task<Void, Never>)?
    private var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    private var listened = 0
    private var isClosed = false
    private var closers: [CheckedContinuation<Void, Never>] = []

    init(_ core: Client, _ transport: any Transport, _ headers: Headers, _ records: Records) {
        (self.core, self.transport, self.headers, self.records) = (core, transport, headers, records)
        disk.maxConcurrentOperationCount = 4
    }

    /// Runs a command until it has ended. Cancelling the task cancels its command; what became of it is still returned.
    /// Nil if there is nothing to start, or the client is closed.
    func run(_ start: @escaping @Sendable (Client) -> UInt32?) async -> Ended? {
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

    /// Asks the core for something that is answered at once, and does what it wants done then.
    func ask<Answer>(_ question: (Client) throws -> Answer) rethrows -> Answer {
        defer { pump() }
        return try question(core)
    }

    /// Waits until nothing is being saved of a record, and says whether that is kept. What is to be saved while another save of it is
    /// out comes after that.
    @discardableResult
    func settled(_ record: String) async -> Bool {
        while await wasBusy(record) {}
        return lock.withLock { !unkept.contains(record) }
    }

    /// Waits for the save of a record that is out. Whether there was one.
    private func wasBusy(_ record: String) async -> Bool {
        await withCheckedContinuation { continuation in
            let isBusy = lock.withLock {
                if saves[record] != nil { unsaved[record, default: []].append(continuation) }
                return saves[record] != nil
            }
            if !isBusy { continuation.resume(returning: false) }
        }
    }

    /// Progress from now on. Of somebody who does not listen the oldest is forgotten.
    func listen() -> AsyncStream<Event> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1024)) { listener in
            let number: Int? = lock.withLock {
                if isClosed { return nil }
                listened += 1
                listeners[listened] = listener
                return listened
            }
            guard let number else { return listener.finish() }
            listener.onTermination = { [weak self] _ in self?.leave(number) }
        }
    }

    /// Gives up what is under way; records stay. What must be saved is saved all the same.
    func shutDown() {
        let aborted = lock.withLock {
            isClosed = true
            waiting.keys.forEach { _ = core.cancel(command: $0, unixMs: Clock.unix, monotonicMs: Clock.monotonic) }
            return Array(out.values)
        }
        aborted.forEach { $0.abort() }
        pump()
        rest()
    }

    /// The same, and waits until everything is in the store.
    func close() async {
        shutDown()
        await withCheckedContinuation { continuation in
            lock.withLock { closers.append(continuation) }
            rest()
        }
    }

    var closed: Bool {
        lock.withLock { isClosed }
    }

    private func begin(_ start: (Client) -> UInt32?) -> UInt32? {
        lock.withLock { isClosed ? nil : start(core) }
    }

    private func wait(for command: UInt32, _ continuation: CheckedContinuation<Ended, Never>, _ ticket: Ticket) {
        let ended: Ended? = lock.withLock {
            if self.ended.remove(command) != nil { return take(command) }
            waiting[command] = continuation
            return nil
        }
        if let ended { continuation.resume(returning: ended) }
        // Before its first step is taken, so that a command which is cancelled already saves and sends nothing.
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
    private func pump() {
        var work: [() -> Void] = []
        lock.withLock {
            while step(&work) {}
            while out.count - queue.count < Self.mostAtOnce, let next = queue.first {
                queue.removeFirst()
                if let exchange = out[next] { work.append { exchange.start() } }
            }
        }
        work.forEach { $0() }
    }

    /// Under the lock: takes a step, and says whether there may be more. What is to be done without the lock it adds to `work`.
    private func step(_ work: inout [() -> Void]) -> Bool {
        switch core.poll(unixMs: Clock.unix, monotonicMs: Clock.monotonic) {
        case .save(let id, let record, let data):
            saves[record, default: 0] += 1
            work.append { self.disk.addOperation { self.save(id, record, data) } }
        case .send(let id, let command, let request):
            out[id] = Exchange(request, Self.wanted, transport, headers) { self.answered(id, command, $0) }
            queue.append(id)
        case .completed(let command):
            if let waiter = waiting.removeValue(forKey: command) {
                let ended = take(command)
                work.append { waiter.resume(returning: ended) }
                work.append { self.rest() }
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

    private func take(_ command: UInt32) -> Ended {
        let taken = core.take(command: command) ?? .failed(error: "")
        return Ended(taken: taken, transport: trouble.removeValue(forKey: command), store: storeTrouble)
    }

    private func save(_ id: UInt32, _ record: String, _ data: Data?) {
        let failed = records.keep(record, data)
        let waiters = lock.withLock {
            if failed == nil {
                unkept.remove(record)
                try? core.saved(step: id, unixMs: Clock.unix, monotonicMs: Clock.monotonic)
            } else {
                storeTrouble = failed
                unkept.insert(record)
                try? core.fail(step: id, kind: .store, sent: .never, unixMs: Clock.unix, monotonicMs: Clock.monotonic)
            }
            saves[record] = saves[record].flatMap { $0 > 1 ? $0 - 1 : nil }
            return saves[record] == nil ? unsaved.removeValue(forKey: record) ?? [] : []
        }
        pump()
        waiters.forEach { $0.resume(returning: true) }
        rest()
    }

    private func answered(_ id: UInt32, _ command: UInt32, _ outcome: Exchange.Outcome) {
        lock.withLock {
            out[id] = nil
            queue.removeAll { $0 == id }
            let (unix, monotonic) = (Clock.unix, Clock.monotonic)
            switch outcome {
            case .response(let response):
                trouble[command] = nil
                let headers = response.headers.compactMap { name, value in
                    Self.wanted.contains(name.lowercased()) ? Header(name: name.lowercased(), value: value) : nil
                }
                try? core.respond(
                    step: id, status: UInt16(clamping: response.status), headers: headers, body: response.body,
                    truncated: response.truncated, unixMs: unix, monotonicMs: monotonic)
            case .unfit(let rule):
                try? core.refuseHeaders(step: id, rule: rule, unixMs: unix, monotonicMs: monotonic)
            case .failed(let kind, let sent, let note):
                trouble[command] = waiting[command] == nil ? nil : note
                try? core.fail(step: id, kind: kind, sent: sent, unixMs: unix, monotonicMs: monotonic)
            }
        }
        pump()
        rest()
    }

    private func tell(_ text: String) {
        guard !listeners.isEmpty, let event = try? JSONDecoder().decode(Event.self, from: Data(text.utf8)) else { return }
        listeners.values.forEach { $0.yield(event) }
    }

    private func leave(_ listener: Int) {
        lock.withLock { _ = listeners.removeValue(forKey: listener) }
    }

    /// To wake too early does no harm, so a timer is only ever replaced by an earlier one.
    private func keepTime(_ until: Int64?) {
        guard let until, !isClosed, timer.map({ until < $0.at }) ?? true else { return }
        timer?.task.cancel()
        let task = Task.detached { [weak self] in
            guard (try? await Clock.sleep(until: until)) != nil else { return }
            self?.wake(until)
        }
        timer = (until, task)
    }

    private func wake(_ at: Int64) {
        lock.withLock { if timer?.at == at { timer = nil } }
        pump()
    }

    /// Once all is done, a client that was closed gives its store back.
    private func rest() {
        let isDone = lock.withLock { isClosed && waiting.isEmpty && out.isEmpty && saves.isEmpty }
        if isDone { records.close { self.end() } }
    }

    private func end() {
        let (closers, listeners) = lock.withLock {
            timer?.task.cancel()
            timer = nil
            defer { (self.closers, self.listeners) = ([], [:]) }
            return (self.closers, Array(self.listeners.values))
        }
        listeners.forEach { $0.finish() }
        closers.forEach { $0.resume() }
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
