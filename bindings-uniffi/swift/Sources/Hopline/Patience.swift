import Foundation

/// Makes calls that hold nobody for longer than they may. A call that takes longer stays out and may still be done, so none is made before it
/// has ended: that one could be done first.
final class Patience: Sendable {
    /// The longest wait for a call; tests shorten it.
    @TaskLocal static var longest: Duration = .seconds(30)

    private let longest = Patience.longest
    private let lock = NSLock()
    /// The calls that are late; the lock guards them.
    nonisolated(unsafe) private var late: [UUID: Task<Void, Never>] = [:]
    /// True once a call has waited in vain for a late one: the next ones don't wait.
    nonisolated(unsafe) private var isStuck = false

    /// Returns what the call returns, or else the reason why there is nothing: whether the call was surely not made.
    func within<Value: Sendable>(_ call: @escaping @Sendable () async -> Value) async -> Result<Value, Impatience> {
        guard await lateOnesEnd() else { return .failure(Impatience(isMade: false, said: "an earlier call of the store has not ended")) }
        let calling = Task.detached { await call() }
        if let came = await come(within: longest, of: { await calling.value }) { return .success(came) }
        let id = UUID()
        lock.withLock {
            late[id] = Task.detached {
                _ = await calling.value
                self.end(id)
            }
        }
        return .failure(Impatience(isMade: true, said: "the call did not end within \(longest)"))
    }

    private func lateOnesEnd() async -> Bool {
        let (tasks, isStuck) = lock.withLock { (Array(late.values), self.isStuck) }
        if tasks.isEmpty { return true }
        let ended: Void? = isStuck ? nil : await come(within: longest) { for task in tasks { await task.value } }
        if ended != nil { return true }
        return lock.withLock {
            self.isStuck = !late.isEmpty
            return !self.isStuck
        }
    }

    private func end(_ id: UUID) {
        lock.withLock {
            late[id] = nil
            if late.isEmpty { isStuck = false }
        }
    }
}

/// A call that took too long, or was not made for one that did.
struct Impatience: Error {
    let isMade: Bool
    let said: String
}

/// The result of some work; nil if it takes longer.
func come<Value: Sendable>(within limit: Duration, of work: @escaping @Sendable () async -> Value) async -> Value? {
    let (came, first) = AsyncStream<Value?>.makeStream()
    Task.detached { _ = first.yield(await work()) }
    let timer = Task.detached {
        try? await Clock.sleep(for: limit)
        _ = first.yield(nil)
    }
    defer { timer.cancel() }
    return await came.first { _ in true } ?? nil
}
