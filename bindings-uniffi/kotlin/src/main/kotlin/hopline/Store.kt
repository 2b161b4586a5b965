package hopline

import java.io.IOException

/** Where records are kept, so that a crash loses nothing and a job that is run again buys nothing twice. */
public fun interface Store {
    /** The store for one more client. Throws [IOException] if it can't be used. */
    public fun open(): Shelf
}

/**
 * A store as one client has it. What a client claims, no other living client of the store has. Its methods may be called by
 * several threads at once, and all may throw [IOException].
 */
public interface Shelf {
    /** Keeps a record so that it survives a crash, or deletes it (null). Throws unless that is certain, and if another client has it. */
    public fun keep(record: String, data: ByteArray?)

    /** Runs `look`, which looks for free records and claims them, in one client of the store at a time. */
    public fun scanning(look: () -> Unit)

    /** The records that no living client has. */
    public fun free(): Map<String, ByteArray>

    /** Makes a record this client's and reads it; null if another client has it or it is gone. */
    public fun claim(record: String): ByteArray?

    /** Gives a record back, as it is. */
    public fun release(record: String)

    /** Makes an intent this client's. Whether no other living client has it. */
    public fun claimIntent(intent: String): Boolean

    /** Gives an intent back. */
    public fun releaseIntent(intent: String)

    /** Gives everything back. */
    public fun close()
}

/** Records in memory. Clients of one process can share them; they end with the process. */
public class MemoryStore : Store {
    private val records = HashMap<String, ByteArray>()
    private val claims = HashMap<String, Shelf>()

    override fun open(): Shelf = Memory()

    private inner class Memory : Shelf {
        override fun keep(record: String, data: ByteArray?): Unit =
            synchronized(records) {
                if (!take("record $record")) throw IOException("the record $record belongs to another client")
                if (data != null) {
                    records[record] = data
                } else {
                    records.remove(record)
                    give("record $record")
                }
            }

        override fun scanning(look: () -> Unit): Unit = synchronized(records) { look() }

        override fun free(): Map<String, ByteArray> = synchronized(records) { records.filterKeys { "record $it" !in claims } }

        override fun claim(record: String): ByteArray? =
            synchronized(records) { records[record]?.takeIf { take("record $record") } }

        override fun release(record: String): Unit = synchronized(records) { give("record $record") }

        override fun claimIntent(intent: String): Boolean = synchronized(records) { take("intent $intent") }

        override fun releaseIntent(intent: String): Unit = synchronized(records) { give("intent $intent") }

        override fun close(): Unit = synchronized(records) { claims.values.removeAll { it === this } }

        private fun take(name: String): Boolean = claims.getOrPut(name) { this } === this

        private fun give(name: String) {
            if (claims[name] === this) claims.remove(name)
        }
    }
}
