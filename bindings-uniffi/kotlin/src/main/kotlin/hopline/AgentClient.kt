package hopline

import hopline.core.Move
import hopline.core.MoveAnswer
import java.lang.ref.WeakReference
import java.math.BigDecimal
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.serialization.json.JsonObject

/**
 * The client of one account at the agent API.
 *
 * @param apiKey the API key; default: the environment's `HOPLINE_API_KEY`
 * @param baseUrl the address of the API, such as `https://host/v1`; default: the environment's `HOPLINE_BASE_URL`
 * @param transport the HTTP client: [OkHttpTransport], or [JavaHttpTransport] (the default; Android has no `java.net.http`), or your own
 * @param store the store of purchases, sessions and orders, such as a [FolderStore], one for each client; default: the client's own memory
 * @param options how to repeat, wait and read
 * @param sameAccount true if records of another key or base URL are of this account, because only those have changed; default: false
 * @param dailyCapUsd the most, in USD, that all clients of the store with the same `account` spend in a UTC day, together: charges,
 * purchases in doubt and purchases under way; recharges do not count. A purchase beyond it is `refused` before it is sent. Each key counts
 * at its quote, on each day that it is sent on; a charge above its quote is counted and can pass the cap. A client without a cap does not
 * count its purchases, so give every client of a store the same cap. The account's own limit, which holds for all stores, is
 * `dailyLimitUsd` of `updateBudget`
 * @param backendReady `backendReady` from the answer of `registerAccount`. If false, purchases of sessions are `refused` before they are
 * sent, until `getAccount` says otherwise
 * @param headers headers of your own, such as the token of your user at your own backend. The function is called before each send, repeats
 * included, so that an expired token is renewed; an exception from it ends that send before it begins. Hopline's own headers can't be
 * replaced
 * @param clock the time; a test may give its own
 * @param dispatcher the dispatcher whose threads the client works in; a test may give one that it steps through
 */
public class AgentClient(
    apiKey: Secret? = variable("HOPLINE_API_KEY", "api_key")?.let(::Secret),
    baseUrl: String? = variable("HOPLINE_BASE_URL", "base_url"),
    transport: Transport = defaultTransport(),
    store: Store? = null,
    options: Options = Options(),
    sameAccount: Boolean = false,
    dailyCapUsd: BigDecimal? = null,
    backendReady: Boolean? = null,
    headers: (suspend () -> Map<String, String>)? = null,
    clock: Clock = Clock.SYSTEM,
    dispatcher: CoroutineDispatcher = Dispatchers.IO,
) : AgentCalls() {
    override val engine: Engine =
        newEngine(
            this, options.told(
                "base_url" to address(baseUrl, "HOPLINE_BASE_URL"), "api_key" to apiKey, "daily_cap_usd" to dailyCapUsd,
                "backend_ready" to backendReady, "same_account" to sameAccount, "store" to (store != null),
                "late_calls" to (store?.lateCalls == true),
            ),
            Means(transport, headers, clock, dispatcher), store,
        )

    override suspend fun observe(sessionId: String, seen: Seen): Verdict? {
        val id = sound("observe", "session_id", sessionId)
        var advice: VerdictFields? = null
        val hear = { answer: MoveAnswer -> advice = (answer as MoveAnswer.Advice).verdict?.let { Packed(it).readVerdictFields() } }
        return engine.run("observe", { Move.Observe(id, told(seen).toString()) }, hear) { rotations ->
            val rotated = rotations.singleOrNull()?.let { ended -> typed("rotate_session", ended, waits) }
            advice?.let { verdict(it, rotated) }
        }
    }

    override suspend fun releaseSession(sessionId: String): Boolean {
        val id = sound("release_session", "session_id", sessionId)
        return (engine.ask("release_session") { Move.ReleaseSession(id) } as MoveAnswer.Was).so
    }

    /**
     * Opens a pool of sessions. Opening buys nothing, unless `keepReady` asks for it. Pools of one name in one store and account share their
     * slots.
     *
     * @param name 1 to 128 bytes without control characters and `#`
     * @throws HoplineException.Invalid if an option is refused, such as a pool without a cap (`dailyCapUsd` of it or of the client), or if
     * the pool was opened with another request before
     */
    public suspend fun openPool(name: String, options: PoolOptions): Pool =
        opened("open_pool", name) { options.told(name) }

    /**
     * Joins a pool as other programs of the store have opened it, to read its status, pause, resume or drain it. A joined pool neither
     * lends nor buys.
     *
     * @throws HoplineException.Invalid if the store has no pool of that name
     */
    public suspend fun joinPool(name: String): Pool = opened("join_pool", name) { encode("name" to name) }

    private suspend fun opened(operation: String, name: String, params: () -> String): Pool =
        Pool(this, call(operation, params, { "{}" }, Reader("OpenedPool") { readOpenedPool() }).pool, name)

    /** Returns the pools in the store, by name, opened by any client. */
    public suspend fun listPools(): List<KnownPool> = call("list_pools", { "{}" }, { "{}" }, Reader("KnownPools") { readKnownPools() }).pools

    override val waits = Reader("Session", Packed::readSession)

    /** The sessions with a handle, and the number of entries at which those without a handle are dropped. */
    private val known = HashMap<String, WeakReference<KnownSession>>()
    private var most = 64

    override fun heard(operation: String, reply: Any?) {
        if (reply is Session) synchronized(known) { known[reply.sessionId]?.get() }?.hear(operation, reply)
    }

    override fun waited(operation: String, ended: Engine.Ended): OpenSession {
        val session =
            try {
                typed(operation, ended, waits)
            } catch (error: HoplineException.NotReady) {
                error.session = handle(unready(error), null)
                throw error
            }
        return handle(session, (parse(answered(ended).facts) as? JsonObject)?.text("charged_usd")?.toBigDecimalOrNull())
    }

    /** The session that was not usable at its deadline, as the last read showed it. */
    private fun unready(error: HoplineException.NotReady): Session {
        val read = error.raw?.let { parse(it.text) } as? JsonObject
        val (type, status) = read?.text("session_type") to read?.text("status")
        return Session(error.sessionId.orEmpty(), type?.let(::SessionType), SessionStatus(status.orEmpty()), phase = Phase.PENDING)
    }

    private fun handle(session: Session, charged: BigDecimal?): OpenSession {
        val state =
            synchronized(known) {
                if (known.size >= most) {
                    known.values.removeIf { it.get() == null }
                    most = 64 + 2 * known.size
                }
                known[session.sessionId]?.get()
                    ?: KnownSession(session, session.phase ?: Phase.UNKNOWN, charged).also { known[session.sessionId] = WeakReference(it) }
            }
        return OpenSession(this, state)
    }
}
