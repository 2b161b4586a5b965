import Foundation
import Hopline
import Kit
import Testing

/// A task is cancelled in each phase of a purchase; then a new client on the same store goes on with it, to one charge.
@Suite("a task that is cancelled")
struct CancelTests {
    /// Cancels a purchase at a moment, and gives what its task heard.
    private func cancelled(_ agent: AgentClient, at moment: () async throws -> Void) async throws -> HoplineError {
        let task = Task { try await agent.open("job-1", credentials: true) }
        try await moment()
        let began = ContinuousClock.now
        task.cancel()
        let error = try await failure { try await task.value }
        // A send or a wait would have lasted a minute.
        #expect(ContinuousClock.now - began < .seconds(50))
        return error
    }

    /// The purchase of a new client in the end.
    private func resumed(_ sandbox: Sandbox, _ folder: Folder) async throws {
        let agent = try sandbox.client(store: folder.store)
        for result in try await agent.resumeAll() {
            guard case .success(.session(let open)) = result else { throw Unmet("a session is resumed: \(result)") }
            #expect(open.phase == .ready)
        }
        let open = try await agent.open("job-1", credentials: true)
        #expect(open.phase == .ready && open.proxy?.password != nil)
        let state = try await sandbox.state()
        #expect(state.charges.count == 1 && state.sessions.count == 1)
        await agent.close()
    }

