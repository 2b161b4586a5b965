/// The headers that a client adds to each of its requests, such as the access token of one's own backend.
struct Headers: Sendable {
    let given: (@Sendable () async throws -> [String: Secret])?

    /// Why a header can't be added. It says the name and never the value.
    private struct Unfit: Error {
        let why: String
    }

    /// The request with these headers. They are asked for anew each time, since a token may have been renewed.
    func added(to request: Request) async throws -> Request {
        guard let given else { return request }
        var request = request
        for (name, value) in try await given() {
            let isToken = !name.isEmpty && name.utf8.allSatisfy { Self.token.contains($0) }
            guard isToken else { throw Unfit(why: "the name of a header is not a token") }
            guard !request.headers.contains(where: { $0.name.lowercased() == name.lowercased() }) else {
                throw Unfit(why: "the client sets `\(name)` itself")
            }
            guard value.reveal().unicodeScalars.allSatisfy({ $0 == "\t" || (" "..."~").contains($0) }) else {
                throw Unfit(why: "the value of `\(name)` is not visible ASCII")
            }
            request.headers.append((name: name, value: value.reveal()))
        }
        return request
    }

    /// What an error says; of an error of the caller's own only the type, since its text may hold secrets.
    static func said(_ error: any Error) -> String {
        (error as? Unfit)?.why ?? "\(type(of: error))"
    }

    private static let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
}
