import Foundation

/// An error of other code in a form that people may see: its type and its message, without the secrets of its request, or parts of them.
func described(_ error: any Error, _ request: Request) -> String {
    let type = "\(type(of: error))"
    let letters = Array(String(describing: error).split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(4000))
    var isHidden = [Bool](repeating: false, count: letters.count)
    let text = String(letters)
    // A login in a URL, the value of an authorization, a token: a secret anywhere.
    for found in text.matches(of: /\/\/[^\s\/@]*@|\b(?:Basic|Bearer)\s+\S+|\beyJ[\w.\-]+/.ignoresCase()) {
        let begin = text.distance(from: text.startIndex, to: found.range.lowerBound)
        for at in begin..<begin + text.distance(from: found.range.lowerBound, to: found.range.upperBound) { isHidden[at] = true }
    }
    for secret in request.secrets.map({ Array($0) }) {
        let length = min(secret.count, longestPart)
        guard length <= letters.count else { continue }
        let parts = Set((0...secret.count - length).map { secret[$0..<$0 + length] })
        for at in 0...letters.count - length where parts.contains(letters[at..<at + length]) {
            for hidden in at..<at + length { isHidden[hidden] = true }
        }
    }
    var words = ""
    for (at, letter) in letters.enumerated() {
        if !isHidden[at] { words.append(letter) } else if at == 0 || !isHidden[at - 1] { words += "[redacted]" }
    }
    // The text of many errors is their type's name, or begins with it.
    return words.hasPrefix(type) ? String(words.prefix(200)) : "\(type): \(words.prefix(200))"
}

/// The number of letters in a row of a secret that count as a part of it.
private let longestPart = 8

extension Request {
    /// All of the request except its address and its plainest headers.
    fileprivate var secrets: [String] {
        let values = headers.filter { !["accept", "content-type", "user-agent", "accept-encoding"].contains($0.name.lowercased()) }.map(\.value)
        let logins = values.compactMap { $0.split(separator: " ").last.map(String.init) }
        // A shorter secret may be in any text.
        return (values + logins + [String(decoding: body ?? Data(), as: UTF8.self)]).filter { $0.count >= 3 }
    }
}
