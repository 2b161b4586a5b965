package hopline

import hopline.core.Answer
import hopline.core.Move
import hopline.core.Taken
import hopline.core.misfit
import hopline.core.pageParams
import hopline.core.pageTurn
import hopline.core.savedPage
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.runBlocking

/** Writes the parameters or the options of a call as JSON, outside the caller's thread, since that takes time. */
internal typealias Params = () -> String

/**
 * The client of one account at one of the two APIs: the common part of [AgentClient] and [ResellerClient]. Any number of coroutines may use
 * it at once, from any dispatcher: the work is done in other threads. Cancelling a coroutine cancels its call: the request is aborted, and
 * an operation that took effect, or may have, keeps its record, which [saved] shows.
 *
 * Closing the client cancels its calls, releases everything that it has in the store, and ends no session and no order. A client is in use
 * as long as there is a reference to it, or to a pool, a lease, a session or a walk of it, or a caller waits for it. A client that is
 * garbage-collected is closed, and a warning is logged, by `java.util.logging` as `hopline`.
 *
 * @param W the result of waiting
 */
public abstract class HoplineClient<W : Reply> internal constructor() : Operations {
    internal abstract val engine: Engine

    /** The reader of the answers that [waited] returns. */
    internal abstract val waits: Reader<out Reply>

    override val events: Flow<Event> get() = engine.events.flow

    override suspend fun saved(): List<Saved> {
        val all = ArrayList<Saved>()
        var after: String? = null
        do {
            val from = after
            val page = run("saved", { Move.Saved(from) }) { ended ->
                answered(ended)
                Packed(savedPage(ended.data.raw.text)).readSavedPage()
            }
            all += page.entries
            after = page.after
        } while (after != null)
        return all
    }

    override suspend fun resume(
        record: String,
        credentials: Boolean?,
        deadline: Duration?,
        ends: List<String>?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
    ): Reply {
        val options = resuming(credentials, deadline, ends, timeout, headers)
        return run("resume", { Move.Resume(sound("resume", "record", record), options()) }, ::resumed)
    }

    override suspend fun resumeIntent(
        intent: String,
        credentials: Boolean?,
        deadline: Duration?,
        ends: List<String>?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
    ): Reply? {
        val options = resuming(credentials, deadline, ends, timeout, headers)
        return run("resume", { Move.ResumeIntent(sound("resume", "intent", intent), options()) }) { ended ->
            if ((ended.taken as? Taken.Answered)?.answer?.nothing == true) null else resumed(ended)
        }
    }

    override suspend fun resumeAll(
        credentials: Boolean?,
        deadline: Duration?,
        ends: List<String>?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
    ): List<Result<Reply>> {
        val options = resuming(credentials, deadline, ends, timeout, headers, "resume_all")
        return engine.run("resume_all", { Move.ResumeAll(options()) }) { all ->
            answered(all.first())
            all.drop(1).map(::result)
        }
    }

    private fun result(ended: Engine.Ended): Result<Reply> =
        try {
            Result.success(resumed(ended))
        } catch (failure: HoplineException) {
            Result.failure(failure)
        }

    override suspend fun settle(record: String, happened: Boolean, became: String?, early: Boolean): Boolean =
        acted("settle") { Move.Settle(sound("settle", "record", record), happened, became?.let { sound("settle", "became", it) }, early) }

    override suspend fun forget(record: String): Boolean = acted("forget") { Move.Forget(sound("forget", "record", record)) }

    override suspend fun shutdown(timeout: Duration): Unit = engine.shutdown(timeout)

    /**
     * Does the same as [shutdown], and blocks the thread meanwhile, whichever dispatcher it belongs to. On an app's main thread call
     * [shutdown] instead.
     */
    override fun close(): Unit = runBlocking { engine.shutdownElsewhere(10.seconds) }

    /** The result of waiting if a wait was resumed; otherwise the answer alone. */
    private fun resumed(ended: Engine.Ended): Reply =
        if (answered(ended).let { Packed(ended.data.packed).text() } == waits.type) waited("resume", ended) else typed("resume", ended, rawReply)

