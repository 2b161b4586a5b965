import Foundation
import Hopline
import Kit
import Testing

@Suite("TLS")
struct TlsTests {
    /// The system decides on trust: Apple's keychain, or the file that libcurl was built with.
    @Test("at a service whose certificate is refused nothing is bought, and a purchase is in doubt")
    func refused() async throws {
        let folder = Folder()
        let sandbox = try await Sandbox("--tls", folder.path)
        let ready = sandbox.ready
        for url in [ready.tls_wrong_name, ready.tls_expired, ready.tls_unknown_ca] {
            let agent = try AgentClient(apiKey: Secret(ready.api_key), baseURL: #require(url), transport: network, options: ClientOptions(attempts: 1))
            let error = try await failure { try await agent.createSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-17") }
            // URLSession may go over to a second connection by itself, so what it says of that one's certificate does not tell what the first one sent.
            #expect(error.kind == .inDoubt && error.effect == .unknown, "\(error.debugDescription)")
            #expect(try await agent.saved().count == 1)
            await agent.close()
        }
        #expect(try await sandbox.charges() == 0)
    }
}
