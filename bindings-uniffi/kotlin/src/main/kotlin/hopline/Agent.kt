package hopline

import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.emptyFlow

/**
 * The agent API as an interface: [AgentClient] implements it. A class that takes an [Agent] can be tested with a fake, which implements the
 * methods that it needs; all others throw a [NotImplementedError] that names them. Only pools need an [AgentClient].
 */
public interface Agent : AgentOperations {
    /**
     * Returns advice after an observation through a session. Null if this client does not follow the session.
     *
     * Nothing is sent, unless the session was opened with `autoRotate`: then the session is rotated if the advice is to rotate, and this
     * call waits for the rotation and throws its failure. Other observers of the same session wait for the same rotation.
     */
    public suspend fun observe(sessionId: String, seen: Seen): Verdict? = missing("observe")

    /**
     * Stops following a session, without ending it: another client may then take it by its intent or [resumeAll]. Returns true if this
     * client followed it.
     */
    public suspend fun releaseSession(sessionId: String): Boolean = missing("releaseSession")
}

/** The reseller API as an interface, as [Agent] is one for the agent API: [ResellerClient] implements it. */
public interface Reseller : ResellerOperations

/** The operations that both APIs have. A fake has no events by default, and nothing is done to close it. */
public interface Operations : AutoCloseable {
    /** The events, from the beginning of the collection until the client is closed. */
    public val events: Flow<Event> get() = emptyFlow()

    /** Returns the entries of the store for this account, of all clients. Nothing is sent. */
    public suspend fun saved(): List<Saved> = missing("saved")

    /**
     * Resumes a record, and returns its session, its order or its answer. Omitted options have their defaults, not the values of the first
     * start.
     *
     * @param credentials of a session: true to request its username and password
     * @param deadline how long to wait for a session or an order; default: 5 minutes
     * @param ends the statuses, beside those of the contract, that mean that it is over
     * @param timeout how long one attempt may take; default: 20 s
     * @param headers further headers of its requests
     */
    public suspend fun resume(
        record: String,
        credentials: Boolean? = null,
        deadline: Duration? = null,
        ends: List<String>? = null,
        timeout: Duration? = null,
        headers: Map<String, Secret>? = null,
    ): Reply = missing("resume")

    /**
     * Resumes an intent, as [resume] does for a record: an operation in doubt, a session, an order, an accepted answer. Null if the intent
     * is not known. Nothing new is ever bought.
     *
     * @throws HoplineException.Ended if its session has ended
     * @throws HoplineException.Busy if another living client of the store owns the intent
     */
    public suspend fun resumeIntent(
        intent: String,
        credentials: Boolean? = null,
        deadline: Duration? = null,
        ends: List<String>? = null,
        timeout: Duration? = null,
        headers: Map<String, Secret>? = null,
    ): Reply? = missing("resumeIntent")

    /**
     * Resumes everything that no living client owns, including operations of processes that crashed, 16 at a time: every doubt that can be
     * sent again, and the sessions and orders that were begun without an intent, which this client owns from then on. Sessions and orders
     * with an intent are left for the next start of the intent. Returns for each its session, its order, its answer or its failure. Options
     * are those of [resume], for each of them.
     */
    public suspend fun resumeAll(
        credentials: Boolean? = null,
        deadline: Duration? = null,
        ends: List<String>? = null,
        timeout: Duration? = null,
        headers: Map<String, Secret>? = null,
    ): List<Result<Reply>> = missing("resumeAll")

    /**
     * Settles a doubt by hand, once you know its outcome. Returns true if there was one.
     *
     * @param became the result, if it is known: the id of a session or recharge, the number of an order or sub-user. An operation that
     * waits for its result continues with it, by its intent or record; for other operations the intent then returns it as the answer
     * @param early true to settle as not happened although less than an hour has passed since the last send. A request may be under way for
     * that long, and an operation that is settled too early may be bought twice. Default: false
     * @throws HoplineException.Refused if the record has changed since you read it, or before [Saved.settleFrom]
     * @throws HoplineException.Busy if another living client owns it
     */
    public suspend fun settle(record: String, happened: Boolean, became: String? = null, early: Boolean = false): Boolean = missing("settle")

    /**
     * Forgets a session, an order that no call waits for, an accepted intent, an answer that was not taken or a record that can't be read.
     * Returns true if there was one. An operation in doubt or under way stays, and so does a record of another account or base URL, unless
     * this client was made with `sameAccount`.
     *
     * @throws HoplineException.Refused if the record has changed since you read it, or belongs to a session of this client that is not
     * over: `terminateSession` ends it, `releaseSession` releases it
     * @throws HoplineException.Busy if another living client owns it
     */
    public suspend fun forget(record: String): Boolean = missing("forget")

    /**
     * Cancels everything that is under way, and releases everything that this client has in the store. From then on nothing is sent except
     * terminations that were requested before, and no lease is valid.
     *
     * @param timeout how long to wait for a store that does not answer; its calls may or may not be done then. Default: 10 s
     */
    public suspend fun shutdown(timeout: Duration = 10.seconds): Unit = Unit

    override fun close(): Unit = Unit
}

/** The end of a call that a fake does not answer. */
internal fun missing(name: String): Nothing = throw NotImplementedError("this fake has no `$name`")
