import Foundation

/// An error of other code in a form that people may see: its type and its message, without the secrets of its request, or parts of them.
func described(_ error: any Error, _ request: Request) -> String {
    let type = "\(type(of: error))"
    let said = String(describing: error).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let letters = Array(said.unicodeScalars.prefix(4000))
    var isHidden = [Bool](repeating: false, count: letters.count)
    let text = String(String.UnicodeScalarView(letters))
    // A login in a URL, the value of an authorization, a token: a secret anywhere.
    for found in text.matches(of: /\/\/[^\s\/@]*@|\b(?:Basic|Bearer)\s+\S+|\beyJ[\w.\-]+/.ignoresCase()) {
        let begin = text.unicodeScalars.distance(from: text.startIndex, to: found.range.lowerBound)
        for at in begin..<begin + text.unicodeScalars.distance(from: found.range.lowerBound, to: found.range.upperBound) { isHidden[at] = true }
    }
    for secret in request.secrets.map({ Array($0.unicodeScalars) }) {
        let length = min(secret.count, longestPart)
        guard length <= letters.count else { continue }
        // A body may have 65 000 parts, so each is only looked for among those of the text.
        var places = Dictionary(grouping: 0...letters.count - length) { letters[$0..<$0 + length] }
        for at in 0...secret.count - length {
            for begin in places.removeValue(forKey: secret[at..<at + length]) ?? [] {
                for hidden in begin..<begin + length { isHidden[hidden] = true }
            }
        }
    }
    var words = ""
    for (at, letter) in letters.enumerated() {
        if !isHidden[at] { words.unicodeScalars.append(letter) } else if at == 0 || !isHidden[at - 1] { words += "[redacted]" }
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
