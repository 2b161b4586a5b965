import Foundation

/// A request to send, once. It holds the API key, so it prints without its headers and body.
public struct Request: Sendable {
    /// The method.
    public let method: String
    /// The whole URL.
    public var url: String
    /// The headers, in the order to send them in.
    public internal(set) var headers: [(name: String, value: String)]
    /// The body, if there is one.
    public let body: Data?
    /// How long it may take. The client cancels the task of a send that takes longer.
    public let timeout: Duration
    /// Read no more than this many bytes of the answer's body; more is `truncated`.
    public let maxBody: Int
    /// The headers of the answer that the client asks for, in lower case. Others may be left out.
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
    /// Nothing to look into.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// A response. Its body is the API's, so it does not print.
public struct Response: Sendable {
    /// The HTTP status, whatever it is.
    public let status: Int
    /// The headers.
    public let headers: [(name: String, value: String)]
    /// At most `maxBody` bytes of the body.
    public let body: Data
    /// Whether the body goes on, or broke off.
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
    /// Nothing to look into.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Why there is no response. A transport of your own throws it. Any other error means that the request may have arrived.
public struct TransportFailure: Error, Sendable, Hashable {
    /// Why there is no response.
    public enum Kind: Sendable {
        /// The host name has no address.
        case dns
        /// No connection.
        case connect
        /// No TLS session.
        case tls
        /// No answer in time.
        case timeout
        /// The connection broke.
        case closed
        /// It was cancelled.
        case aborted
        /// Anything else.
        case other
    }

    /// Whether the request may have reached the service.
    public enum Sent: Sendable {
        /// Not one byte of it left: the failure is known to have come before.
        case never
        /// Nobody knows.
        case maybe
    }

    /// Why there is no response.
    public let kind: Kind
    /// Whether the request may have reached the service.
    public let sent: Sent
    /// The same for a person. It must hold no secret.
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
    /// Sends a request once: no repeat, no redirect, no cache. When its task is cancelled it ends soon, and if the status is
    /// known by then it may give a truncated response.
    func send(_ request: Request) async throws -> Response
}
