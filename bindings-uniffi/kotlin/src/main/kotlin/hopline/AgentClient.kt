package hopline

import java.math.BigDecimal
import kotlinx.serialization.json.JsonObject

/**
 * The client of one account at the agent API.
 *
 * @param apiKey the API key; without it, that of the environment's `HOPLINE_API_KEY`
 * @param baseUrl the address of the API, such as `https://host/v1`; without it, `HOPLINE_BASE_URL`
 * @param transport what sends requests: [JavaHttpTransport], [OkHttpTransport] or your own
 * @param store where records are kept
 * @param options how to repeat, wait and read
 * @param sameAccount whether records of another key are of this account all the same
 * @param dailyCapUsd the most, in USD, that this client buys in a UTC day; the account's own limit, across clients, is that of
 *   `updateBudget`
 * @param backendReady `backendReady` as the account was registered with; known to be false, nothing is bought
 */
public class AgentClient(
    apiKey: Secret? = System.getenv("HOPLINE_API_KEY")?.let(::Secret),
    baseUrl: String? = System.getenv("HOPLINE_BASE_URL"),
    transport: Transport = JavaHttpTransport(),
    store: Store = MemoryStore(),
    options: Options = Options(),
    sameAccount: Boolean = false,
    dailyCapUsd: BigDecimal? = null,
    backendReady: Boolean? = null,
) : AgentOperations() {
    override val engine: Engine =
        newEngine(
            options.told(
                "base_url" to address(baseUrl, "HOPLINE_BASE_URL"), "api_key" to apiKey, "daily_cap_usd" to dailyCapUsd,
                "backend_ready" to backendReady,
            ),
            transport, store, sameAccount, capped = dailyCapUsd != null,
        )

    /**
     * Advice on what was seen through a session. Null if this client does not follow the session.
     *
     * Nothing is sent, unless the session was opened with `autoRotate`: then it is rotated where the advice would be to, and this
     * waits for that and throws why it failed. Whoever observes the same session meanwhile waits for the same rotation.
     */
    public suspend fun observe(sessionId: String, seen: Seen): Verdict? {
        val id = sound("observe", "session_id", sessionId)
        var advice: JsonObject? = null
        val rotation = engine.enterAll("observe") { core ->
            advice = asked { core.observe(id, told(seen), Clock.unix(), Clock.monotonic()) }?.let { parse(it) as JsonObject }
            listOfNotNull(advice?.number("command")?.toUInt())
        }
        return advice?.let { told -> verdict(told, rotation.firstOrNull()?.let { end -> typed("rotate_session", end()) { data, told -> readSession(data, "data", told) } }) }
    }

    override fun waited(operation: String, ended: Engine.Ended): OpenSession {
        val session = typed(operation, ended) { data, told -> readSession(data, "data", told) }
        return OpenSession(this, session.phase ?: Phase.UNKNOWN, session)
    }
}
