import Foundation

internal import HoplineCore

/// Asks the core what needs no client.
func ask<Answer: Decodable>(_ question: String, _ given: JSON) throws(HoplineError) -> Answer {
    try core { try JSONDecoder().decode(Answer.self, from: Data(hostText(question: question, given: given.text).utf8)) }
}

/// The error of a call that is not made, in the words that every language has for it.
func refused(_ operation: String, because: String, _ more: [String: String] = [:]) -> HoplineError {
    let given = more.merging(["operation": operation, "because": because]) { $1 }
    do {
        return .read(try hostText(question: "refusal", given: JSON.object(given.mapValues { .string($0) }).text))
    } catch {
        return refusal(error)
    }
}
