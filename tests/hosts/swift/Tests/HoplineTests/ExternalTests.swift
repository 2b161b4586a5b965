import Foundation
@testable import Hopline
import HoplineCore
import Kit
import Testing

/// JSON texts that nobody here wrote, as answers. They lie beside the repository; where they are missing the test is skipped.
@Suite("JSON texts of others")
struct ExternalTests {
    static let suite = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../../../shared/external/json-test-suite/test_parsing")
        .standardized

    /// Answers everything so.
    struct Same: Transport {
        let body: Data

        func send(_ request: Hopline.Request) async throws -> Response {
            Response(status: 200, headers: [("content-type", "application/json")], body: body)
        }
    }

    /// The core's result for a body, without the package: `answered`, or the kind of the failure.
    private func core(_ body: Data) throws -> String {
        let core = try Client(options: #"{"base_url":"https://api.example/v1","api_key":"key"}"#, entropy: Data(count: 16))
        let started = core.advance(
            what: .start(operation: "get_balance", params: "{}", options: #"{"attempts":1}"#), body: Data(), unixMs: 0, monotonicMs: 0)
        for case .send(let id, _, _) in started.steps {
            let headers = [Header(name: "content-type", value: "application/json")]
            let answer = Move.respond(step: id, status: 200, headers: headers, truncated: false)
            for case .completed(_, let result?) in core.advance(what: answer, body: body, unixMs: 0, monotonicMs: 0).steps {
                guard case .failed(let error) = result else { return "answered" }
                return HoplineError(packed: error).kind.rawValue
            }
        }
        throw Unmet("a read needs one send")
    }

    private func package(_ body: Data) async throws -> String {
        do {
            try await client("https://api.example/v1", transport: Same(body: body)).getBalance()
            return "answered"
        } catch let error as HoplineError {
            return error.kind.rawValue
        }
    }

    @Test(
        "every JSON text is accepted or refused as the core does",
        .enabled(if: FileManager.default.fileExists(atPath: suite.path), "there is no JSON test suite beside the repository"))
    func verdicts() async throws {
        let files = try FileManager.default.contentsOfDirectory(at: Self.suite, includingPropertiesForKeys: nil).filter { $0.pathExtension == "json" }
        var counted: [Character: Int] = [:]
        for file in files {
            let (text, name) = (try Data(contentsOf: file), file.lastPathComponent)
            let body = Data(#"{"success":true,"data":"#.utf8) + text + Data("}".utf8)
            let (expected, came) = (try core(body), try await package(body))
            #expect(came == expected, "\(name): \(came)")
            if name.hasPrefix("y") { #expect(came == "answered", "\(name): \(came)") }
            if name.hasPrefix("n") { #expect(came == "protocol", "\(name): \(came)") }
            let bare = try await package(text)
            #expect(try core(text) == "protocol" && bare == "protocol", "\(name): \(bare)")
            counted[name.first ?? "?", default: 0] += 1
        }
        print("JSON texts: \(counted)")
        #expect(Set(counted.keys) == ["y", "n", "i"])
    }
}
