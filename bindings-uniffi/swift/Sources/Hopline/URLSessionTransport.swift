import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with `URLSession`: no cookies, no cache, no redirects, each over a connection of its own outside Apple's systems.
///
/// `URLSession` may send a request again by itself when a connection that was used before turns out to be dead. Where it is
/// made of libcurl, every request therefore has a connection of its own. Apple's does so with idempotent requests alone (GET,
/// PUT, DELETE), of which a repeat changes nothing here.
///
/// Of a body that is too long, `maxBody` bytes are kept. The rest is thrown away until the connection is closed, to which
/// `URLSession` outside Apple's systems comes late where the link is fast.
public final class URLSessionTransport: Transport {
    private let session: URLSession
    private let exchanges = Exchanges()

    /// A transport. `configuration` may say how to reach the network, such as a proxy; what would undo Hopline's own rules is
    /// set as they need it.
    public init(configuration: URLSessionConfiguration = .ephemeral) {
        let own = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
        own.httpCookieStorage = nil
        own.httpShouldSetCookies = false
        own.urlCache = nil
        own.urlCredentialStorage = nil
        own.requestCachePolicy = .reloadIgnoringLocalCacheData
        own.httpShouldUsePipelining = false
        // The core allows an attempt its time, and a queue of ours would use it up.
        own.httpMaximumConnectionsPerHost = 10_000
        #if !canImport(FoundationNetworking)
            own.waitsForConnectivity = false
        #endif
        session = URLSession(configuration: own, delegate: exchanges, delegateQueue: nil)
    }

    deinit {
        session.finishTasksAndInvalidate()
    }

    /// Sends a request once.
    public func send(_ request: Request) async throws -> Response {
        guard let url = URL(string: request.url) else { throw TransportFailure(.other, sent: .never, note: "the URL can't be read") }
        var told = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: request.timeout.seconds + 60)
        told.httpMethod = request.method
        told.httpBody = request.body
        request.headers.forEach { told.setValue($0.value, forHTTPHeaderField: $0.name) }
        // A compressed body could unfold without limit, so none is asked for.
        told.setValue("identity", forHTTPHeaderField: "accept-encoding")
        #if canImport(FoundationNetworking)
            // libcurl sends again when a connection that was used before is dead; none is.
            told.setValue("close", forHTTPHeaderField: "connection")
        #endif
        let task = session.dataTask(with: told)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                exchanges.begin(task.taskIdentifier, Exchanges.Exchange(limit: request.maxBody, wanted: request.wanted, continuation: continuation))
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }
}

/// What comes of the tasks of one session.
private final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    struct Exchange {
        let limit: Int
        let wanted: [String]
        let continuation: CheckedContinuation<Response, any Error>
        var response: HTTPURLResponse?
        var body = Data()
        var truncated = false
    }

    private let lock = NSLock()
    /// By the task's identifier; the lock guards them.
    private var under: [Int: Exchange] = [:]

    func begin(_ task: Int, _ exchange: Exchange) {
        lock.withLock { under[task] = exchange }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        lock.withLock { under[dataTask.taskIdentifier]?.response = response as? HTTPURLResponse }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let full = lock.withLock {
            guard var exchange = under.removeValue(forKey: dataTask.taskIdentifier) else { return false }
            let room = exchange.limit - exchange.body.count
            exchange.body.append(data.prefix(room))
            exchange.truncated = exchange.truncated || data.count > room
            under[dataTask.taskIdentifier] = exchange
            return exchange.truncated
        }
        guard full else { return }
        end(dataTask, nil)
        // Elsewhere, since it waits for a queue that reads on meanwhile, and what that brings is to be thrown away.
        DispatchQueue.global().async { dataTask.cancel() }
    }

    #if canImport(FoundationNetworking)
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            // It comes after a whole answer of 401, for which it would else wait without end.
            end(task, nil)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        end(task, error)
    }

    private func end(_ task: URLSessionTask, _ error: (any Error)?) {
        guard let exchange = lock.withLock({ under.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let response = exchange.response ?? task.response as? HTTPURLResponse {
            let headers = exchange.wanted.compactMap { name in response.value(forHTTPHeaderField: name).map { (name: name, value: $0) } }
            // A body that breaks off is cut short too, and its status is worth keeping.
            let truncated = exchange.truncated || error != nil
            let came = Response(status: response.statusCode, headers: headers, body: exchange.body, truncated: truncated)
            exchange.continuation.resume(returning: came)
        } else {
            exchange.continuation.resume(throwing: failure(of: error))
        }
    }
}

/// What an error of `URLSession` says. `never` is only for what surely comes before the first byte.
private func failure(of error: (any Error)?) -> TransportFailure {
    guard let error = error as? URLError else { return TransportFailure(.other) }
    let note = "URLError \(error.errorCode)"
    switch error.code {
    case .cannotFindHost, .dnsLookupFailed: return TransportFailure(.dns, sent: .never, note: note)
    case .cannotConnectToHost, .notConnectedToInternet: return TransportFailure(.connect, sent: .never, note: note)
    case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
        .serverCertificateHasUnknownRoot:
        return TransportFailure(.tls, note: note)
    case .timedOut: return TransportFailure(.timeout, note: note)
    case .networkConnectionLost, .badServerResponse: return TransportFailure(.closed, note: note)
    case .cancelled: return TransportFailure(.aborted, note: note)
    default: return TransportFailure(.other, note: note)
    }
}

extension Duration {
    /// For those who count in seconds.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