    @Test("before it begins: nothing is sent and nothing is stored, not even for a moment")
    func beforeSave() async throws {
        let (sandbox, folder, saves) = (try await Sandbox("--provisioning-ms", "100"), Folder(), Counter())
        let agent = try sandbox.client(store: Watched(folder.store) { if $0 == "put" { saves.add(1) } })
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await agent.open("job-1")
        }
        task.cancel()
        let error = try await failure { try await task.value }
        // The client has not yet read the record of the intent.
        #expect(error.kind == .cancelled && error.effect == .unknown && error.intent == "job-1", "\(error.debugDescription)")
        #expect(try await sandbox.charges() == 0)
        #expect(try folder.records.isEmpty && saves.total == 0)
        await agent.close()
        try await resumed(sandbox, folder)
    }

    @Test("while it is stored: nothing was sent, and the record is gone again")
    func whileSaving() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "100"), Folder())
        let (gate, puts) = (Gate(), Counter())
        let store = Watched(try folder.store) { call in
            if call == "put" { puts.add(1) }
            if puts.total == 1 { await gate.pass() }
        }
        let agent = try sandbox.client(store: store)
        let task = Task { try await agent.open("job-1") }
        try await until("a put is under way") { puts.total == 1 }
        task.cancel()
        await gate.open()
        let error = try await failure { try await task.value }
        #expect(error.kind == .cancelled && error.effect == .none)
        #expect(try folder.records.isEmpty)
        #expect(try await sandbox.charges() == 0)
        await agent.close()
        try await resumed(sandbox, folder)
    }

    @Test("while the request is out, before or after its effect: it is in doubt, and kept", arguments: [false, true])
    func whileSending(_ hasEffect: Bool) async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "100"), Folder())
        // A server that answers nothing stands for a request that was lost on its way.
        let lost = try Wire()
        let transport = Redirected(to: hasEffect ? nil : lost.url, from: sandbox.ready.agent_url)
        if hasEffect { try await sandbox.fault("create_session", ["kind": "delay", "ms": 60_000]) }
        let agent = try sandbox.client(store: folder.store, transport: transport)
        let error = try await cancelled(agent) {
            try await until("the request is out") { try await hasEffect ? sandbox.charges() == 1 : lost.seen.count == 1 }
        }
        #expect(error.kind == .cancelled && error.effect == .unknown && error.record != nil, "\(error.debugDescription)")
        #expect(try folder.records.count == 1)
        #expect(try await agent.saved().map(\.holds) == [.inDoubt])
        await agent.close()
        try await sandbox.control("clock", ["advance_ms": 60_000])
        try await resumed(sandbox, folder)
    }

    @Test("while the session is waited for, and while its credentials are read: it was bought, and its id is known", arguments: ["poll", "credentials"])
    func whilePolling(_ phase: String) async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", phase == "poll" ? "60000" : "0"), Folder())
        if phase == "credentials" { try await sandbox.fault("get_session", ["kind": "delay", "ms": 60_000]) }
        let agent = try sandbox.client(store: folder.store)
        let error = try await cancelled(agent) {
            try await until("it is bought") { try await sandbox.charges() == 1 }
            try await until("it is known") { try await agent.saved().map(\.holds) == [.session] }
            if phase == "credentials" { try await until("they are asked for") { try await sandbox.times("get_session") > 0 } }
        }
        #expect(error.kind == .cancelled && error.effect == .done || error.sessionId != nil, "\(error.debugDescription)")
        #expect(try await agent.saved().map(\.holds) == [.session])
        await agent.close()
        try await sandbox.control("clock", ["advance_ms": 60_000])
        try await resumed(sandbox, folder)
    }

    /// Cancels a task at one of the moments that are passed.
    final class Moments: @unchecked Sendable {
        private let lock = NSLock()
        private var left: Int
        private var cancel: (@Sendable () -> Void)?

        init(_ left: Int) {
            self.left = left
        }

        func arm(_ cancel: @escaping @Sendable () -> Void) {
            lock.withLock { self.cancel = cancel }
        }

        var isArmed: Bool { lock.withLock { cancel != nil } }
        /// True if the moment has not come.
        var isLeft: Bool { lock.withLock { left >= 0 } }

        func passed() {
            let cancel = lock.withLock {
                left -= 1
                return left == -1 ? self.cancel : nil
            }
            cancel?()
        }
    }

    @Test("at any moment, over a transport that does not heed it: what was sent is never said not to be")
    func everyMoment() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        var (moment, effects) = (0, Set<HoplineError.Effect>())
        while true {
            let (folder, moments, sends) = (Folder(), Moments(moment), Counter())
            let transport = Sending { request in
                moments.passed()
                if request.method == "POST" { sends.add(1) }
                // A task of its own, which nobody cancels.
                return try await Task.detached {
                    let response = try await network.send(request)
                    moments.passed()
                    return response
                }.value
            }
            let agent = try sandbox.client(store: Watched(folder.store) { _ in moments.passed() }, transport: transport)
            let task = Task {
                while !moments.isArmed { await Task.yield() }
                return try await agent.open("job-1", credentials: true)
            }
            moments.arm { task.cancel() }
            do {
                _ = try await task.value
            } catch let error as HoplineError {
                effects.insert(error.effect)
                #expect(error.kind == .cancelled, "moment \(moment): \(error.debugDescription)")
                #expect(error.effect != .none || sends.total == 0, "moment \(moment): \(error.debugDescription)")
            }
            await agent.close()
            // A purchase that was reported as not done is made anew here, and a charge of its own shows.
            let again = try sandbox.client(store: folder.store)
            #expect(try await again.open("job-1", credentials: true).phase == .ready)
            await again.close()
            moment += 1
            #expect(try await sandbox.charges() == moment, "moment \(moment - 1)")
            if moments.isLeft { break }
        }
        #expect(moment >= 12 && effects == [.none, .unknown, .done], "\(moment), \(effects)")
    }

    @Test("lets others who wait for the same intent go on, and other purchases too")
    func others() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        try await sandbox.fault("create_session", ["kind": "delay", "ms": 1500])
        let first = Task { try await agent.buy("job-1") }
        let second = Task { try await agent.buy("job-1") }
        try await until("the request is out") { try await sandbox.charges() == 1 }
        let other = Task { try await agent.buy("job-2") }
        first.cancel()
        let (bought, more) = (try await second.value, try await other.value)
        #expect(bought.sessionId != more.sessionId)
        _ = await first.result
        #expect(try await sandbox.charges() == 2)
    }

    @Test("a client that is closed gives up what is under way, and says so")
    func closed() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "60000"), Folder())
        let agent = try sandbox.client(store: folder.store)
        let task = Task { try await agent.open("job-1") }
        try await until("it is bought") { try await sandbox.charges() == 1 }
        await agent.close()
        let error = try await failure { try await task.value }
        #expect(error.kind == .cancelled)
        for refused in [try await failure { try await agent.open("job-1") }, try await failure { try await agent.saved() }] {
            #expect(refused.kind == .misuse && refused.effect == .none && refused.message.contains("closed"))
        }
        try await sandbox.control("clock", ["advance_ms": 60_000])
        try await resumed(sandbox, folder)
    }
}

/// Sends what goes to one address to another.
struct Redirected: Transport {
    let transport = network
    let to: String?
    let from: String

    func send(_ request: Request) async throws -> Response {
        guard let to, request.method == "POST" else { return try await transport.send(request) }
        var other = request
        other.url = request.url.replacingOccurrences(of: from, with: to)
        return try await transport.send(other)
    }
}
