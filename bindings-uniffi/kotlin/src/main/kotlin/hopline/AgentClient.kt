package hopline

import hopline.core.Client
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.serialization.json.JsonObject

/**
 * The client of one account. Any number of coroutines may use it at once, and a coroutine that is cancelled gives its command
 * up: its request is aborted, and what may have been done keeps its record.
 *
 * Closing it gives up what is under way, keeps the records, and ends no session.
 *
 * @param apiKey the API key; without it, that of the environment's `HOPLINE_API_KEY`
 * @param baseUrl the address of the API, such as `https://host/v1`; without it, `HOPLINE_BASE_URL`
 * @param transport what sends requests: [JavaHttpTransport], [OkHttpTransport] or your own
 * @param store where records are kept
 * @param options how to repeat, wait and read
 * @param sameAccount whether records of another key are of this account all the same
 */
public class AgentClient(
    apiKey: Secret? = System.getenv("HOPLINE_API_KEY")?.let(::Secret),
    baseUrl: String? = System.getenv("HOPLINE_BASE_URL"),
    transport: Transport = JavaHttpTransport(),
    store: Store = MemoryStore(),
    options: Options = Options(),
    sameAccount: Boolean = false,
) : AgentOperations(), AutoCloseable {
    override val engine: Engine
    override val self: AgentClient get() = this

    init {
        val missing = "`base_url` is missing; give it or set HOPLINE_BASE_URL"
        val told = options.told(baseUrl ?: throw refusal("invalid", "client", missing, field = "base_url", advice = "change_request"), apiKey)
        // What is wrong with the options is said before the store is touched.
        val core = newCore(told)
        val capped = options.dailyCapUsd != null
        engine = Engine(core, transport, Engine.opening { Records(told, store, sameAccount, capped).also { if (capped) it.count(core) } })
    }

    /** Progress, from when it is collected until the client is closed. */
    public val events: Flow<Event> get() = engine.events.flow

    /** What the store holds: what this client has, and what no living client has. Nothing is sent. */
    public suspend fun saved(): List<Saved> = engine.withRecords("saved") { core -> savedList(core.savedList()) + free().saved }

    /** Records of the store that this client leaves alone, such as those of another account. */
    public suspend fun rejected(): List<Rejected> = engine.withRecords("rejected") { free().rejected }

    /** Goes on with what a record holds, and gives its session or its answer. */
    public suspend fun resume(record: String): Reply {
        adopt("resume", record)
        return any("resume", engine.run("resume", null) { it.resume(record) })
    }

    /** Goes on with all that can be resumed, also of clients that are no more. Each has its session, its answer or its failure. */
    public suspend fun resumeAll(): List<Result<Reply>> {
        engine.withRecords("resume_all") { core -> adopt(core) { true } }
        val commands = engine.enterAll("resume_all", Client::resumeAll)
        return coroutineScope {
            commands.map { end ->
                // At once, so that each has somebody who gives it up if this is cancelled.
                async(start = CoroutineStart.UNDISPATCHED) {
                    val ended = end()
                    try {
                        Result.success(any("resume", ended))
                    } catch (failure: HoplineException) {
                        Result.failure(failure)
                    }
                }
            }.awaitAll()
        }
    }

    /** Closes a doubt by hand, once you know what happened. Whether there was one. */
    public suspend fun settle(record: String, happened: Boolean): Boolean {
        adopt("settle", record)
        return engine.ask("settle") { it.settle(record, happened) }
    }

    /** Forgets a session or an accepted intent, whose record goes. Whether there was one. What is in doubt stays. */
    public suspend fun forget(record: String): Boolean {
        adopt("forget", record)
        return engine.ask("forget") { it.forget(record) }
    }

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
        return advice?.let { told -> verdict(told, rotation.firstOrNull()?.let { end -> rotated(end()) }) }
    }

    /** Gives up what is under way, waits until its records are kept, ends no session. */
    override fun close(): Unit = engine.close()

    private suspend fun adopt(operation: String, record: String) {
        sound(operation, "record", record)
        engine.withRecords(operation) { core -> adopt(core) { it.record == record } }
    }
}
