import Foundation

internal import HoplineCore

/// Releases a driver's store: for good when it closes, or until it wakes.
extension Driver {
    /// Cancels everything that is under way, except terminations; records stay. Once all of it has ended, or the time is up, the store is
    /// released.
    func shutDown(within timeout: Duration) {
        let aborted: [Exchange] = act {
            guard state == .open else { return [] }
            (state, isSuspended) = (.closing, false)
            commandsToBreakOff.forEach { cancel($0) }
            deadline = Task.detached {
                guard (try? await Clock.sleep(for: timeout)) != nil else { return }
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

    /// Releases the store of a closing client once all is done.
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

    /// Ends the wait when the time is up: a store call without an answer may or may not have been done, and waiting commands are cancelled,
    /// so that the core reports their effect.
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

    /// Releases all names, and makes no call of the store until the client wakes.
    func suspend(within timeout: Duration) async throws {
        guard let store else { return }
        let task = lock.withLock {
            let task = Task { try await letGo(store, within: timeout / 2) }
            if state == .open { (isSuspended, turns, suspending) = (true, turns + 1, task) }
            return task
        }
        try await task.value
    }

    /// Waits at most that long for the store's calls, and that long for its release, which may come later all the same.
    private func letGo(_ store: StoreHandle, within limit: Duration) async throws {
        // Waiting requests are never sent, and once more for those that came meanwhile.
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

    /// Continues the work that waited during the suspension, unless the client is to be suspended again by then.
    func wake() async {
        let (suspending, turn) = lock.withLock {
            turns += 1
            return (self.suspending, turns)
        }
        _ = await suspending?.result
        act { if turns == turn { isSuspended = false } }
    }

    /// Reports that these names are not this client's any more; all of them, if none are given.
    func lose(_ names: [String]?, released: Bool = false) {
        act {
            // Later steps take this into account.
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
            // Calls wait here only during a suspension, when the client owns nothing.
            let unasked = calls
            calls = unasked.filter { $0.call.answerWithoutNames == nil }
            for step in unasked {
                if let answer = step.call.answerWithoutNames { move(.stored(step: step.id, answer: answer)) }
            }
        }
    }
}

extension StoreCall {
    /// The answer for a client that owns nothing; nil if only the store can answer.
    fileprivate var answerWithoutNames: StoreAnswer? {
        switch self {
        case .put, .delete: .lost
        case .release: .done
        case .claim, .list, .spend: nil
        }
    }
}
