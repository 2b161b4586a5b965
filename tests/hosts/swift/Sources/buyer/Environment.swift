import Foundation
import Hopline

/// Makes clients that take everything from the environment. Prints a line for each that reads its account, or why it does not.
func environment(_ variables: [String]) async {
    await tell(variables) { () async throws(HoplineError) in
        _ = try await AgentClient().getBalance()
        return "agent"
    }
    await tell(variables) { () async throws(HoplineError) in
        _ = try await ResellerClient().getCurrentBalance()
        return "reseller"
    }
}

private func tell(_ variables: [String], _ work: () async throws(HoplineError) -> String) async {
    do {
        say(try await work())
    } catch {
        say("\(error.kind) \(error.field ?? "-") \(error.effect) \(variables.filter(error.message.contains).joined(separator: ","))")
    }
}
