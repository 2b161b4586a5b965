import Foundation

internal import HoplineCore

/// How a driver lets go of its store: for good when it closes, or until it wakes.
extension Driver {
    /// Cancels what is under way, but for what ends sessions; records stay. Once all of it has ended, or the time is up, the store is given back.
    func shutDown(within timeout: Duration) {
        let aborted: [Exchange] = act {
            guard state == .open else { return [] }
            (state, isSuspended) = (.closing, false)
            commandsToBreakOff.forEach { cancel($0) }
            deadline = Task.detached {
                guard (try? await Task.sleep(for: timeout, clock: .continuous)) != nil else { return }
                self.giveUp()
            }
            return out.values.filter { !$0.endsSession }
        }
        aborted.forEach { $0.abort() }
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

    /// The time is up: what the store has not answered may be done or not, and whatever still waits is cancelled, so that core says what became of it.
    private func giveUp() {
        let aborted = act {
            if state == .closing {
                state = .leaving
                Task.detached { await self.store?.close() }
            }
            refuse(Array(asking.keys))
            asking = [:]
            waiting.keys.forEach { cancel($0) }
            return Array(out.values)
        }
        aborted.forEach { $0.abort() }
        end()
    }

    private func end() {
        let (closers, listeners, unheard) = lock.withLock {
            state = .closed
            timer?.task.cancel()
            deadline?.cancel()
            (timer, deadline) = (nil, nil)
            defer { (self.closers, self.listeners, waiting) = ([], [:], [:]) }
            return (self.closers, Array(self.listeners.values), Array(waiting.values))
        }
        unheard.forEach { $0.resume(returning: Ended(taken: nil, transport: nil, store: nil)) }
        listeners.forEach { $0.finish() }
        closers.forEach { $0.resume() }
    }

    /// Lets go of all names, and asks the store nothing more until it wakes.
    func suspend(within timeout: Duration) async throws {
        guard let store else { return }
        let task = lock.withLock {
            let task = Task { try await letGo(store, within: timeout / 2) }
            if state == .open { (isSuspended, turns, suspending) = (true, turns + 1, task) }
            return task
        }
        try await task.value
    }

    /// Waits that long at most for what the store is asked, and that long for it to let go, which may come later all the same.
    private func letGo(_ store: StoreHandle, within limit: Duration) async throws {
        // What was not sent yet never is, and once more for what came meanwhile.
        lose(nil)
        let calls = lock.withLock {
            releases += 1
            return Array(asking.values)
        }
        let isIdle: Void? = await come(within: limit) { for call in calls { await call.value } }
        let released = await come(within: limit) {
            defer { self.lose(nil, released: true) }
            return await store.release()
        }
        guard isIdle != nil, let released else { throw StoreHandle.notReleased("it did not answer in time") }
        try released.get()
    }

    /// What comes of something; nil where that takes longer.
    private func come<Value: Sendable>(within limit: Duration, of work: @escaping @Sendable () async -> Value) async -> Value? {
        let (came, first) = AsyncStream<Value?>.makeStream()
        Task.detached { _ = first.yield(await work()) }
        let timer = Task.detached {
            try? await Task.sleep(for: limit, clock: .continuous)
            _ = first.yield(nil)
        }
        defer { timer.cancel() }
        return await came.first { _ in true } ?? nil
    }

    /// Goes on with what was to be done while it was suspended, unless it is to be suspended again by then.
    func wake() async {
        let (suspending, turn) = lock.withLock {
            turns += 1
            return (self.suspending, turns)
        }
        _ = await suspending?.result
        act { if turns == turn { isSuspended = false } }
    }

    /// These names are not this client's any more; none of them is, where none are given.
    func lose(_ names: [String]?, released: Bool = false) {
        act {
            // What is taken after this knows of it.
            move(.go)
            losses += 1
            if released { releases -= 1 }
            move(.lost(names: names))
            let unsent = queue
            queue = []
            for id in unsent {
                out[id] = nil
                move(.fail(step: id, kind: .late, sent: .never))
            }
            // Calls wait here only while it is suspended, when it owns nothing.
            let unasked = calls
            calls = unasked.filter { $0.call.answerWithoutNames == nil }
            for step in unasked {
                if let answer = step.call.answerWithoutNames { move(.stored(step: step.id, answer: answer)) }
            }
        }
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
