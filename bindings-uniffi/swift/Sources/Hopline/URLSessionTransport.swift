import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with `URLSession`: no cookies, no cache, no redirects, and nothing twice.
///
/// `URLSession` repeats a request by itself when a connection that it used before turns out to be dead: on Apple's systems a GET, PUT or
/// DELETE, elsewhere (libcurl) any. A reused connection may also hold an answer that belongs to no request, which would be taken for that
/// of a purchase. So on Apple's systems every request except a GET, and elsewhere every request, goes over a connection of its own. A GET
/// changes nothing, so it may be repeated.
///
/// Of a body that is too long, `maxBody` bytes are kept. The rest is discarded until the connection is closed, which `URLSession` outside
/// Apple's systems does late on a fast link.
public final class URLSessionTransport: Transport {
    private let configuration: URLSessionConfiguration
    private let session: URLSession
    private let exchanges = Exchanges()

    /// Makes a transport. `configuration` may set how to reach the network, such as a proxy; settings that would undo Hopline's own rules
    /// are replaced. A background configuration can't be used: the system takes no such requests from it.
    public init(configuration: URLSessionConfiguration = .ephemeral) {
        let own = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
        own.httpCookieStorage = nil
        own.httpShouldSetCookies = false
        own.urlCache = nil
        own.urlCredentialStorage = nil
        own.requestCachePolicy = .reloadIgnoringLocalCacheData
        own.httpShouldUsePipelining = false
        // The client itself limits the number of requests that are out, and another queue would use up their time.
        own.httpMaximumConnectionsPerHost = 10_000
        #if !canImport(FoundationNetworking)
            own.waitsForConnectivity = false
        #endif
        self.configuration = own
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
        // A compressed body could unfold without limit, so none is requested.
        told.setValue("identity", forHTTPHeaderField: "accept-encoding")
        #if canImport(FoundationNetworking)
            // libcurl sends again when a reused connection is dead, so none is reused.
            told.setValue("close", forHTTPHeaderField: "connection")
        #endif
        let task = dataTask(told)
        let exchange = Exchanges.Exchange(limit: request.maxBody, wanted: request.wanted)
        // Before the task can be cancelled, which may end it at once.
        exchanges.begin(task, exchange)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                exchange.wait(continuation)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }

    /// A connection belongs to a session, so an unused one comes from a session of its own.
    private func dataTask(_ request: URLRequest) -> URLSessionDataTask {
        #if canImport(FoundationNetworking)
            // Here each request has a connection of its own. Sessions that open and close them in parallel may also take each other's place
            // in libdispatch, and then get no more events.
            return session.dataTask(with: request)
        #else
            if request.httpMethod == "GET" { return session.dataTask(with: request) }
            let own = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
            defer { own.finishTasksAndInvalidate() }
            return own.dataTask(with: request)
        #endif
    }
}

extension URLSessionTransport: CustomReflectable {
    /// No members: the content of `URLSession` changes while requests are out, and they have secrets.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }
}

/// The outcomes of the tasks of a transport's sessions.
private final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    /// The outcome of one task, which is handed over by the later of two: its end, or the caller that waits for it.
    final class Exchange: @unchecked Sendable {
        private let limit: Int
        private let wanted: [String]
        private let lock = NSLock()
        // The lock guards the following members.
        private var response: HTTPURLResponse?
        private var body = Data()
        private var truncated = false
        private var hasBegun: Bool?
        private var result: Result<Response, any Error>?
        private var waiter: CheckedContinuation<Response, any Error>?

        init(limit: Int, wanted: [String]) {
            (self.limit, self.wanted) = (limit, wanted)
        }

        func wait(_ continuation: CheckedContinuation<Response, any Error>) {
            let result = lock.withLock {
                if self.result == nil { waiter = continuation }
                return self.result
            }
            if let result { continuation.resume(with: result) }
        }

        func came(_ response: HTTPURLResponse?) {
            lock.withLock { self.response = response }
        }

        /// Notes whether the system began to send the request.
        func measured(_ hasBegun: Bool) {
            lock.withLock { self.hasBegun = hasBegun }
        }

        /// Keeps the data that there is room for, and returns true if there is more.
        func came(_ data: Data) -> Bool {
            lock.withLock {
                let room = limit - body.count
                body.append(data.prefix(room))
                truncated = truncated || data.count > room
                return truncated
            }
        }

        func end(_ last: HTTPURLResponse?, _ error: (any Error)?) {
            let (waiter, result) = lock.withLock {
                let result = self.result ?? ended(response ?? last, error)
                self.result = result
                defer { self.waiter = nil }
                return (self.waiter, result)
            }
            waiter?.resume(with: result)
        }

        private func ended(_ response: HTTPURLResponse?, _ error: (any Error)?) -> Result<Response, any Error> {
            guard let response else { return .failure(TransportFailure(error, hasBegun: hasBegun)) }
            let headers = wanted.compactMap { name in response.value(forHTTPHeaderField: name).map { (name: name, value: $0) } }
            // A body that breaks off is cut short too, and its status is worth keeping.
            return .success(Response(status: response.statusCode, headers: headers, body: body, truncated: truncated || error != nil))
        }
    }

    private let lock = NSLock()
    /// By task; the lock guards them. A task's number is only its own within one session.
    private var under: [ObjectIdentifier: Exchange] = [:]

    func begin(_ task: URLSessionTask, _ exchange: Exchange) {
        lock.withLock { under[ObjectIdentifier(task)] = exchange }
    }

    private func exchange(_ task: URLSessionTask) -> Exchange? {
        lock.withLock { under[ObjectIdentifier(task)] }
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
        exchange(dataTask)?.came(response as? HTTPURLResponse)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard exchange(dataTask)?.came(data) == true else { return }
        end(dataTask, nil)
        // In another thread, since this waits for a queue that reads on meanwhile, and that data is to be discarded.
        DispatchQueue.global().async { dataTask.cancel() }
    }

    #if canImport(FoundationNetworking)
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            // The challenge comes after a whole answer of 401, for which the task would else wait without end.
            end(task, nil)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    #else
        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            let sends = metrics.transactionMetrics
            if !sends.isEmpty { exchange(task)?.measured(sends.contains { $0.requestStartDate != nil }) }
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        end(task, error)
    }

    private func end(_ task: URLSessionTask, _ error: (any Error)?) {
        let exchange = lock.withLock { under.removeValue(forKey: ObjectIdentifier(task)) }
        exchange?.end(task.response as? HTTPURLResponse, error)
    }
}

extension TransportFailure {
    /// Interprets an error of `URLSession`. `never` is only for failures that certainly come before the first byte.
    ///
    /// A missing network may also be detected while a request is out, so there the system has to confirm (`hasBegun`) that the request was
    /// not begun; without that the request may have been sent.
    init(_ error: (any Error)?, hasBegun: Bool?) {
        guard let error = error as? URLError else {
            self.init(.other)
            return
        }
        let (kind, sent): (Kind, Sent) =
            switch error.code {
            case .cannotFindHost, .dnsLookupFailed: (.dns, .never)
            case .cannotConnectToHost: (.connect, .never)
            case .notConnectedToInternet: (.connect, hasBegun == false ? .never : .maybe)
            case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
                .serverCertificateHasUnknownRoot:
                (.tls, .maybe)
            case .timedOut: (.timeout, .maybe)
            case .networkConnectionLost, .badServerResponse: (.closed, .maybe)
            case .cancelled: (.aborted, .maybe)
            default: (.other, .maybe)
            }
        self.init(kind, sent: sent, note: "URLError \(error.errorCode)")
    }
}

extension Duration {
    /// The duration in seconds.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
