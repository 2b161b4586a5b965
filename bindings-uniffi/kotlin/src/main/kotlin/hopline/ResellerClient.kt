package hopline

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers

/**
 * The client of one reseller at the reseller backend. It logs in by itself, once for any number of calls, and again when the token is
 * refused or about to end; a password that the service refuses is not tried again.
 *
 * @param username who logs in; where no username, no password and no token is given, the environment's `HOPLINE_USERNAME` and
 *   `HOPLINE_PASSWORD` do
 * @param password the password that goes with it
 * @param baseUrl the address of the API, such as `https://host/api`; without it, `HOPLINE_BACKEND_URL`
 * @param token a token to start from, such as an earlier [ResellerClient.token]; without a username and a password there is no other
 * @param tokenCodes the codes that mean that the token is refused, beside HTTP 401; `401` where it is left out
 * @param doubtCodes further codes that do not say whether a write was done: then it is in doubt. They come after [tokenCodes] and before
 *   [refusalCodes]. Each is compared as text, whole
 * @param refusalCodes further codes that say that a write was not done, though not under HTTP 408, 409, 425, 429 and 5xx. The service
 *   documents one code only, so which others say so is an assumption, and what is not taken for a refusal is in doubt
 * @param transport what sends requests: [OkHttpTransport], or [JavaHttpTransport] (the default; Android has no `java.net.http`), or your own
 * @param store where purchases, sessions and orders are kept, such as a [FolderStore], one for each client; default the client's own memory
 * @param options how to repeat, wait and read
 * @param sameAccount whether records of another login or base URL are of this account, of which only those have changed; default false
 * @param headers headers of your own, such as the token of your user at your own backend. It is called before each send, repeats
 *   included, so that a token which ran out is renewed; what it throws ends that send before it begins. None of Hopline's own
 *   headers may be among them
 * @param clock the time; a test may give its own
 * @param dispatcher whose threads the client works in; a test may give one that it steps through
 */
public class ResellerClient(
    username: Secret? = null,
    password: Secret? = null,
    baseUrl: String? = System.getenv("HOPLINE_BACKEND_URL"),
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
) : ResellerOperations() {
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

    /** The token that is used at present, to keep where the system keeps secrets and to start from next time. */
    public val token: Secret? get() = engine.token()

    override val waits = Reader("StaticOrder", Packed::readStaticOrder)

    override fun waited(operation: String, ended: Engine.Ended): OrderReply {
        val order = typed(operation, ended, waits)
        return OrderReply(order.orderNo, order.phase ?: Phase.UNKNOWN, order)
    }
}

/**
 * A static order as waiting for it ended: usable, over, or (`PENDING`, `UNKNOWN`) not yet, at the deadline. It lives on:
 * [ResellerClient.waitOrder] waits on.
 */
public data class OrderReply(
    /** Its number: the handle for everything that comes after. */
    val orderNo: String,
    /** Where it is. */
    override val phase: Phase,
    /** What the list of static orders shows of it. */
    val order: StaticOrder,
) : Reply {
    override val raw: Raw get() = order.raw

    override val requestId: String? get() = order.requestId
}

/** All or nothing: a token that was given must not be renewed as somebody else. */
private fun login(username: Secret?, password: Secret?, token: Secret?): Array<Pair<String, Secret?>> {
    val given = username != null || password != null || token != null
    return arrayOf(
        "username" to if (given) username else System.getenv("HOPLINE_USERNAME")?.let(::Secret),
        "password" to if (given) password else System.getenv("HOPLINE_PASSWORD")?.let(::Secret),
        "token" to token,
    )
}
