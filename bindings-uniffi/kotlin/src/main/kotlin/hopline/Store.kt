package hopline

import java.io.IOException
import java.math.BigDecimal
import kotlin.time.Duration

/**
 * Where a client keeps its purchases, sessions and orders, so that they survive a crash: a key-value store with owners.
 * [FolderStore] is one; implement this interface to keep them in a database of your own.
 *
 * An object of it belongs to one client, also once that is closed. The client decides what is stored; the store only does what it is asked. Names are ASCII text,
 * data is bytes that hold no secret. A name is owned by one living client at a time. **Every call may be repeated and then does nothing
 * new.** A call that throws may be done or not: the client repeats it, or treats it as failed. It must not be done after it has thrown, and
 * was surely not done if it throws [StoreNotOpenedException]. Calls about different names may come at
 * once. What a client owned must become free when it has crashed, and when it was garbage-collected without [close].
 *
 * The cases in the repository's `tests/store`, which are data, are what every store has to pass.
 */
public interface Store {
    /**
     * Makes this client the owner of these names, of [most] at most: first those that it owns already, then free ones that have
     * data, then other free ones.
     */
    public suspend fun claim(names: List<String>, most: Int): Claim

    /**
     * Stores data under a name. It must be on the disk when this returns; a crash before leaves the old data or the new. Returns false,
     * and changes nothing, if this client does not own the name.
     *
     * @param new the name has no data yet and nobody else owns it: this client owns it from now on. If it has data, that is false
     * @param keepFor after that time the store may drop the data, unless somebody owns the name then; null for never
     * @param release whether this client lets go of the name in the same step
     */
    public suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean

    /**
     * Deletes the data of a name, which nobody owns afterwards. Returns true also if there is none, and false, changing nothing, if there is
     * and this client does not own the name.
     */
    public suspend fun delete(name: String): Boolean

    /** Lets go of those names that this client owns; of all of them if [names] is null. */
    public suspend fun release(names: List<String>?)

    /**
     * The names of a space that have data, in the order of their bytes: those after [after], 500 at most. The space is what a name has before
     * its dot. [open] leaves out names whose last put had a `keepFor`. Claims nothing.
     */
    public suspend fun list(space: String, after: String?, open: Boolean): StorePage

    /**
     * Sets what an entry counts on a day of a space, in USD, unless the entry would grow and the day's sum pass the cap.
     *
     * @param day days since 1970 by UTC; null for today by the store's clock, which must never go back to an earlier day
     * @param cap null for none
     */
    public suspend fun spend(space: String, day: Long?, entry: String, amount: BigDecimal, cap: BigDecimal?): Spent

    /** Lets go of everything. The client calls nothing after it. */
    public suspend fun close()

    /**
     * Of a store whose claims can end while their owner lives, as in a database: it is called once, before any other call, and gets a
     * function to call whenever claims have ended, with their names, or with null for all. Any thread may call it, and
     * before a claim that was made meanwhile is granted, or the client would forget that one, too. Does nothing by default.
     */
    public fun onLost(lost: (names: List<String>?) -> Unit) {}

    /**
     * Of such a store: whether this client's claims stand for the next 20 seconds. It is called before each send; if it returns false or
     * throws, nothing is sent and the record is stored again first. Default true.
     */
    public suspend fun vouches(): Boolean = true

    /**
     * Whether a call may still be done after it has thrown, as after a time limit of the store's own. Then a purchase whose record could not be
     * put is never said to have had no effect. Default false.
     */
    public val lateCalls: Boolean get() = false
}

/** A store could not be opened at all, so the call was surely not done. A store of your own throws it where it never reached its data. */
public class StoreNotOpenedException(message: String, cause: Throwable? = null) : IOException(message, cause)

/** What [Store.claim] brought. */
public sealed interface Claim {
    /** This client owns these names; each with its data, or null for none. */
    public class Claimed(public val names: Map<String, ByteArray?>) : Claim

    /** Other living clients own all of them. With what the owner of one of them put last, if anything. */
    public class Busy(public val data: ByteArray?) : Claim
}

/** Names of a space. */
public class StorePage(
    /** In the order of their names. */
    public val entries: List<StoreEntry>,
    /** Whether more names follow. */
    public val more: Boolean,
)

/** A name that has data. */
public class StoreEntry(
    /** The name. */
    public val name: String,
    /** What was put last. */
    public val data: ByteArray,
    /** Who owns it. */
    public val whose: Whose,
)

/** What became of [Store.spend]. */
public sealed interface Spent {
    /** The entry counts, on this day since 1970. */
    public class Granted(public val day: Long) : Spent

    /** Nothing was changed. The day since 1970, and its sum as it stands. */
    public class Over(public val day: Long, public val total: BigDecimal) : Spent
}
