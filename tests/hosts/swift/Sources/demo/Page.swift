import Foundation
import Kit

func row(_ label: String, _ text: String) {
    print("  \(label.padding(toLength: 11, withPad: " ", startingAt: 0))\(text)")
    fflush(nil)
}

func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}

func usd(_ amount: Decimal) -> String {
    String(format: "%.2f", NSDecimalNumber(decimal: amount).doubleValue)
}

func ensure(_ holds: Bool, _ said: String) throws {
    if !holds { throw Unmet(said) }
}

/// The cost of the steps of a story.
actor Teller {
    struct Step {
        let name: String
        let time: Duration
        let cost: Decimal
        let balance: Decimal
    }

    private let read: @Sendable () async throws -> Decimal
    private(set) var steps: [Step] = []
    private(set) var balance: Decimal

    /// `read` says whose balance it is.
    init(_ read: @escaping @Sendable () async throws -> Decimal) async throws {
        self.read = read
        balance = try await read()
    }

    /// Does a step, and reads what it cost.
    func step<Done: Sendable>(_ name: String, _ work: @Sendable () async throws -> Done) async throws -> Done {
        let began = ContinuousClock.now
        let done = try await work()
        let time = ContinuousClock.now - began
        let now = try await read()
        steps.append(Step(name: name, time: time, cost: balance - now, balance: now))
        balance = now
        return done
    }

    /// Every step, its time and its cost.
    func show() {
        print("\n  \("step".padding(toLength: 11, withPad: " ", startingAt: 0))\(right("time", 8))\(right("cost USD", 12))\(right("balance USD", 14))")
        for step in steps {
            let (seconds, attoseconds) = step.time.components
            let time = String(format: "%.2f s", Double(seconds) + Double(attoseconds) / 1e18)
            row(step.name, right(time, 8) + right(usd(step.cost), 12) + right(usd(step.balance), 14))
        }
    }
}

struct Balance: Decodable {
    let balance: Decimal
}

struct Visit: Decodable {
    let address: String
}
