import Foundation
import Hopline
import Testing

/// A clock that stands still until a test moves it.
final class StandingClock: _Concurrency.Clock, @unchecked Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (one: Instant, other: Instant) -> Bool { one.offset < other.offset }
    }

    private struct Sleeper {
        let until: Instant
        let wake: CheckedContinuation<Void, any Error>
    }

    private let lock = NSLock()
    // The lock guards the following members.
    private var time = Instant(offset: .zero)
    private var sleepers: [UUID: Sleeper] = [:]
    private var cancelled: Set<UUID> = []

    var now: Instant { lock.withLock { time } }
    var minimumResolution: Duration { .milliseconds(1) }

    func advance(by duration: Duration) {
        let woken = lock.withLock {
            time = time.advanced(by: duration)
            let woken = sleepers.filter { $0.value.until <= time }
            woken.keys.forEach { sleepers[$0] = nil }
            return woken.values.map(\.wake)
        }
        woken.forEach { $0.resume() }
    }

    func sleep(until: Instant, tolerance: Duration?) async throws {
        let id = UUID()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (wake: CheckedContinuation<Void, any Error>) in
                let end: Result<Void, any Error>? = lock.withLock {
                    if cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if until <= time { return .success(()) }
                    sleepers[id] = Sleeper(until: until, wake: wake)
                    return nil
                }
                if let end { wake.resume(with: end) }
            }
        } onCancel: {
            let sleeper = lock.withLock {
                let sleeper = sleepers.removeValue(forKey: id)
                if sleeper == nil { cancelled.insert(id) }
                return sleeper
            }
            sleeper?.wake.resume(throwing: CancellationError())
        }
    }
}

@Suite("a client waits by the clock that a test gives it")
struct ClockTests {
    private func agent(_ clock: StandingClock, timeout: Duration, _ transport: Sending) throws -> AgentClient {
        let options = ClientOptions(attempts: 1, timeout: timeout, clock: clock)
        return try AgentClient(apiKey: "canary-key", baseURL: "https://api.example/v1", transport: transport, options: options)
    }

    /// Moves the clock on until the work is done; by how much shows that it was waited for.
    private func passing<Value: Sendable>(_ clock: StandingClock, _ step: Duration, _ work: @escaping @Sendable () async -> Value) async throws -> Value {
        let (working, isDone) = (Task { await work() }, Counter())
        Task {
            _ = await working.value
            isDone.add(1)
        }
        try await until("it is done") {
            clock.advance(by: step)
            return isDone.total == 1
        }
        return await working.value
    }

    @Test("a wait of minutes takes none, and its reads are as far apart as they would be")
    func waits() async throws {
        let (clock, reads) = (StandingClock(), Counter())
        let agent = try agent(clock, timeout: .seconds(86_400), Sending { _ in
            reads.add(1)
            let status = reads.total <= 20 ? "creating" : "active"
            let proxy = #"{"host":"one.example","port":8000,"protocol":"http"}"#
            let body = #"{"success":true,"data":{"session_id":"s-1","status":"\#(status)","proxy":\#(proxy)}}"#
            return Response(status: 200, headers: [(name: "Content-Type", value: "application/json")], body: Data(body.utf8))
        })
        let phase = try await passing(clock, .seconds(1)) { try? await agent.waitSession(sessionId: "s-1", credentials: false, deadline: .seconds(86_400)).phase }
        #expect(phase == .ready)
        #expect(clock.now.offset >= .seconds(20), "it took \(clock.now.offset)")
        await agent.close()
    }

    @Test("a request is late by that clock, and by no other")
    func timeouts() async throws {
        let (clock, sent) = (StandingClock(), Counter())
        let agent = try agent(clock, timeout: .seconds(3600), Sending { _ in
            sent.add(1)
            try await Task.sleep(for: .seconds(86_400))
            throw CancellationError()
        })
        let asking = Task { try await failure { try await agent.getBalance() } }
        try await until("it is sent") { sent.total == 1 }
        let end = try await passing(clock, .seconds(1000)) { await asking.result }
        #expect(try end.get().kind == .unavailable)
        #expect(clock.now.offset >= .seconds(3600), "it took \(clock.now.offset)")
        await agent.close()
    }

    @Test("a client is closed while its clock stands still, and a store's times are those of its clock")
    func closes() async throws {
        let (clock, folder) = (StandingClock(), Folder())
        let store = try FolderStore(folder.path, clock: clock)
        let agent = try AgentClient(
            apiKey: "canary-key", baseURL: "https://api.example/v1", store: store,
            transport: Sending { _ in
                try await Task.sleep(for: .seconds(86_400))
                throw CancellationError()
            }, options: ClientOptions(clock: clock))
        let asking = Task { try await failure { try await agent.getBalance() } }
        await agent.close(timeout: .seconds(1))
        _ = try await asking.value
    }
}
