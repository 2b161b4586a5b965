import Foundation

/// How a client repeats, waits and reads. Omitted options keep their defaults.
public struct ClientOptions: Sendable {
    /// The name of the account in the store: what another account bought is then not found. Without it, each account needs a store of
    /// its own.
    public var account: String?
    /// Whether plain http is allowed to a host that is not loopback. Default: no.
    public var allowHTTP: Bool
    /// Whether records of another key, login or base URL are this account's, because only those have changed. Default: no.
    public var sameAccount: Bool
    /// The longest body that is read, in bytes. Default: 8 MiB.
    public var maxBody: Int?
    /// How often one call is sent at most, the first time included. Default: 4.
    public var attempts: Int?
    /// The time from the first send within which another may be made. Default: a minute.
    public var window: Duration?
    /// How long one attempt may take. Default: 20 seconds.
    public var timeout: Duration?
    /// The longest wait before the first repeat; each further one may be twice as long. Default: half a second.
    public var backoff: Duration?
    /// The same after the service asked to slow down. Default: a second.
    public var throttledBackoff: Duration?
    /// The longest wait before any repeat, unless the service asks for a longer one. Default: 20 seconds.
    public var maxBackoff: Duration?
    /// How long to wait, in all, for an earlier request with the same key to end. Default: two minutes.
    public var conflict: Duration?
    /// Whether a paid operation that the service failed may be bought again with a new key; it may then be charged twice. Default: no.
    public var retryPaid: Bool?
    /// Headers for every request of the client, such as the access token of your own backend; by default none. It is called before
    /// each request, so it may renew a token, and its time counts as the request's. If it throws, the request is not sent.
    public var headers: (@Sendable () async throws -> [String: Secret])?

    /// Options. Omitted options keep their defaults.
    public init(
        account: String? = nil, allowHTTP: Bool = false, sameAccount: Bool = false, maxBody: Int? = nil,
        attempts: Int? = nil, window: Duration? = nil, timeout: Duration? = nil, backoff: Duration? = nil,
        throttledBackoff: Duration? = nil, maxBackoff: Duration? = nil, conflict: Duration? = nil, retryPaid: Bool? = nil,
        headers: (@Sendable () async throws -> [String: Secret])? = nil
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
        self.headers = headers
    }

    /// As the core takes them. What belongs to one API is added by its client.
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
        told.add("same_account", sameAccount)
        told.add("allow_http", allowHTTP)
        told.add("max_body", maxBody)
        told.add("retry", retry.json)
        return told
    }
}

/// How one call is sent. Omitted options are the client's.
public struct CallOptions: Sendable {
    /// A key of your own, of an operation that takes one. It names the write as an intent does, counts as sent before and is never
    /// replaced. Not with an intent.
    public var idempotencyKey: String?
    /// How often it is sent at most, the first time included.
    public var attempts: Int?
    /// The time from the first send within which another may be made.
    public var window: Duration?
    /// How long one attempt may take.
    public var timeout: Duration?
    /// Whether to buy again with a new key when the service failed. It may have sold all the same.
    public var retryPaid: Bool?
    /// Further headers of the request. They are not kept in records.
    public var headers: [String: Secret]

    /// Options. Omitted ones are the client's.
    public init(
        idempotencyKey: String? = nil, attempts: Int? = nil, window: Duration? = nil, timeout: Duration? = nil,
        retryPaid: Bool? = nil, headers: [String: Secret] = [:]
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
