import Foundation

internal import HoplineCore

/// Asks the core what needs no client.
func ask<Answer: Decodable>(_ question: String, _ given: JSON) throws(HoplineError) -> Answer {
    try core { try JSONDecoder().decode(Answer.self, from: Data(hostText(question: question, given: given.text).utf8)) }
}
