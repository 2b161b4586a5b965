import Foundation

/// An error of somebody else's as people are told of it: its type and its words, without what is secret of the request that met it, or a part of
/// that.
func described(_ error: any Error, _ request: Request) -> String {
    let type = "\(type(of: error))"
    let letters = Array(String(describing: error).split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(4000))
    var isHidden = [Bool](repeating: false, count: letters.count)
    let text = String(letters)
    // A login in a URL, the value of an authorization, a token: a secret wherever it is.
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
    // Many errors are their type's name, or begin with it.
    return words.hasPrefix(type) ? String(words.prefix(200)) : "\(type): \(words.prefix(200))"
}

/// So many letters in a row that are in a secret, too, are part of it.
private let longestPart = 8

extension Request {
    /// All but its address and its plainest headers.
    fileprivate var secrets: [String] {
        let values = headers.filter { !["accept", "content-type", "user-agent", "accept-encoding"].contains($0.name.lowercased()) }.map(\.value)
        let logins = values.compactMap { $0.split(separator: " ").last.map(String.init) }
        // What is shorter may be in any text.
        return (values + logins + [String(decoding: body ?? Data(), as: UTF8.self)]).filter { $0.count >= 3 }
    }
}
