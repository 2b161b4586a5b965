import Foundation

internal import HoplineCore

/// The client of one reseller of the Reseller Backend API. Each operation of the API is a method.
///
/// The client logs in by itself, once for any number of calls, when it has no token or the service refuses it.
public final class ResellerClient: HoplineClient, @unchecked Sendable {
    /// Makes a client. Nothing is sent before the first call.
    ///
    /// - Parameters:
    ///   - username: The reseller's name. If no username, no password and no token is given: the environment's HOPLINE_USERNAME and
    ///     HOPLINE_PASSWORD; without any, only a backend of your own will answer.
    ///   - password: The password for the username.
    ///   - baseURL: The address of the API, such as `https://host/api`. Default: the environment's HOPLINE_BACKEND_URL.
    ///   - token: A token to start with. Without a username and a password the client has no other.
    ///   - tokenCodes: The codes that mean that the token is refused, beside HTTP 401. Default: `401`.
    ///   - doubtCodes: Further codes that do not say whether a write was done: then it is `inDoubt`. They are checked after `tokenCodes`
    ///     and before `refusalCodes`. Each is compared as text, whole. Default: none.
    ///   - refusalCodes: Further codes that say that a write was not done: then it is `refused`, though not under HTTP 408, 409, 425, 429
    ///     and 5xx. The service documents only one code, so the client assumes which others say so, and leaves all others in doubt.
    ///     Default: none.
    ///   - store: The store of records, such as a `FolderStore`; an object for this client alone. By default they are in memory and end
    ///     with the client.
    ///   - transport: The HTTP client.
    ///   - options: How to repeat, wait and read.
    ///   - file: The place where the client is made, for a warning that it was not closed.
    ///   - line: The line of that place.
    public init(
        username: Secret? = nil, password: Secret? = nil, baseURL: String? = nil, token: Secret? = nil, tokenCodes: [String]? = nil,
        doubtCodes: [String]? = nil, refusalCodes: [String]? = nil,
        store: (any Store)? = nil, transport: any Transport = URLSessionTransport(), options: ClientOptions = ClientOptions(),
        file: StaticString = #fileID, line: UInt = #line
    ) throws(HoplineError) {
        var told = options.told(try address(baseURL, "HOPLINE_BACKEND_URL"))
        told.add("api", "reseller")
        // A given token is never renewed with another login.
        let given = username != nil || password != nil || token != nil
        told.add("username", try given ? username : secret("HOPLINE_USERNAME", "username"))
        told.add("password", try given ? password : secret("HOPLINE_PASSWORD", "password"))
        told.add("token", token)
        told.add("token_codes", tokenCodes)
        told.add("doubt_codes", doubtCodes)
        told.add("refusal_codes", refusalCodes)
        try super.init(told, store, transport, options, madeAt: "\(file):\(line)")
    }

    /// The token that is used at present: store it in the Keychain, to start with it next time.
    public var token: Secret? {
        driver.core.token().map { Secret($0) }
    }

    /// Both operations that wait for an order.
    func wait(_ operation: String, _ params: Parameters, _ told: Parameters) async throws(HoplineError) -> OrderReply {
        try await answer(operation, params.json.text, told).order()
    }

    override func isWaited(_ answered: Answered) -> Bool {
        answered.holds(StaticOrder.self)
    }

    override func waited(_ answered: Answered) throws(HoplineError) -> Resumed {
        .order(try answered.order())
    }
}

/// A static order at the end of its wait: usable, over, or (`pending`, `unknown`) not usable yet, at the deadline. `waitOrder` waits on.
public struct OrderReply: Sendable {
    /// The order's number: the handle for all further operations.
    public let orderNo: String
    /// The phase of the order.
    public let phase: Phase
    /// The order, as the list of static orders shows it.
    public let order: Reply<StaticOrder>
}

extension OrderReply: CustomStringConvertible {
    /// The order's number and its phase.
    public var description: String { "\(orderNo) (\(phase.rawValue))" }
}
