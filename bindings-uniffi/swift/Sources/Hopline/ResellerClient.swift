import Foundation

internal import HoplineCore

/// The client of one reseller of the Reseller Backend API. Each operation of the API is a method.
///
/// It logs in by itself, once for any number of calls, when it has no token or the service refuses it.
public final class ResellerClient: HoplineClient, @unchecked Sendable {
    /// A client. Nothing is sent before the first call.
    ///
    /// - Parameters:
    ///   - username: Who logs in. Where no username, no password and no token is given, the environment's HOPLINE_USERNAME and
    ///     HOPLINE_PASSWORD do; without any, only a caller's own backend will answer.
    ///   - password: The password that goes with it.
    ///   - baseURL: The address of the API, such as `https://host/api`; without it, HOPLINE_BACKEND_URL.
    ///   - token: A token to start from, such as one that `token` gave before. Without a username and a password there is no other.
    ///   - tokenCodes: The codes that mean that the token is refused, beside HTTP 401; `401` where it is left out.
    ///   - doubtCodes: Further codes that do not say whether a write was done: then it is in doubt. They come after `tokenCodes` and
    ///     before `refusalCodes`. Each is compared as text, whole.
    ///   - refusalCodes: Further codes that say that a write was not done, though not under HTTP 408, 409, 425, 429 and 5xx. The service
    ///     documents one code only, so which others say so is an assumption, and what is not taken for a refusal is in doubt.
    ///   - store: Where records are kept, such as a `FolderStore`; an object for this client alone. Without it they are in memory and end
    ///     with the client.
    ///   - transport: What sends requests.
    ///   - options: How to repeat, wait and read.
    ///   - file: Where the client is made, for a warning that it was not closed.
    ///   - line: The same.
    public init(
        username: Secret? = nil, password: Secret? = nil, baseURL: String? = nil, token: Secret? = nil, tokenCodes: [String]? = nil,
        doubtCodes: [String]? = nil, refusalCodes: [String]? = nil,
        store: (any Store)? = nil, transport: any Transport = URLSessionTransport(), options: ClientOptions = ClientOptions(),
        file: StaticString = #fileID, line: UInt = #line
    ) throws(HoplineError) {
        var told = options.told(try address(baseURL, "HOPLINE_BACKEND_URL"))
        told.add("api", "reseller")
        // A token that was given is never renewed as somebody else.
        let given = username != nil || password != nil || token != nil
        told.add("username", given ? username : secret("HOPLINE_USERNAME"))
        told.add("password", given ? password : secret("HOPLINE_PASSWORD"))
        told.add("token", token)
        told.add("token_codes", tokenCodes)
        told.add("doubt_codes", doubtCodes)
        told.add("refusal_codes", refusalCodes)
        try super.init(told, store, transport, options, madeAt: "\(file):\(line)")
    }

    /// The token that is used at present: for the Keychain, to start from next time.
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

/// A static order as it was when waiting for it ended: usable, over, or (`pending`, `unknown`) not usable yet, at the deadline.
/// `waitOrder` waits on.
public struct OrderReply: Sendable {
    /// Its number: the handle for everything that comes after.
    public let orderNo: String
    /// Where it is.
    public let phase: Phase
    /// What the list of static orders shows of it.
    public let order: Reply<StaticOrder>
}

extension OrderReply: CustomStringConvertible {
    /// Which order, and where it is.
    public var description: String { "\(orderNo) (\(phase.rawValue))" }
}
