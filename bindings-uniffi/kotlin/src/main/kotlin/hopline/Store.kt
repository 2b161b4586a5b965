package hopline

import java.io.IOException
import java.math.BigDecimal
import kotlin.time.Duration

/**
 * The store of a client's purchases, sessions and orders, so that they survive a crash: a key-value store with owners. [FolderStore] is
 * one; implement this interface to keep them in a database of your own.
 *
 * An object of it belongs to one client, even after that is closed. The client decides what is stored; the store only carries it out. Names
 * are ASCII text, data is bytes that hold no secret. A name is owned by one living client at a time. **Every call may be repeated and then
 * does nothing new.** A call that throws may or may not be done: the client repeats it, or treats it as failed. A call must not be done
 * after it has thrown, and was certainly not done if it throws [StoreNotOpenedException]. A call that takes longer than 30 s counts as one that
 * threw, and no other call is made before it has ended. Calls about different names may come at once. The
 * names of a client must become free when it has crashed, and when it was garbage-collected without [close].
 *
 * Every store has to pass the cases in the repository's `tests/store`, which are data.
 */
public interface Store {
    /**
     * Makes this client the owner of at most [most] of these names: first those that it owns already, then free ones that have data, then
     * other free ones.
     */
    public suspend fun claim(names: List<String>, most: Int): Claim

    /**
     * Stores data under a name. The data must be on the disk when this returns; a crash before leaves the old data or the new. Returns
     * false, and changes nothing, if this client does not own the name.
     *
     * @param new the name has no data yet and no other client owns it: this client owns it from now on. If it has data, returns false
     * @param keepFor the time after which the store may drop the data, unless the name has an owner then; null for never
     * @param release true if this client releases the name in the same step
     */
    public suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean

    /**
     * Deletes the data of a name, and releases the name. Returns true also if there is no data, and false, changing nothing, if there is
     * and this client does not own the name.
     */
    public suspend fun delete(name: String): Boolean

    /** Releases those of the names that this client owns; all of them if [names] is null. */
    public suspend fun release(names: List<String>?)

    /**
     * Returns the names of a space that have data, in the order of their bytes: those after [after], at most 500. The space is the part of
     * a name before its dot. [open] leaves out names whose last put had a `keepFor`. Claims nothing.
     */
    public suspend fun list(space: String, after: String?, open: Boolean): StorePage

    /**
     * Sets the amount of an entry on a day of a space, in USD, unless the entry would grow and the day's sum pass the cap.
     *
     * @param day days since 1970 by UTC; null for today by the store's clock, which must never go back to an earlier day
     * @param cap null for none
     */
    public suspend fun spend(space: String, day: Long?, entry: String, amount: BigDecimal, cap: BigDecimal?): Spent

    /** Releases everything. The client makes no call after it. */
    public suspend fun close()

    /**
     * Registers a function to call whenever claims have ended while their owner lives, as in a database, with their names, or with null for
     * all. Called once, before any other call. Any thread may call the function, but before a claim that was made meanwhile is granted, or
     * the client would forget that one, too. Does nothing by default.
     */
    public fun onLost(lost: (names: List<String>?) -> Unit) {}

    /**
     * Returns true if this client's claims stand for the next 20 seconds; for stores whose claims can end. Called before each send; if it
     * returns false or throws, nothing is sent and the record is stored again first. Default: true.
     */
    public suspend fun vouches(): Boolean = true

    /**
     * True if a call may still be done after it has thrown, as after a time limit of the store's own. Then a purchase whose record could
     * not be put is never reported as without effect. Default: false.
     */
    public val lateCalls: Boolean get() = false
}

/** A store could not be opened at all, so the call was certainly not done. A store of your own throws it if it never reached its data. */
public class StoreNotOpenedException(message: String, cause: Throwable? = null) : IOException(message, cause)

/** The result of [Store.claim]. */
public sealed interface Claim {
    /** This client owns these names; each has its data, or null for none. */
    public class Claimed(public val names: Map<String, ByteArray?>) : Claim

    /** Other living clients own all of the names. Holds the data that the owner of one of them put last, if any. */
    public class Busy(public val data: ByteArray?) : Claim
}

/** Names of a space. */
public class StorePage(
    /** In the order of their names. */
    public val entries: List<StoreEntry>,
    /** True if more names follow. */
    public val more: Boolean,
)

/** A name that has data. */
public class StoreEntry(
    /** The name. */
    public val name: String,
    /** The data that was put last. */
    public val data: ByteArray,
    /** The owner. */
    public val whose: Whose,
)

/** The result of [Store.spend]. */
public sealed interface Spent {
    /** The entry counts, on this day since 1970. */
    public class Granted(public val day: Long) : Spent

    /** Nothing was changed. Holds the day since 1970, and its sum as it stands. */
    public class Over(public val day: Long, public val total: BigDecimal) : Spent
}
