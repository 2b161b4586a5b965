/// The headers that a client adds to each of its requests, such as the access token of one's own backend.
struct Headers: Sendable {
    let given: (@Sendable () async throws -> [String: Secret])?

    /// The reason why a header can't be added, as the end of a sentence, with its name and never its value.
    struct Unfit: Error {
        let rule: String
    }

    /// The request with these headers. The function is called anew each time, since a token may have been renewed.
    func added(to request: Request) async throws -> Request {
        guard let given else { return request }
        var request = request
        for (name, value) in try await given() {
            let isToken = !name.isEmpty && name.utf8.allSatisfy { Self.token.contains($0) }
            guard isToken else { throw Unfit(rule: "must have names made of letters, digits and hyphens") }
            let lowercased = name.lowercased()
            guard !Self.reserved.contains(lowercased), !request.headers.contains(where: { $0.name.lowercased() == lowercased }) else {
                throw Unfit(rule: "must not have `\(name)`, which the client sets")
            }
            guard value.reveal().unicodeScalars.allSatisfy({ $0 == "\t" || (" "..."~").contains($0) }) else {
                throw Unfit(rule: "must have a value of visible ASCII for `\(name)`")
            }
            request.headers.append((name: name, value: value.reveal()))
        }
        return request
    }

    /// The headers that the core or the transport sets, even where a request has none of them.
    private static let reserved: Set = [
        "connection", "content-length", "content-type", "host", "idempotency-key", "transfer-encoding", "x-api-key",
    ]
    private static let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
}
