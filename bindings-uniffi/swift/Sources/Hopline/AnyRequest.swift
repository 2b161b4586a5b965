extension HTTPMethod: Parameter {}
extension Safety: Parameter {}

extension HoplineClient {
    /// Sends a request that has no method here, with the account's key or token; the whole answer is in `raw`.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - path: The path below the base URL, percent-encoded, such as `/billing/invoices`.
    ///   - query: The parameters of the query; they are percent-encoded here.
    ///   - body: The JSON body. A record keeps the body of a write that may be sent again: put no secret in it unless it is `atMostOnce`.
    ///   - safety: The repeats that are allowed after a failure. Default: `safe` for a GET, else `atMostOnce`.
    ///   - intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
    ///   - waitForIntent: True to wait, for as long as the call may take in all, while another client uses the intent or key. Default:
    ///     false, and the call is `busy`.
    ///   - until: The condition that ends a repeated read; the answer's `phase` says whether it holds.
    ///   - deadline: How long to wait for `until`. Default: 5 minutes.
    ///   - options: How to send it. Omitted options are the client's.
    @discardableResult
    public func request(
        _ method: HTTPMethod,
        _ path: String,
        query: [String: String] = [:],
        body: JSON? = nil,
        safety: Safety? = nil,
        intent: String? = nil,
        waitForIntent: Bool = false,
        until: Until? = nil,
        deadline: Duration? = nil,
        options: CallOptions = CallOptions()
    ) async throws(HoplineError) -> Reply<Undocumented> {
        var params = Parameters()
        params.add("method", method)
        params.add("path", path)
        params.add("query", JSON.object(query.mapValues { .string($0) }))
        params.add("body", body)
        params.add("safety", safety)
        var told = options.told
        told.add("intent", intent)
        told.add("wait_for_intent", waitForIntent)
        told.add("until", until)
        told.add("deadline_ms", deadline)
        return try await call("request", params, told)
    }
}
