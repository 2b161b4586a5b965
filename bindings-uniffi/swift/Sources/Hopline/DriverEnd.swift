import Foundation

internal import HoplineCore

/// How a driver lets go of its store: for good when it closes, or until it wakes.
extension Driver {
    /// Cancels what is under way; records stay. Once all of it has ended, or the time is up, the store is given back.
    func shutDown(within timeout: Duration) {
        let aborted: [Exchange] = lock.withLock {
            guard state == .open else { return [] }
            (state, isSuspended) = (.closing, false)
            waiting.keys.forEach { _ = core.cancel(command: $0, unixMs: Clock.unix, monotonicMs: Clock.monotonic) }
            deadline = Task.detached {
                guard (try? await Task.sleep(for: timeout, clock: .continuous)) != nil else { return }
                self.giveUp()
            }
            return Array(out.values)
        }
        aborted.forEach { $0.abort() }
        pump()
    }

    /// The same, and waits for its end.
    func close(within timeout: Duration) async {
        shutDown(within: timeout)
        await withCheckedContinuation { continuation in
            let isOver = lock.withLock {
                if state < .closed { closers.append(continuation) }
                return state == .closed
            }
            if isOver { continuation.resume() }
        }
    }

    /// Once all is done, a client that is closing gives its store back.
    func rest() {
        let isDone = lock.withLock {
            let isDone = state == .closing && waiting.isEmpty && out.isEmpty && calls.isEmpty && asking.isEmpty
            if isDone { state = .leaving }
            return isDone
        }
        guard isDone else { return }
        Task.detached {
            await self.store?.close()
            self.end()
        }
    }

    /// The time is up: what the store has not answered may be done or not.
    private func giveUp() {
        let (aborted, waiters) = lock.withLock {
            if state == .closing {
                state = .leaving
                Task.detached { await self.store?.close() }
            }
            refuse(Array(asking))
            asking = []
            return (Array(out.values), idlers())
        }
        aborted.forEach { $0.abort() }
        waiters.forEach { $0.resume() }
        pump()
        end()
    }

    private func end() {
        let (closers, listeners) = lock.withLock {
            state = .closed
            timer?.task.cancel()
            deadline?.cancel()
            (timer, deadline) = (nil, nil)
            defer { (self.closers, self.listeners) = ([], [:]) }
            return (self.closers, Array(self.listeners.values))
        }
        listeners.forEach { $0.finish() }
        closers.forEach { $0.resume() }
    }

    /// Lets go of all names, and asks the store nothing more until it wakes.
    func suspend() async throws {
        guard let store else { return }
        let task = lock.withLock {
            if !isSuspended { suspending = Task { try await self.letGo(store) } }
            isSuspended = true
            return suspending
        }
        try await task?.value
    }

    private func letGo(_ store: StoreHandle) async throws {
        await withCheckedContinuation { continuation in
            lock.withLock { storeIsIdle.append(continuation) }
            lock.withLock { idlers() }.forEach { $0.resume() }
        }
        defer { lose(nil) }
        try await store.release()
    }

    /// Goes on with what was to be done while it was suspended.
    func wake() async {
        _ = await lock.withLock { suspending }?.result
        lock.withLock { (isSuspended, suspending) = (false, nil) }
        pump()
    }

    /// These names are not this client's any more; none of them is, where none are given.
    func lose(_ names: [String]?) {
        var work: [() -> Void] = []
        lock.withLock {
            // What is taken after this knows of it.
            drain(&work)
            losses += 1
            let (unix, monotonic) = (Clock.unix, Clock.monotonic)
            core.lost(names: names, unixMs: unix, monotonicMs: monotonic)
            for id in queue {
                out[id] = nil
                try? core.fail(step: id, kind: .late, sent: .never, unixMs: unix, monotonicMs: monotonic)
            }
            queue = []
            // Calls wait here only while it is suspended, when it owns nothing.
            calls.removeAll { step in
                guard let answer = step.call.answerWithoutNames else { return false }
                try? core.stored(step: step.id, answer: answer, unixMs: unix, monotonicMs: monotonic)
                return true
            }
        }
        work.forEach { $0() }
        pump()
    }

    /// Under the lock: who waits for an idle store, if it is.
    func idlers() -> [CheckedContinuation<Void, Never>] {
        guard asking.isEmpty else { return [] }
        defer { storeIsIdle = [] }
        return storeIsIdle
    }
}

extension StoreCall {
    /// What a client is answered that owns nothing; nil where only the store can say.
    fileprivate var answerWithoutNames: StoreAnswer? {
        switch self {
        case .put, .delete: .lost
        case .release: .done
        case .claim, .list, .spend: nil
        }
    }
}
