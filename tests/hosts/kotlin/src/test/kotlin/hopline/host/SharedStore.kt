package hopline.host

import hopline.Claim
import hopline.Spent
import hopline.Store
import hopline.StoreEntry
import hopline.StorePage
import hopline.Whose
import java.math.BigDecimal
import java.util.TreeMap
import kotlin.time.Duration

/** A store of somebody's own, in the memory of this process: each client of it is one of [client]'s. */
class SharedStore(private val now: () -> Long = System::currentTimeMillis) {
    private class Kept(val data: ByteArray, val until: Long?)

    private val kept = TreeMap<String, Kept>()
    private val owners = HashMap<String, Store>()
    private val spent = HashMap<Pair<String, Long>, MutableMap<String, BigDecimal>>()
    private var today = 0L

    /** The records, by name. */
    val names: List<String> get() = synchronized(this) { kept.keys.toList() }

    /** The owned names. */
    val owned: Set<String> get() = synchronized(this) { owners.keys.toSet() }

    fun client(): Store = Mine()

    private inner class Mine : Store {
        override suspend fun claim(names: List<String>, most: Int): Claim = locked {
            val free = names.filter { owners[it].let { owner -> owner == null || owner === this } }
            val ranked = free.sortedWith(compareBy({ owners[it] !== this }, { it !in kept })).take(most)
            if (ranked.isEmpty() && names.isNotEmpty() && most > 0) return@locked Claim.Busy(names.firstNotNullOfOrNull { kept[it] }?.data)
            Claim.Claimed(ranked.onEach { owners[it] = this }.associateWith { kept[it]?.data })
        }

        override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean = locked {
            val isMine = owners[name] === this || (new && owners[name] == null && name !in kept)
            if (!isMine) return@locked false
            kept[name] = Kept(data, keepFor?.inWholeMilliseconds?.plus(now()))
            if (release) owners.remove(name) else owners[name] = this
            true
        }

        override suspend fun delete(name: String): Boolean = locked {
            if (owners[name] !== this) return@locked name !in kept
            owners.remove(name)
            kept.remove(name)
            true
        }

        override suspend fun release(names: List<String>?): Unit = locked {
            owners.entries.removeAll { (name, owner) -> owner === this && names?.contains(name) != false }
        }

        override suspend fun list(space: String, after: String?, open: Boolean): StorePage = locked {
            val found = kept.filter { (name, kept) -> name.startsWith("$space.") && (after == null || name > after) && !(open && kept.until != null) }
            val page = found.entries.take(500).map { (name, kept) ->
                val whose = if (owners[name] == null) Whose.FREE else if (owners[name] === this) Whose.MINE else Whose.OTHER
                StoreEntry(name, kept.data, whose)
            }
            StorePage(page, found.size > 500)
        }

        override suspend fun spend(space: String, day: Long?, entry: String, amount: BigDecimal, cap: BigDecimal?): Spent = locked {
            today = maxOf(today, now().floorDiv(DAY))
            val at = day ?: today
            val entries = spent.getOrPut(space to at) { HashMap() }
            val (sum, before) = entries.values.fold(BigDecimal.ZERO, BigDecimal::add) to (entries[entry] ?: BigDecimal.ZERO)
            if (amount > before && cap != null && sum - before + amount > cap) return@locked Spent.Over(at, sum)
            entries[entry] = amount
            today = maxOf(today, at)
            Spent.Granted(at)
        }

        override suspend fun close(): Unit = release(null)

        private inline fun <T> locked(work: () -> T): T =
            synchronized(this@SharedStore) {
                kept.entries.removeAll { (name, kept) -> name !in owners && kept.until != null && kept.until <= now() }
                work()
            }
    }

    private companion object {
        const val DAY = 24L * 3600 * 1000
    }
}
