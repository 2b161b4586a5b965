import Foundation
@testable import Hopline
import HoplineCore
import Kit
import Testing

/// A send is stepped through by hand: what was never handed to the transport was never sent, and nothing else is said to be.
@Suite("one send")
struct ExchangeTests {
    private func request(timeoutMs: UInt32 = 60_000, sendBefore: Int64 = .max) -> HoplineCore.Request {
        HoplineCore.Request(
            method: "POST", url: "https://api.example/v1/sessions", headers: [], body: nil, timeoutMs: timeoutMs, sendBefore: sendBefore,
            endsSession: sendBefore == .max, maxBody: 1000)
    }

    /// The result of a send, as `kind sent`, and the number of sends.
    private final class Told: @unchecked Sendable {
        let sends = Counter()
        private let lock = NSLock()
        private var outcomes: [String] = []

        var all: [String] { lock.withLock { outcomes } }

        func hear(_ outcome: Exchange.Outcome) {
            let said =
                switch outcome {
                case .response(let response): "\(response.status)"
                case .failed(let kind, let sent, _): "\(kind) \(sent)"
                case .unfit(let rule): rule
                }
            lock.withLock { outcomes.append(said) }
        }
    }

    /// A send over a transport that answers when the gate opens, whether its task is cancelled or not.
    private func exchange(_ told: Told, _ gate: Gate, timeoutMs: UInt32 = 60_000, headers: (@Sendable () async throws -> [String: Secret])? = nil) -> Exchange {
        let transport = Sending { _ in
            told.sends.add(1)
            await gate.pass()
            return Response(status: 200)
        }
        return Exchange(request(timeoutMs: timeoutMs), [], transport, Headers(given: headers), { true }) { told.hear($0) }
    }

    @Test("that is aborted before it starts never starts")
    func beforeStart() async throws {
        let (told, gate) = (Told(), Gate())
        let exchange = exchange(told, gate)
        exchange.abort()
        exchange.start()
        try await Task.sleep(for: .milliseconds(200))
        #expect(told.all == ["aborted never"] && told.sends.total == 0)
    }

    @Test("that is aborted while its headers are awaited never reaches the transport")
    func beforeHandOver() async throws {
        let (told, gate, asked, renewed) = (Told(), Gate(), Counter(), Gate())
        let exchange = exchange(told, gate, headers: {
            asked.add(1)
            await renewed.pass()
            return ["authorization": "canary"]
        })
        exchange.start()
        try await until("the headers are asked for") { asked.total == 1 }
        exchange.abort()
        await renewed.open()
        try await Task.sleep(for: .milliseconds(200))
        #expect(told.all == ["aborted never"] && told.sends.total == 0)
    }

    @Test("that the transport has is aborted as one that may have been sent, whatever comes of it later")
    func afterHandOver() async throws {
        let (told, gate) = (Told(), Gate())
        let exchange = exchange(told, gate)
        exchange.start()
        try await until("the transport has it") { told.sends.total == 1 }
        exchange.abort()
        await gate.open()
        try await Task.sleep(for: .milliseconds(200))
        #expect(told.all == ["aborted maybe"])
    }

    @Test("that was answered is not aborted any more")
    func answered() async throws {
        let (told, gate) = (Told(), Gate())
        let exchange = exchange(told, gate)
        await gate.open()
        exchange.start()
        try await until("it is answered") { !told.all.isEmpty }
        exchange.abort()
        #expect(told.all == ["200"])
    }

    @Test("whose time is up is cancelled, and given up a moment later, and says whether the transport had it")
    func timeout() async throws {
        for isOut in [false, true] {
            let (told, gate, asked) = (Told(), Gate(), Counter())
            let exchange = exchange(told, gate, headers: {
                asked.add(1)
                if !isOut { await gate.pass() }
                return [:]
            })
            #expect(exchange.look(at: .max) == nil, "its time runs once it has started")
            exchange.start()
            try await until("it is under way") { (isOut ? told.sends : asked).total == 1 }
            let due = try #require(exchange.look(at: 0))
            #expect(exchange.look(at: due - 1) == due)
            let end = try #require(exchange.look(at: due))
            #expect(end > due && exchange.look(at: end - 1) == end && told.all.isEmpty)
            #expect(exchange.look(at: end) == nil && told.all == [isOut ? "timeout maybe" : "timeout never"])
            await gate.open()
            try await Task.sleep(for: .milliseconds(200))
            #expect(told.sends.total == (isOut ? 1 : 0) && told.all.count == 1)
        }
    }

    @Test("whose transport knows as its time is up that nothing was sent was not sent", arguments: [TransportFailure.Sent.never, .maybe])
    func transportKnows(sent: TransportFailure.Sent) async throws {
        let told = Told()
        let transport = Sending { _ in
            told.sends.add(1)
            try? await Task.sleep(for: .seconds(600))
            throw TransportFailure(.connect, sent: sent)
        }
        let exchange = Exchange(request(timeoutMs: 0), [], transport, Headers(given: nil), { true }) { told.hear($0) }
        exchange.start()
        try await until("the transport has it") { told.sends.total == 1 }
        _ = exchange.look(at: Clock.monotonic)
        try await until("it is over") { !told.all.isEmpty }
        #expect(told.all == ["timeout \(sent)"])
    }

    @Test("that is come to too late, or under a claim that has ended, is not sent")
    func late() async throws {
        let nobody = Sending { _ in throw Unmet("nothing is sent") }
        for (request, stands) in [(request(sendBefore: Clock.monotonic - 1), true), (request(sendBefore: Clock.monotonic + 60_000), false)] {
            let told = Told()
            Exchange(request, [], nobody, Headers(given: nil), { stands }) { told.hear($0) }.start()
            try await until("it has ended") { !told.all.isEmpty }
            #expect(told.all == ["late never"])
        }
    }
}
