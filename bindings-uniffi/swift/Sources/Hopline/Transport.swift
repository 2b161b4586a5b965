import Foundation

/// A request to send, once. The request holds the API key, so it prints without its headers and body.
public struct Request: Sendable {
    /// The method.
    public let method: String
    /// The whole URL.
    public var url: String
    /// The headers, in the order to send them in.
    public internal(set) var headers: [(name: String, value: String)]
    /// The body, if there is one.
    public let body: Data?
    /// The timeout. The client cancels the task of a send that takes longer.
    public let timeout: Duration
    /// The most bytes to read of the answer's body; more is `truncated`.
    public let maxBody: Int
    /// The headers of the answer that the client needs, in lower case. Others may be left out.
    public let wanted: [String]

    /// A request, for tests of a transport of your own.
    public init(
        method: String, url: String, headers: [(name: String, value: String)] = [], body: Data? = nil, timeout: Duration = .seconds(20),
        maxBody: Int = 8 << 20, wanted: [String] = []
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
        self.maxBody = maxBody
        self.wanted = wanted
    }
}

extension Request: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, and the URL without its query.
    public var description: String { "\(method) \(url.prefix { $0 != "?" })" }
    /// The method, and the URL without its query.
    public var debugDescription: String { description }
    /// No members.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// A response. Its body is the API's, so it does not print.
public struct Response: Sendable {
    /// The HTTP status, whatever it is.
    public let status: Int
    /// The headers.
    public let headers: [(name: String, value: String)]
    /// The body, at most `maxBody` bytes.
    public let body: Data
    /// True if the body is longer, or broke off.
    public let truncated: Bool

    /// A response.
    public init(status: Int, headers: [(name: String, value: String)] = [], body: Data = Data(), truncated: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.truncated = truncated
    }
}

extension Response: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The status.
    public var description: String { "HTTP \(status)" }
    /// The status.
    public var debugDescription: String { description }
    /// No members.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The reason why there is no response. A transport of your own throws it. Any other error means that the request may have arrived.
public struct TransportFailure: Error, Sendable, Hashable {
    /// The reason why there is no response.
    public enum Kind: Sendable {
        /// The host name has no address.
        case dns
        /// The connection could not be made.
        case connect
        /// The TLS session could not be made.
        case tls
        /// The answer did not come in time.
        case timeout
        /// The connection broke.
        case closed
        /// The request was cancelled.
        case aborted
        /// Any other reason.
        case other
    }

    /// The reach of the request.
    public enum Sent: Sendable {
        /// Not one byte left the host: the failure certainly came before.
        case never
        /// The request may have reached the service.
        case maybe
    }

    /// The reason why there is no response.
    public let kind: Kind
    /// The reach of the request.
    public let sent: Sent
    /// A message for a person. The message must hold no secret.
    public let note: String?

    /// A failure. `sent` is `never` only if no byte of the request can have left.
    public init(_ kind: Kind, sent: Sent = .maybe, note: String? = nil) {
        self.kind = kind
        self.sent = sent
        self.note = note
    }
}

/// Sends requests. A client calls it from many tasks at once.
public protocol Transport: Sendable {
    /// Sends a request once: no repeat, no redirect, no cache. When its task is cancelled this ends soon, and if the status is known by
    /// then it may return a truncated response.
    func send(_ request: Request) async throws -> Response
}
