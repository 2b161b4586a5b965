package hopline

import hopline.core.Client
import hopline.core.Taken
import kotlin.time.Duration
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.runBlocking

/**
 * The client of one account at one of the two APIs: what [AgentClient] and [ResellerClient] have in common. Any number of
 * coroutines may use it at once, from any dispatcher: the work is done elsewhere. Cancelling a coroutine cancels its call: the
 * request is aborted, and what was done, or may have been, keeps its record, which [saved] shows.
 *
 * The store is opened by the first call. Closing the client cancels its calls, keeps the records, and ends no session and no order.
 *
 * @param W what waiting gives
 */
public abstract class HoplineClient<W : Reply> internal constructor() : Caller<W>(), AutoCloseable {
    /** Progress, from when it is collected until the client is closed. */
    public val events: Flow<Event> get() = engine.events.flow

    /** What the store holds: what this client has, and what no living client has. Nothing is sent. */
    public suspend fun saved(): List<Saved> = engine.withRecords("saved") { core -> saved(core) }

    /** Records of the store that this client leaves alone, such as those of another account. */
    public suspend fun rejected(): List<Rejected> = engine.withRecords("rejected") { free().rejected }

    /**
     * Goes on with what a record holds, and gives its session, its order or its answer. Options that are left out have their
     * defaults, not what the first start had.
     *
     * @param credentials of a session: whether its username and password are asked for
     * @param deadline how long to wait for a session or an order; default 5 minutes
     * @param ends the statuses, beside those that the contract names, that mean that it is over
     * @param timeout how long one attempt may take; default 20 s
     * @param headers further headers of its requests
     */
    public suspend fun resume(
        record: String,
        credentials: Boolean? = null,
        deadline: Duration? = null,
        ends: List<String>? = null,
        timeout: Duration? = null,
        headers: Map<String, Secret>? = null,
    ): Reply {
        val call = Call(credentials = credentials, deadline = deadline, ends = ends, timeout = timeout, headers = headers)
        return adopting("resume", record) {
            run("resume", null, { it.resume(record, sound("resume", "options", call.told())) }) { resumed("resume", it) }
        }
    }

    /**
     * Goes on with what an intent stands for, as [resume] does: an operation in doubt, a session, an order, an accepted answer. Null if
     * it stands for nothing. Nothing new is ever bought.
     *
     * @throws HoplineException.Ended if its session has ended
     * @throws HoplineException.Busy if another living client of the store has the intent
     */
    public suspend fun resumeIntent(
        intent: String,
        credentials: Boolean? = null,
        deadline: Duration? = null,
        ends: List<String>? = null,
        timeout: Duration? = null,
        headers: Map<String, Secret>? = null,
    ): Reply? {
        val call = Call(credentials = credentials, deadline = deadline, ends = ends, timeout = timeout, headers = headers)
        val name = sound("resume", "intent", intent)
        return engine.run("resume", name, { core ->
            listOfNotNull(core.resumeIntent(name, sound("resume", "options", call.told())))
        }) { ended -> ended.singleOrNull()?.let { resumed("resume", it) } }
    }

    /** Goes on with all that can be resumed, including what processes that crashed left. Each gives its session, its order, its answer or its failure. */
    public suspend fun resumeAll(): List<Result<Reply>> {
        try {
            engine.withRecords("resume_all") { core -> adopt(core) { true } }
            return engine.run("resume_all", null, Client::resumeAll) { all -> all.map(::result) }
        } finally {
            engine.releaseIntents()
        }
    }

    private fun result(ended: Engine.Ended): Result<Reply> =
        try {
            Result.success(resumed("resume", ended))
        } catch (failure: HoplineException) {
            Result.failure(failure)
        }

    /**
     * Closes a doubt by hand, once you know what happened. Returns whether there was one.
     *
     * @param became What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
     * waited for goes on with that, by its intent or record; anything else is what the intent answers with.
     */
    public suspend fun settle(record: String, happened: Boolean, became: String? = null): Boolean {
        val number = became?.let { sound("settle", "became", it) }
        return adopting("settle", record) { engine.ask("settle") { asked { it.settle(record, happened, number) } } }
    }

    /**
     * Forgets a session, an order that nobody waits for, an accepted intent, an answer that nobody took or a record that was refused.
     * Returns whether there was one and its record is gone. What is in doubt stays, as does what a living client has.
     */
    public suspend fun forget(record: String): Boolean =
        adopting("forget", record) { engine.ask("forget") { it.forget(record) } && engine.isKept(record) }

    /** Cancels what is under way and waits until its records are kept. It ends no session and no order. */
    public suspend fun shutdown(): Unit = engine.shutdown()

    /** Does what [shutdown] does, and blocks the thread meanwhile. On an app's main thread call [shutdown] instead. */
    override fun close(): Unit = runBlocking { shutdown() }

    /** What waiting gave where that was what was resumed; otherwise the answer alone. */
    private fun resumed(operation: String, ended: Engine.Ended): Reply =
        if ((ended.taken as? Taken.Answered)?.answer?.phase == null) typed(operation, ended, ::rawReply) else waited(operation, ended)

    internal suspend fun lookUp(record: String, params: Params, call: Call): Reconciliation =
        adopting("reconcile", record) { call("reconcile", params, call) { data, told -> readReconciliation(data, "data", told) } }

    /** Takes up a record of a client that is no more, does something with it, and gives back what is not needed any longer. */
    private suspend fun <T> adopting(operation: String, record: String, work: suspend () -> T): T {
        sound(operation, "record", record)
        try {
            engine.withRecords(operation) { core -> adopt(core) { it.record == record } }
            return work()
        } finally {
            engine.releaseIntents()
        }
    }
}

/** Drives a new core with these options. What is wrong with them is said at once; the store is opened by the first call. */
internal fun newEngine(options: Secret, means: Means, store: Store, sameAccount: Boolean, capped: Boolean): Engine =
    Engine(newCore(options), means, Records(options, store, sameAccount, capped))

/** The address of an API, which must come from somewhere. */
internal fun address(given: String?, variable: String): String =
    given ?: throw refusal("invalid", "client", "`base_url` is missing; give it or set $variable", field = "base_url", advice = "change_request")
