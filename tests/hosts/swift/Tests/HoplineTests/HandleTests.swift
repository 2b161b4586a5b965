import Foundation
import Hopline
import Kit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("the handle of a session")
struct HandleTests {
    @Test("shows what any call has read, for all who have one, and counts its exits")
    func live() async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let open = try await agent.open("job-1", credentials: true)
        guard case .session(let again)? = try await agent.resume(intent: "job-1") else { throw Unmet("the intent stands for a session") }
        let first = try #require(open.proxy)
        #expect(first.password != nil && again.proxy == first, "what a read did not ask for is as it was")
        let rotated = try await open.rotate()
        #expect(rotated.proxy?.password != nil && rotated.proxy?.password != first.password, "credentials that are known are read again")
        #expect(again.proxy == rotated.proxy && again.generation == 1 && open.generation == 1)
        let read = try await again.refresh()
        #expect(read.proxy == rotated.proxy && open.session.requestId == read.requestId && open.generation == 1)
        try await agent.rotateSession(sessionId: open.sessionId)
        #expect(open.generation == 2 && open.proxy?.password == nil, "a new exit has new credentials, which nobody has read")
        try await open.refresh(includeCredentials: true)
        #expect(open.generation == 2 && open.proxy?.password != nil)
        try await open.terminate()
        #expect(again.phase == .ended && open.phase == .ended)
        await agent.close()
    }

    @Test("is told of an error of an HTTP client, which may be the proxy's or the target's")
    func seen() async throws {
        let behind = { (code: Int) in
            URLError(.networkConnectionLost, userInfo: [NSUnderlyingErrorKey: NSError(domain: "kCFErrorDomainCFNetwork", code: code)])
        }
        let cases: [(any Error, Seen)] = [
            (URLError(.timedOut), .timeout), (URLError(.cannotConnectToHost), .proxy), (URLError(.cannotFindHost), .proxy),
            (URLError(.networkConnectionLost), .unknown), (URLError(.secureConnectionFailed), .target), (behind(311), .proxy), (behind(122), .proxy),
            (behind(2), .unknown), (POSIXError(.ECONNREFUSED), .proxy), (POSIXError(.ETIMEDOUT), .timeout), (POSIXError(.EPIPE), .unknown),
            (Named("HTTPClientError.proxyAuthenticationRequired"), .proxy), (Named("HTTPClientError.readTimeout"), .timeout), (Unmet("it"), .unknown), (Unmet("it timed out"), .timeout),
        ]
        for (error, seen) in cases { #expect(Seen(error) == seen, "\(error)") }

        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let agent = try sandbox.client()
        let open = try await agent.open()
        guard case .unsure? = try await open.observe(URLError(.timedOut)) else { throw Unmet("one timeout may have any cause") }
        #expect(try await open.observe(URLError(.timedOut)) == .rotate(.timeout))
        guard case .unsure? = try await open.observe(URLError(.cannotConnectToHost)) else { throw Unmet("to rotate does not mend a proxy") }
        await agent.close()
    }

    /// An error that prints as this.
    private struct Named: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }
}
