package hopline

import hopline.core.Client
import hopline.core.Taken
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow

/**
 * The client of one account at one of the two APIs: what [AgentClient] and [ResellerClient] have in common. Any number of
 * coroutines may use it at once, and a coroutine that is cancelled gives its command up: its request is aborted, and what may have
 * been done keeps its record.
 *
 * Closing it gives up what is under way, keeps the records, and ends no session and no order.
 *
 * @param W what waiting gives
 */
public abstract class HoplineClient<W : Reply> internal constructor() : Caller<W>(), AutoCloseable {
    /** Progress, from when it is collected until the client is closed. */
    public val events: Flow<Event> get() = engine.events.flow

    /** What the store holds: what this client has, and what no living client has. Nothing is sent. */
    public suspend fun saved(): List<Saved> = engine.withRecords("saved") { core -> savedList(core.savedList()) + free().saved }

    /** Records of the store that this client leaves alone, such as those of another account. */
    public suspend fun rejected(): List<Rejected> = engine.withRecords("rejected") { free().rejected }

    /** Goes on with what a record holds, and gives its session, its order or its answer. */
    public suspend fun resume(record: String): Reply {
        adopt("resume", record)
        return resumed("resume", engine.run("resume", null) { it.resume(record, "{}") })
    }

    /** Goes on with all that can be resumed, also of clients that are no more. Each has its session, its order, its answer or its failure. */
    public suspend fun resumeAll(): List<Result<Reply>> {
        engine.withRecords("resume_all") { core -> adopt(core) { true } }
        val commands = engine.enterAll("resume_all", Client::resumeAll)
        return coroutineScope {
            commands.map { end ->
                // At once, so that each has somebody who gives it up if this is cancelled.
                async(start = CoroutineStart.UNDISPATCHED) {
                    val ended = end()
                    try {
                        Result.success(resumed("resume", ended))
                    } catch (failure: HoplineException) {
                        Result.failure(failure)
                    }
                }
            }.awaitAll()
        }
    }

    /**
     * Closes a doubt by hand, once you know what happened. Whether there was one.
     *
     * @param became What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
     * waited for goes on with that, by its intent or record; anything else is what the intent answers with.
     */
    public suspend fun settle(record: String, happened: Boolean, became: String? = null): Boolean {
        val number = became?.let { sound("settle", "became", it) }
        adopt("settle", record)
        return engine.ask("settle") { asked { it.settle(record, happened, number) } }
    }

    /** Forgets a session, an order that nobody waits for or an accepted intent, whose record goes. Whether there was one. What is in doubt stays. */
    public suspend fun forget(record: String): Boolean {
        adopt("forget", record)
        return engine.ask("forget") { it.forget(record) }
    }

    /** Gives up what is under way, waits until its records are kept, ends no session and no order. */
    override fun close(): Unit = engine.close()

    /** What waiting gave where that was what was resumed; otherwise the answer alone. */
    private fun resumed(operation: String, ended: Engine.Ended): Reply =
        if ((ended.taken as? Taken.Answered)?.answer?.phase == null) typed(operation, ended, ::rawReply) else waited(operation, ended)

    internal suspend fun lookUp(record: String, params: String, call: Call): Reconciliation {
        adopt("reconcile", record)
        return call("reconcile", params, call) { data, told -> readReconciliation(data, "data", told) }
    }

    private suspend fun adopt(operation: String, record: String) {
        sound(operation, "record", record)
        engine.withRecords(operation) { core -> adopt(core) { it.record == record } }
    }
}

/** Drives a new core with these options. What is wrong with them is said before the store is touched. */
internal fun newEngine(options: Secret, transport: Transport, store: Store, sameAccount: Boolean, capped: Boolean): Engine {
    val core = newCore(options)
    return Engine(core, transport, Engine.opening { Records(options, store, sameAccount, capped).also { if (capped) it.count(core) } })
}

/** The address of an API, which must come from somewhere. */
internal fun address(given: String?, variable: String): String =
    given ?: throw refusal("invalid", "client", "`base_url` is missing; give it or set $variable", field = "base_url", advice = "change_request")
