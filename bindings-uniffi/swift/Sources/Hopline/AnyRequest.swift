extension HTTPMethod: Parameter {}
extension Safety: Parameter {}

extension HoplineClient {
    /// Sends a request that has no method here, with the account's key or token; the answer's `raw` is all that is known of it.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - path: The path below the base URL, percent-encoded, such as `/billing/invoices`.
    ///   - query: The parameters of the query; they are percent-encoded here.
    ///   - body: The JSON body. Its record keeps what may be sent again: put no secret in it unless it is `atMostOnce`.
    ///   - safety: What may be done after a failure; of a GET it is `safe`, else `atMostOnce`.
    ///   - intent: Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.
    ///   - waitForIntent: Whether to wait, for as long as the call may take in all, while another client uses what the intent or key stands
    ///     for. Default: false, and the call is `busy`.
    ///   - until: What a read is repeated for; the answer's `phase` says whether it holds.
    ///   - deadline: How long `until` is waited for; 5 minutes where it is left out.
    ///   - options: How to send it; whatever is left out is as the client has it.
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
