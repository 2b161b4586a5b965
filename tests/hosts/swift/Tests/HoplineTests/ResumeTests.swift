import Foundation
import Hopline
import Kit
import Testing

@Suite("going on with what was begun")
struct ResumeTests {
    @Test("an intent is resumed by its name, with options of its own, and one that stands for nothing gives nothing")
    func intents() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let first = try sandbox.client(store: folder.store)
        #expect(try await first.resume(intent: "job-1") == nil)
        let open = try await first.open("job-1")
        #expect(open.proxy?.password == nil)
        try await sandbox.fault("create_session", ["kind": "drop_after"])
        let doubt = try await failure { try await first.buy("job-2", options: CallOptions(attempts: 1)) }
        #expect(doubt.kind == .inDoubt)
        let busy = try await failure { try await sandbox.client(store: folder.store).resume(intent: "job-1") }
        #expect(busy.kind == .busy && busy.effect == .unknown && busy.sessionId == open.sessionId)
        await first.close()
        let second = try sandbox.client(store: folder.store)
        guard case .session(let again)? = try await second.resume(intent: "job-1", credentials: true) else { throw Unmet("it is a session") }
        #expect(again.sessionId == open.sessionId && again.phase == .ready && again.proxy?.password != nil)
        guard case .session(let settled)? = try await second.resume(intent: "job-2", deadline: .seconds(30)) else { throw Unmet("it is a session") }
        #expect(settled.sessionId != open.sessionId)
        #expect(try await sandbox.charges() == 2)
        for nothing in ["", "job-3"] { #expect(try await second.resume(intent: nothing) == nil) }
        let key = try await failure { try await second.resume(intent: "job-1", options: CallOptions(idempotencyKey: "k")) }
        #expect(key.kind == .invalid && key.field == "idempotencyKey")
    }

    @Test("an intent whose session is over is an error that says so, by its start, its name and its record")
    func ended() async throws {
        let (sandbox, folder) = (try await Sandbox("--provisioning-ms", "0"), Folder())
        let agent = try sandbox.client(store: folder.store)
        let open = try await agent.open("job-1")
        try await open.terminate()
        let record = try #require(try await agent.saved().first?.record)
        for error in [
            try await failure { try await agent.open("job-1") }, try await failure { try await agent.resume(intent: "job-1") },
            try await failure { try await agent.resume(record) },
        ] {
            #expect(error.kind == .ended && error.effect == .none && error.advice == .newIntent, "\(error.debugDescription)")
            #expect(error.sessionId == open.sessionId && error.record == record)
        }
        #expect(try await agent.forget(record))
        try await agent.open("job-1")
        #expect(try await sandbox.charges() == 2)
    }
}
