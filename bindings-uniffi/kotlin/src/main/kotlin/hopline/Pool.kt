package hopline

import hopline.core.Move
import hopline.core.MoveAnswer
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/**
 * Lends sessions, and buys, rotates and replaces them as needed: never more than its `size` at a time, over all clients of the store. It works
 * while nobody calls it, until [close], [drain] or the end of its client.
 */
public class Pool internal constructor(
    private val client: AgentClient,
    private val number: Int,
    /** Its name. */
    public val name: String,
) {
    /**
     * Waits for a session, lends it to [use], and takes it back when that returns, throws or is cancelled. After [LeaseAdvice.GIVE_BACK] leave the
     * block and enter another one: an exit never changes under a lease.
     *
     * @param target what is to be reached, such as a host: what is seen there counts for it alone
     * @param key the same key gets the same session as long as this client has it and its exit has not changed
     * @param timeout how long to wait for a session. Default 30 s
     * @throws HoplineException.Unavailable if there is none in time; at once where none can be bought for longer than that
     */
    public suspend fun <T> withLease(target: String? = null, key: String? = null, timeout: Duration = 30.seconds, use: suspend (Lease) -> T): T {
        val given = { encode("pool" to number, "target" to target, "key" to key, "timeout_ms" to timeout) }
        val lent = client.call("acquire", given, { "{}" }, LENT)
        // Nothing may suspend between the two, or who is cancelled there keeps the lease.
        try {
            return use(Lease(client, lent, target, jar(lent)))
        } finally {
            client.engine.give(Move.ReleaseLease(lent.pool.toUInt(), lent.lease))
        }
    }

    /** What callers keep with each slot's session, for as long as it has its exit. */
    private val jars = ConcurrentHashMap<Int, Jar>()

    private class Jar(val sessionId: String, val generation: Int) {
        val data = ConcurrentHashMap<String, Any>()
    }

    private fun jar(lent: PoolLease): MutableMap<String, Any> =
        checkNotNull(
            jars.compute(lent.slot) { _, known ->
                known?.takeIf { it.sessionId == lent.sessionId && it.generation == lent.generation } ?: Jar(lent.sessionId, lent.generation)
            },
        ).data

    /** How it is. With [everywhere], the store is asked what other clients have. */
    public suspend fun status(everywhere: Boolean = false): PoolStatus = ask("pool_status", STATUS, "everywhere" to everywhere)

    /** Waits until [count] of the sessions that it keeps `ready` are. */
    public suspend fun waitReady(count: Int = 1, timeout: Duration = 5.minutes): PoolStatus =
        ask("wait_ready", STATUS, "count" to count, "timeout_ms" to timeout)

    /** Buys nothing from here on, in any client; what there is is lent. */
    public suspend fun pause() {
        ask("pause_pool", rawReply)
    }

    /** Buys again, also where that was to wait until somebody says so. */
    public suspend fun resume() {
        ask("resume_pool", rawReply)
    }

    /** Lends no more, waits [grace] for leases, and releases its slots. Sessions live on for the next client. Nothing happens if its client is closed. */
    public suspend fun close(grace: Duration = 10.seconds) {
        try {
            ask("close_pool", rawReply, "grace_ms" to grace)
        } catch (failure: HoplineException) {
            // It may be the `finally` of what failed for that very reason.
            if (!client.engine.isClosed) throw failure
        }
    }

    /** The same, and terminates its dynamic sessions; [everywhere] in all clients; [includeStatic] static ones too, which are not refunded. */
    public suspend fun drain(grace: Duration = 10.seconds, everywhere: Boolean = false, includeStatic: Boolean = false) {
        ask("drain_pool", rawReply, "grace_ms" to grace, "everywhere" to everywhere, "include_static" to includeStatic)
    }

    override fun toString(): String = "Pool(name=$name)"

    private suspend fun <T> ask(operation: String, read: Reader<T>, vararg given: Pair<String, Any?>): T =
        client.call(operation, { encode("pool" to number, *given) }, { "{}" }, read)

    private companion object {
        val LENT = Reader("PoolLease") { readPoolLease() }
        val STATUS = Reader("PoolStatus") { readPoolStatus() }
    }
}

/** A session that was lent. It prints no secret. */
public class Lease internal constructor(
    private val client: AgentClient,
    private val lent: PoolLease,
    /** What it was lent for. */
    public val target: String?,
    /** A place for what belongs to the session's exit, such as cookies: it is empty again once that has changed. */
    public val data: MutableMap<String, Any>,
) {
    /** The session. */
    public val sessionId: String get() = lent.sessionId

    /** How to reach it. */
    public val proxy: Proxy get() = lent.proxy

    /** Grows whenever the session gets another exit or other credentials. */
    public val generation: Int get() = lent.generation

    /** The slot of the pool that the session is of. */
    public val slot: Int get() = lent.slot

    /** Whether it is this client's still. It is not once it was given back, the store's claim of its slot has ended, or its client is closed. */
    public val valid: Boolean get() = client.engine.isValid(lent)

    /** What to do after something was seen through it. Nothing is sent by it. */
    public fun observe(seen: Seen): LeaseAdvice {
        val wait = (seen as? Seen.Status)?.retryAfter?.inWholeMilliseconds
        val answer = client.engine.say(Move.ObserveLease(lent.pool.toUInt(), lent.lease, told(seen).toString(), wait))
        // What is not valid any more, or has another exit by now, is of no use.
        return LeaseAdvice.entries.firstOrNull { it.word == (answer as MoveAnswer.LeaseAdvice?)?.word } ?: LeaseAdvice.GIVE_BACK
    }

    /**
     * The same, of the HTTP status that a request met.
     *
     * @param retryAfter the target's header `Retry-After` as it came, which says how long to wait
     * @param date its header `Date`, from which a date in [retryAfter] counts; without it, from now
     */
    public fun observe(status: Int, retryAfter: String? = null, date: String? = null): LeaseAdvice {
        val wait = retryAfter?.let { ask("retry_after", "header" to it, "date" to date, "now" to client.engine.clock.unix()).text("wait_ms")?.toLong() }
        return observe(Seen.Status(status, wait?.milliseconds))
    }

    /** The same, of the exception that a request met: [Seen.of]. */
    public fun observe(error: Throwable): LeaseAdvice = observe(Seen.of(error))

    override fun toString(): String = "Lease(sessionId=$sessionId, slot=$slot, generation=$generation)"
}
