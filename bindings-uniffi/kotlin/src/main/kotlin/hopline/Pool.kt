package hopline

import hopline.core.Move
import hopline.core.MoveAnswer
import java.time.Instant
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/**
 * Lends sessions, and buys, rotates and replaces them as needed: never more than its `size` at a time, over all clients of the store. A
 * pool works in the background until [close], [drain] or the end of its client.
 */
public class Pool internal constructor(
    private val client: AgentClient,
    private val number: Int,
    /** The name of the pool. */
    public val name: String,
) {
    /**
     * Waits for a session, lends it to [use], and takes it back when that returns, throws or is cancelled. After [LeaseAdvice.GIVE_BACK]
     * leave the block and enter another one: an exit never changes under a lease. The pool knows of a failed request only what
     * [Lease.observe] is given, so observe an exception before the block throws it.
     *
     * @param target the target of the requests, such as a host: blocks that are observed for it count for this target alone
     * @param key a key for a sticky session: the same key gets the same session as long as this client has it and its exit has not changed
     * @param avoid a session that is not wanted, by its id, such as that of the attempt before
     * @param timeout how long to wait for a session. Default: 30 s
     * @throws HoplineException.Unavailable if there is none in time, at once if none can be; its message has the counts, and `retryAt`, if
     * known, is when to come again
     */
    public suspend fun <T> withLease(
        target: String? = null,
        key: String? = null,
        avoid: String? = null,
        timeout: Duration = 30.seconds,
        use: suspend (Lease) -> T,
    ): T {
        val given = { encode("pool" to number, "target" to target, "key" to key, "avoid" to avoid, "timeout_ms" to timeout) }
        val lent = client.call("acquire", given, { "{}" }, LENT)
        // Nothing may suspend between the two, or a cancelled caller keeps the lease.
        val lease = Lease(client, lent, target, data(lent))
        try {
            return use(lease)
        } finally {
            lease.giveBack()
        }
    }

    /** The callers' data for each slot's session, for as long as it has its exit. */
    private val data = ConcurrentHashMap<Int, LeaseData>()

    private fun data(lent: PoolLease): LeaseData {
        val known = data.compute(lent.slot) { _, before -> before?.takeIf { it.isOf(lent) } ?: LeaseData(lent.sessionId, lent.generation) }
        return checkNotNull(known).also { it.take(lent.data) }
    }

    /**
     * Returns the status. With [everywhere], the slots of other clients are read from the store first; otherwise they count as this client
     * saw them last, or as `unknown`.
     */
    public suspend fun status(everywhere: Boolean = false): PoolStatus = ask("pool_status", STATUS, "everywhere" to everywhere)

    /** Waits until [count] sessions are free, at most the pool's `keepReady`. */
    public suspend fun waitReady(count: Int = 1, timeout: Duration = 5.minutes): PoolStatus =
        ask("wait_ready", STATUS, "count" to count, "timeout_ms" to timeout)

    /** Stops buying until [resume], in every client of the store, also in those that open the pool later. Existing sessions are lent. */
    public suspend fun pause() {
        ask("pause_pool", rawReply)
    }

    /** Buys again, in every client of the store, even if the pool was drained or had stopped until a person or program acts. */
    public suspend fun resume() {
        ask("resume_pool", rawReply)
    }

    /**
     * Stops lending, waits [grace] for leases, and releases the slots. Sessions stay for the next client. Does nothing if its client is
     * closed.
     */
    public suspend fun close(grace: Duration = 10.seconds) {
        try {
            ask("close_pool", rawReply, "grace_ms" to grace)
        } catch (failure: HoplineException) {
            // This call may be in the `finally` of a failure with the same cause.
            if (!client.engine.isClosed) throw failure
        }
    }

    /**
     * Closes the pool and terminates the dynamic sessions of this client, whose prepaid traffic is lost. The pool stays paused
     * until [resume], in every client of the store.
     *
     * @param grace how long it may take, at least 5 s: the last 5 s of it, or half of less than 10 s, are for terminating sessions; until
     * then leases are waited for
     * @param everywhere true if all clients do the same, and the sessions that none of them has are terminated, too
     * @param includeStatic true if static sessions are terminated, too; they are not refunded
     * @throws HoplineException.Unavailable if sessions still live after that time, which it names
     * @throws HoplineException.Misuse if the pool is closed
     */
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

/** A lent session. Its text shows no secret. */
public class Lease internal constructor(
    private val client: AgentClient,
    private val lent: PoolLease,
    /** The target of the lease. */
    public val target: String?,
    private val kept: LeaseData,
) {
    @Volatile
    private var isOver = false

    /** The time to come again for the target, as of the last [observe]; null if none is known. It stays when the lease is given back. */
    @Volatile
    public var retryAt: Instant? = null
        private set

    /** The session. */
    public val sessionId: String get() = lent.sessionId

    /**
     * The proxy of the session.
     *
     * @throws HoplineException.Misuse if the lease was given back
     */
    public val proxy: Proxy get() = lent.proxy.also { refuseIfOver() }

    /**
     * A place for data that belongs to the session's exit, such as cookies: the map is empty again after a change of the exit.
     *
     * Members that are JSON (texts, truth values, numbers, and lists and maps of them, by text) are kept by the store when the lease is
     * given back, up to 4 KB together, so another client finds them as whoever had the session last left them: whole numbers as `Long`,
     * others as `BigDecimal`. All others, such as an HTTP client, stay in this client.
     *
     * @throws HoplineException.Misuse if the lease was given back
     */
    public val data: MutableMap<String, Any> get() = kept.values.also { refuseIfOver() }

    /** The generation, which grows whenever the session gets another exit or other credentials. */
    public val generation: Int get() = lent.generation

    /** The slot of the session in the pool. */
    public val slot: Int get() = lent.slot

    /**
     * True as long as this client has the lease: until it was given back, the store's claim of its slot has ended, or its client is closed.
     */
    public val valid: Boolean get() = client.engine.isValid(lent)

    /**
     * Never lends the session again: once the lease was given back, a dynamic one is terminated and loses its prepaid traffic, and another
     * one is bought in its place unless the pool's `replace` is `NEVER`.
     *
     * @throws HoplineException.Misuse if the lease was given back
     */
    public fun discard() {
        refuseIfOver()
        client.engine.say(Move.DiscardLease(lent.pool.toUInt(), lent.lease))
    }

    /** Returns advice after an observation through the lease. Nothing is sent. */
    public fun observe(seen: Seen): LeaseAdvice {
        val wait = (seen as? Seen.Status)?.retryAfter?.inWholeMilliseconds
        val answer = client.engine.say(Move.ObserveLease(lent.pool.toUInt(), lent.lease, told(seen).toString(), wait))
        // A lease that is not valid any more, or whose exit has changed, is of no use.
        val word = (answer as MoveAnswer.LeaseAdvice?)?.word ?: return LeaseAdvice.GIVE_BACK
        retryAt = client.engine.retryAt(lent)
        return LeaseAdvice.entries.firstOrNull { it.word == word } ?: LeaseAdvice.GIVE_BACK
    }

    /**
     * Returns advice after the HTTP status of a request.
     *
     * @param retryAfter the target's header `Retry-After` as it came
     * @param date its header `Date`, from which a date in [retryAfter] counts; default: now
     */
    public fun observe(status: Int, retryAfter: String? = null, date: String? = null): LeaseAdvice {
        val wait = retryAfter?.let { ask("retry_after", "header" to it, "date" to date, "now" to client.engine.clock.unix()).text("wait_ms")?.toLong() }
        return observe(Seen.Status(status, wait?.milliseconds))
    }

    /** Returns advice after the exception of a request: [Seen.of]. */
    public fun observe(error: Throwable): LeaseAdvice = observe(Seen.of(error))

    internal suspend fun giveBack() {
        isOver = true
        client.engine.give(lent, kept)
    }

    private fun refuseIfOver() {
        if (isOver) throw over()
    }

    override fun toString(): String = "Lease(sessionId=$sessionId, slot=$slot, generation=$generation)"
}
