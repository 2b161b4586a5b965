package hopline

import hopline.core.Client
import hopline.core.ClientException
import hopline.core.Record
import java.io.IOException
import java.nio.file.FileSystemException
import java.security.SecureRandom

/** A client core, with entropy of its own. */
internal fun newCore(options: Secret): Client {
    val entropy = ByteArray(16).also { SecureRandom().nextBytes(it) }
    return asked { Client(sound("client", "options", options.reveal()), entropy) }
}

/** What the core refused, as an exception that people can read. */
internal inline fun <T> asked(ask: () -> T): T =
    try {
        ask()
    } catch (refused: ClientException.Refused) {
        throw exception(refused.error)
    }

/** A text that can be written as UTF-8, as all that crosses into the core must be. */
internal fun sound(operation: String, field: String, text: String): String {
    if (Charsets.UTF_8.newEncoder().canEncode(text)) return text
    throw refusal("invalid", operation, "`$field` holds half of a surrogate pair, which is no text", field = field, advice = "change_request")
}

/** The free records of a store: what they hold, which are refused, and which only say what was spent in a day. */
internal class Free(
    val saved: List<Saved> = emptyList(),
    val rejected: List<Rejected> = emptyList(),
    val totals: List<String> = emptyList(),
)

/** The records of one client: what its store keeps, what it holds, what it may take up. */
internal class Records(private val options: Secret, private val store: Store, private val sameAccount: Boolean, private val capped: Boolean) {
    @Volatile
    private var opened: Shelf? = null
    private val shelf: Shelf get() = checkNotNull(opened) { "the store was not opened" }

    /** By intent that this client has claimed: how many calls of it are under way. */
    private val intents = HashMap<String, Int>()
    private var closed = false

    /**
     * Opens the store, at the first call of a client. Under a cap it takes up what clients that are no more have spent today, so that it
     * counts from the first purchase on.
     */
    fun open(core: Client, operation: String) {
        if (opened != null) return
        synchronized(this) {
            check(operation)
            if (opened != null) return
            val shelf = usable { store.open() }
            opened = shelf
            try {
                if (capped) adopt(core) { false }
            } catch (unusable: Throwable) {
                opened = null
                shelf.close()
                throw unusable
            }
        }
    }

    /** Gives a record to the store, and says what is wrong if that is not certain. */
    fun keep(record: String, data: ByteArray?): String? =
        try {
            shelf.keep(record, data)
            null
        } catch (error: IOException) {
            said(error)
        } catch (error: RuntimeException) {
            // A store of the caller's own.
            error.javaClass.simpleName
        }

    /** Makes an intent this client's, with the record of an earlier client that is no more. */
    @Synchronized
    fun claim(core: Client, operation: String, intent: String) {
        check(operation)
        // Nobody else can have made a record of an intent since this client has it.
        if (intent !in intents) {
            if (!usable { shelf.claimIntent(intent) }) {
                val what = "another living client of this store has this intent"
                throw refusal("busy", operation, what, "; wait for the other change to end", intent = intent, advice = "wait_for_other")
            }
            try {
                adopt(core) { it.intent == intent }
            } catch (unusable: Throwable) {
                // What it holds is not known, so the next call has to look again.
                quietly { shelf.releaseIntent(intent) }
                intents.remove(intent)
                throw unusable
            }
        }
        intents.merge(intent, 1, Int::plus)
    }

    /** A call of an intent is over. */
    @Synchronized
    fun leave(core: Client, intent: String) {
        if (closed) return
        intents.computeIfPresent(intent) { _, calls -> calls - 1 }
        release(core, intent)
    }

    /** Gives back the intents that are neither under way nor remembered. */
    @Synchronized
    fun releaseIdle(core: Client) {
        if (!closed) intents.keys.toList().forEach { release(core, it) }
    }

    private fun release(core: Client, intent: String) {
        if ((intents[intent] ?: return) > 0 || core.holdsIntent(intent)) return
        quietly {
            shelf.releaseIntent(intent)
            intents.remove(intent)
        }
    }

    /** What can't be given back stays this client's, and nothing is lost by that: what is told instead is worth more. */
    private inline fun quietly(give: () -> Unit) {
        try {
            give()
        } catch (_: IOException) {
            return
        }
    }

    /** Takes up the free records that are wanted, unless another client was quicker. Under a cap, also what was spent. */
    @Synchronized
    fun adopt(core: Client, wanted: (Saved) -> Boolean) {
        check("resume")
        usable {
            val taken = ArrayList<Record>()
            val names = ArrayList<String>()
            val claimed = ArrayList<String>()
            try {
                shelf.scanning {
                    val found = read()
                    if (capped) names += found.totals
                    for (saved in found.saved.filter(wanted)) {
                        if (saved.intent != null && saved.intent !in intents) {
                            if (!shelf.claimIntent(saved.intent)) continue
                            claimed += saved.intent
                        }
                        names += saved.record
                    }
                    // Read anew, now that nobody else can change them.
                    for (name in names) shelf.claim(name)?.let { taken += Record(name, it) }
                }
            } catch (error: Throwable) {
                // What was claimed and is not restored would never be found free again. All were free, so none was this client's before;
                // the one whose claim failed may be by now.
                names.forEach { quietly { shelf.release(it) } }
                claimed.forEach { quietly { shelf.releaseIntent(it) } }
                throw error
            }
            claimed.forEach { intents.putIfAbsent(it, 0) }
            if (taken.isNotEmpty()) rejected(core.restore(taken, sameAccount)).forEach { quietly { shelf.release(it.record) } }
        }
    }

    /** What this client has, and what no living client has. */
    @Synchronized
    fun saved(core: Client): List<Saved> {
        check("saved")
        // A record that the client refused is free, and is told by both.
        return (savedList(core.savedList()) + free().saved).distinctBy { it.record }
    }

    /** The free records, as a core that is asked nothing else reads them: what they hold, and which it refuses. */
    @Synchronized
    fun free(): Free =
        usable {
            var found = Free()
            shelf.scanning { found = read() }
            found
        }

    @Synchronized
    fun close() {
        closed = true
        usable { opened?.close() }
    }

    private fun check(operation: String) {
        if (closed) throw refusal("misuse", operation, "this client is closed; make another one")
    }

    private fun read(): Free {
        val records = shelf.free().map { (record, data) -> Record(record, data) }
        if (records.isEmpty()) return Free()
        return newCore(options).use { reader ->
            val told = reader.restore(records, sameAccount)
            val saved = savedList(reader.savedList())
            Free(saved, rejected(told), held(told) - saved.map { it.record }.toSet())
        }
    }

    private inline fun <T> usable(ask: () -> T): T =
        try {
            ask()
        } catch (error: IOException) {
            throw refusal("store", "client", "the store can't be used: ${said(error)}", "; mend the store", advice = "mend_store")
        }
}

/** What a store said, and of which file or folder where that is known. */
private fun said(error: IOException): String {
    val name = error.javaClass.simpleName
    val reason = (error as? FileSystemException)?.reason ?: error.message?.takeUnless { error is FileSystemException }
    val file = (error as? FileSystemException)?.file?.let { " at `$it`" }.orEmpty()
    return (if (reason == null) name else "$reason ($name)") + file
}