    internal suspend fun lookUp(record: String, params: Params, options: Params): Reconciliation {
        sound("reconcile", "record", record)
        return call("reconcile", params, options, Reader("Reconciliation", Packed::readReconciliation))
    }

    private suspend fun acted(operation: String, what: () -> Move): Boolean =
        run(operation, what) { ended -> answered(ended).let { ended.data.raw.text == "true" } }

    internal suspend fun <T> call(operation: String, params: Params, options: Params, read: Reader<T>): T =
        run(operation, begin(operation, params, options)) { typed(operation, it, read) }

    internal fun <I, P : Reply> walk(
        operation: String,
        params: Params,
        options: Params,
        position: String?,
        maxPages: Int?,
        read: Reader<P>,
        items: (P) -> List<I>,
    ): Pages<I, P> =
        Pages(ask("walk", "operation" to operation, "position" to position, "max_pages" to maxPages).text("position"), items) { at ->
            val given = { asked { pageParams(at, sound(operation, "parameters", params())) } }
            run(operation, begin(operation, given, options)) { ended ->
                val page = typed(operation, ended, read)
                page to turn(asked { pageTurn(at, (ended.taken as Taken.Answered).answer.facts) })
            }
        }

    /** Starts a command that waits, and reads its answer as that of `reads`, an operation of the table. */
    internal suspend fun wait(operation: String, reads: String, params: Params, options: Params): W =
        run(operation, begin(operation, params, options)) { waited(reads, it) }

    internal suspend fun <T> run(operation: String, what: () -> Move, read: (Engine.Ended) -> T): T =
        engine.run(operation, what) { read(it.single()) }

    /** Called with the answer of each operation. */
    internal open fun heard(operation: String, reply: Any?) {}

    internal abstract fun waited(operation: String, ended: Engine.Ended): W

    private fun begin(operation: String, params: Params, options: Params): () -> Move =
        { Move.Start(operation, sound(operation, "parameters", params()), sound(operation, "options", options())) }

    internal fun <T> typed(operation: String, ended: Engine.Ended, reader: Reader<T>): T {
        val answer = answered(ended)
        val packed = Packed(ended.data.packed)
        if (packed.text() != reader.type && reader.type != "") {
            throw exception(misfit(operation, answer.facts, ended.data.raw.text, "it is the answer of another operation"))
        }
        val phase = answer.phase?.let { word -> Phase.entries.first { it.word == word } }
        return reader.read(packed, Told(ended.data.raw, answer.requestId, phase)).also { heard(operation, it) }
    }

    internal fun answered(ended: Engine.Ended): Answer =
        when (val taken = ended.taken) {
            is Taken.Failed -> throw exception(taken.error).also { it.notes = ended.notes }
            is Taken.Answered -> taken.answer
        }
}

private fun resuming(
    credentials: Boolean?, deadline: Duration?, ends: List<String>?, timeout: Duration?, headers: Map<String, Secret>?, operation: String = "resume",
): Params = {
    val options = encode("credentials" to credentials, "deadline_ms" to deadline, "ends" to ends, "timeout_ms" to timeout, "headers" to headers)
    sound(operation, "options", options)
}

/** Drives a new core for a client, with these options. Invalid options throw at once. */
internal fun newEngine(client: HoplineClient<*>, options: Secret, means: Means, store: Store?): Engine =
    Engine(newCore(options), means, store?.let(StoreHandle::of)).also { watch(client, it) }

/**
 * A variable of the environment, without the line break that a file or a shell may have left behind it; null if it is not set. A blank one
 * is refused by its name: a key that is lost on its way must not make a client without one.
 */
internal fun variable(name: String, field: String): String? {
    val found = System.getenv(name) ?: return null
    // Space may be a part of a password.
    return (if (field == "password") found.trim('\r', '\n') else found.trim()).ifEmpty {
        throw refused("client", "blank", "field" to field, "variable" to name)
    }
}

/** The address of an API, which must be given or be in the environment. */
internal fun address(given: String?, variable: String): String =
    given ?: throw refused("client", "base_url", "variable" to variable)
