import Foundation

/// How a client repeats, waits and reads. What is left out is as the core has it.
public struct ClientOptions: Sendable {
    /// Names the account in records. Where it is left out the key does, or else the username; with neither, as with a token alone,
    /// give the same name to every client of the store.
    public var account: String?
    /// Allows plain http to a host that is not loopback.
    public var allowHTTP: Bool
    /// Whether records of another key are of this account all the same.
    public var sameAccount: Bool
    /// The longest body that is read, in bytes; 8 MiB.
    public var maxBody: Int?
    /// Sends of one call, the first included; 4.
    public var attempts: Int?
    /// The time from the first send within which another may be made; a minute.
    public var window: Duration?
    /// What one attempt may take; 20 seconds.
    public var timeout: Duration?
    /// The longest wait before the first repeat; each further one may be twice as long; half a second.
    public var backoff: Duration?
    /// The same after the service asked to slow down; a second.
    public var throttledBackoff: Duration?
    /// No wait of ours before a repeat is longer; 20 seconds.
    public var maxBackoff: Duration?
    /// How long to wait, in all, for an earlier request with the same key to end; two minutes.
    public var conflict: Duration?
    /// Whether a paid operation that the service failed may be bought again with a new key; it may then be charged twice.
    public var retryPaid: Bool?

    /// Options; whatever is left out is as the core has it.
    public init(
        account: String? = nil, allowHTTP: Bool = false, sameAccount: Bool = false, maxBody: Int? = nil,
        attempts: Int? = nil, window: Duration? = nil, timeout: Duration? = nil, backoff: Duration? = nil,
        throttledBackoff: Duration? = nil, maxBackoff: Duration? = nil, conflict: Duration? = nil, retryPaid: Bool? = nil
    ) {
        self.account = account
        self.allowHTTP = allowHTTP
        self.sameAccount = sameAccount
        self.maxBody = maxBody
        self.attempts = attempts
        self.window = window
        self.timeout = timeout
        self.backoff = backoff
        self.throttledBackoff = throttledBackoff
        self.maxBackoff = maxBackoff
        self.conflict = conflict
        self.retryPaid = retryPaid
    }

    /// As the core takes them. What belongs to one API its client adds.
    func told(_ baseURL: String) -> Parameters {
        var retry = Parameters()
        retry.add("attempts", attempts)
        retry.add("window_ms", window)
        retry.add("timeout_ms", timeout)
        retry.add("backoff_ms", backoff)
        retry.add("throttled_backoff_ms", throttledBackoff)
        retry.add("max_backoff_ms", maxBackoff)
        retry.add("conflict_ms", conflict)
        retry.add("retry_paid", retryPaid)
        var told = Parameters()
        told.add("base_url", baseURL)
        told.add("account", account)
        told.add("allow_http", allowHTTP)
        told.add("max_body", maxBody)
        told.add("retry", retry.json)
        return told
    }
}

/// What may be decided for one call. Whatever is left out is as the client has it.
public struct CallOptions: Sendable {
    /// A key of your own, of an operation that takes one. It counts as sent before and is never replaced.
    public var idempotencyKey: String?
    /// Sends, the first included.
    public var attempts: Int?
    /// The time from the first send within which another may be made.
    public var window: Duration?
    /// What one attempt may take.
    public var timeout: Duration?
    /// Whether to buy again with a new key when the service failed. It may have sold all the same.
    public var retryPaid: Bool?
    /// Further headers of the request. They are not kept in records.
    public var headers: [String: Secret]

    /// Options; whatever is left out is as the client has it.
    public init(
        idempotencyKey: String? = nil, attempts: Int? = nil, window: Duration? = nil, timeout: Duration? = nil, retryPaid: Bool? = nil,
        headers: [String: Secret] = [:]
    ) {
        self.idempotencyKey = idempotencyKey
        self.attempts = attempts
        self.window = window
        self.timeout = timeout
        self.retryPaid = retryPaid
        self.headers = headers
    }

    var told: Parameters {
        var told = Parameters()
        told.add("idempotency_key", idempotencyKey)
        told.add("attempts", attempts)
        told.add("window_ms", window)
        told.add("timeout_ms", timeout)
        told.add("retry_paid", retryPaid)
        if !headers.isEmpty {
            told.add("headers", JSON.object(headers.mapValues { .string($0.reveal()) }))
        }
        return told
    }
}
