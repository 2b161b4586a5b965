package hopline

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers

/**
 * The client of one reseller at the reseller backend. The client logs in by itself, once for any number of calls, and again when the token
 * is refused or about to end; a password that the service refuses is not tried again.
 *
 * @param username the reseller's name; if no username, no password and no token is given: the environment's `HOPLINE_USERNAME` and
 * `HOPLINE_PASSWORD`
 * @param password the password for the username
 * @param baseUrl the address of the API, such as `https://host/api`; default: the environment's `HOPLINE_BACKEND_URL`
 * @param token a token to start with. Without a username and a password the client has no other
 * @param tokenCodes the codes that mean that the token is refused, beside HTTP 401. Default: `401`
 * @param doubtCodes further codes that do not say whether a write was done: then it is `in_doubt`. They are checked after `tokenCodes` and
 * before `refusalCodes`. Each is compared as text, whole. Default: none
 * @param refusalCodes further codes that say that a write was not done: then it is `refused`, though not under HTTP 408, 409, 425, 429 and
 * 5xx. The service documents only one code, so the client assumes which others say so, and leaves all others in doubt. Default: none
 * @param transport the HTTP client: [OkHttpTransport], or [JavaHttpTransport] (the default; Android has no `java.net.http`), or your own
 * @param store the store of purchases, sessions and orders, such as a [FolderStore], one for each client; default: the client's own memory
 * @param options how to repeat, wait and read
 * @param sameAccount true if records of another login or base URL are of this account, because only those have changed; default: false
 * @param headers headers of your own, such as the token of your user at your own backend. The function is called before each send, repeats
 * included, so that an expired token is renewed; an exception from it ends that send before it begins. Hopline's own headers can't be
 * replaced
 * @param clock the time; a test may give its own
 * @param dispatcher the dispatcher whose threads the client works in; a test may give one that it steps through
 */
public class ResellerClient(
    username: Secret? = null,
    password: Secret? = null,
    baseUrl: String? = variable("HOPLINE_BACKEND_URL", "base_url"),
    token: Secret? = null,
    tokenCodes: List<String>? = null,
    doubtCodes: List<String>? = null,
    refusalCodes: List<String>? = null,
    transport: Transport = defaultTransport(),
    store: Store? = null,
    options: Options = Options(),
    sameAccount: Boolean = false,
    headers: (suspend () -> Map<String, String>)? = null,
    clock: Clock = Clock.SYSTEM,
    dispatcher: CoroutineDispatcher = Dispatchers.IO,
) : ResellerCalls() {
    override val engine: Engine =
        newEngine(
            this, options.told(
                "api" to "reseller", "base_url" to address(baseUrl, "HOPLINE_BACKEND_URL"), *login(username, password, token),
                "token_codes" to tokenCodes, "doubt_codes" to doubtCodes, "refusal_codes" to refusalCodes,
                "same_account" to sameAccount, "store" to (store != null),
                "late_calls" to (store?.lateCalls == true),
            ),
            Means(transport, headers, clock, dispatcher), store,
        )

    /** The token that is used at present, to store in the system's secret storage and to start with next time. */
    public val token: Secret? get() = engine.token()

    override val waits = Reader("StaticOrder", Packed::readStaticOrder)

    override fun waited(operation: String, ended: Engine.Ended): OrderReply {
        val order = typed(operation, ended, waits)
        return OrderReply(order.orderNo, order.phase ?: Phase.UNKNOWN, order)
    }
}

/**
 * A static order at the end of its wait: usable, over, or (`PENDING`, `UNKNOWN`) not yet, at the deadline. The order continues:
 * [ResellerClient.waitOrder] waits on.
 */
public data class OrderReply(
    /** The order's number: the handle for all further operations. */
    val orderNo: String,
    /** The phase of the order. */
    override val phase: Phase,
    /** The order, as the list of static orders shows it. */
    val order: StaticOrder,
) : Reply {
    override val raw: Raw get() = order.raw

    override val requestId: String? get() = order.requestId
}

/** All or nothing: a given token must not be renewed with another login. */
private fun login(username: Secret?, password: Secret?, token: Secret?): Array<Pair<String, Secret?>> {
    val given = username != null || password != null || token != null
    return arrayOf(
        "username" to if (given) username else variable("HOPLINE_USERNAME", "username")?.let(::Secret),
        "password" to if (given) password else variable("HOPLINE_PASSWORD", "password")?.let(::Secret),
        "token" to token,
    )
}
