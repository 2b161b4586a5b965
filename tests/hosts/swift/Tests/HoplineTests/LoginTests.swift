import Foundation
import Hopline
import Kit
import Testing

@Suite("the login of the reseller API")
struct LoginTests {
    @Test("tasks that begin at once share one login")
    func shared() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        #expect(reseller.token == nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 { group.addTask { try await reseller.getCurrentBalance() } }
            try await group.waitForAll()
        }
        #expect(reseller.token != nil)
        let (logins, reads) = try await (sandbox.times("login"), sandbox.times("get_current_balance"))
        #expect(logins == 1 && reads == 40)
    }

    @Test("a token that is refused is renewed once for all who use it, and a write is sent once more, since it was not done")
    func renewed() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller()
        try await reseller.getCurrentBalance()
        let first = reseller.token
        try await sandbox.control("tokens", ["expire": true])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<16 { group.addTask { try await reseller.listSubUsers() } }
            try await group.waitForAll()
        }
        #expect(reseller.token != nil && reseller.token != first)
        #expect(try await sandbox.times("login") == 2)
        try await sandbox.control("tokens", ["expire": true])
        #expect(try await reseller.createUser(username: "sub-user", password: "a-password").username == "sub-user")
        #expect(try await sandbox.state().backend.users.map(\.username) == ["sub-user"])
        #expect(try await sandbox.times("login") == 3)
    }

    @Test("credentials that are refused are not sent again, until somebody knows better")
    func wrong() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller(password: "canary-password")
        let events = reseller.events()
        for _ in 0..<3 {
            let error = try await failure { try await reseller.getCurrentBalance() }
            #expect(error.kind == .refused && error.effect == .none && error.advice == .reauthenticate, "\(error.debugDescription)")
            #expect(!error.debugDescription.contains("canary"))
        }
        #expect(reseller.token == nil)
        #expect(try await sandbox.times("login") == 1)
        let login = try await reseller.login(username: Secret(sandbox.ready.username), password: Secret(sandbox.ready.password))
        #expect(login.token == reseller.token && login.user?.username == sandbox.ready.username)
        try await reseller.getCurrentBalance()
        #expect(try await sandbox.times("login") == 2)
        await reseller.close()
        for await event in events { #expect(!"\(event)".contains("canary")) }
    }

    @Test("a client starts from the token of another, and has no other where nobody can log in")
    func given() async throws {
        let sandbox = try await Sandbox()
        let first = try sandbox.reseller()
        try await first.getCurrentBalance()
        let token = try #require(first.token)
        #expect("\(token)" == "[redacted]")
        let second = try ResellerClient(baseURL: sandbox.ready.backend_url, token: token)
        try await second.getCurrentBalance()
        #expect(second.token == token)
        try await sandbox.control("tokens", ["expire": true])
        let error = try await failure { try await second.getCurrentBalance() }
        #expect(error.status == 401 && error.advice == .reauthenticate)
        #expect(try await sandbox.times("login") == 1)
    }

    @Test("a code that means a refused token may be another")
    func codes() async throws {
        let sandbox = try await Sandbox()
        let reseller = try sandbox.reseller(tokenCodes: ["40101"])
        try await reseller.getCurrentBalance()
        try await sandbox.fault("get_current_balance", ["kind": "error", "code": "40101", "status": 200])
        try await reseller.getCurrentBalance()
        #expect(try await sandbox.times("login") == 2)
    }

    @Test("what can log nobody in is refused by its name and never repeated")
    func misuse() async throws {
        let anywhere = "https://api.example/api"
        let bad: [(String, HoplineError)] = [
            ("password", try await failure { try ResellerClient(username: "canary", baseURL: anywhere) }),
            ("username", try await failure { try ResellerClient(password: "canary", baseURL: anywhere) }),
            ("username", try await failure { try ResellerClient(username: "", password: "canary", baseURL: anywhere) }),
            ("baseURL", try await failure { try ResellerClient(username: "canary", password: "canary", baseURL: "nowhere") }),
            ("baseURL", try await failure { try ResellerClient(token: "canary") }),
        ]
        for (field, error) in bad {
            #expect(error.kind == .invalid && error.field == field && !error.debugDescription.contains("canary"), "\(error.debugDescription)")
        }
    }
}
