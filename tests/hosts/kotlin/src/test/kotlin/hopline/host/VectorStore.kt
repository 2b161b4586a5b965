package hopline.host

import hopline.core.ClaimedName
import hopline.core.ListedName
import hopline.core.StoreAnswer
import hopline.core.StoreCall
import hopline.core.Whose
import java.math.BigDecimal
import java.util.TreeMap

/** The store of a case: what a store would answer, so that a script names only what it is about. */
internal class VectorStore {
    private class Kept(val data: ByteArray, val until: Long?, var owned: Boolean)

    private val kept = TreeMap<String, Kept>()

    /** The records that were put (or, with null, deleted) without confirmation: they may be on the disk. */
    private val unsure = HashMap<String, ByteArray?>()
    private var today = 0L
    private val entries = HashMap<Pair<Long, String>, BigDecimal>()

    fun call(call: StoreCall, unix: Long): StoreAnswer {
        kept.values.removeAll { !it.owned && it.until != null && it.until <= unix }
        return when (call) {
            is StoreCall.Claim -> StoreAnswer.Claimed(call.names.map { ClaimedName(it, kept[it]?.apply { owned = true }?.data) })
            is StoreCall.Put -> put(call, unix)
            is StoreCall.Delete -> {
                unsure.remove(call.name)
                kept.remove(call.name)
                StoreAnswer.Done
            }
            is StoreCall.Release -> {
                kept.filterKeys { call.names?.contains(it) != false }.values.forEach { it.owned = false }
                StoreAnswer.Done
            }
            is StoreCall.ListNames -> list(call)
            is StoreCall.Spend -> spend(call, unix)
        }
    }

    private fun put(call: StoreCall.Put, unix: Long): StoreAnswer {
        unsure.remove(call.name)
        if (call.new && kept[call.name]?.owned == false) return StoreAnswer.Lost
        kept[call.name] = Kept(call.data, call.keepFor?.plus(unix), !call.release)
        return StoreAnswer.Done
    }

    private fun list(call: StoreCall.ListNames): StoreAnswer {
        val found = kept.filter { (name, kept) ->
            name.startsWith("${call.space}.") && call.after.let { it == null || name > it } && !(call.open && kept.until != null)
        }
        val page = found.entries.take(PAGE).map { (name, kept) -> ListedName(name, kept.data, if (kept.owned) Whose.MINE else Whose.FREE) }
        return StoreAnswer.Listed(page, found.size > PAGE)
    }

    private fun spend(call: StoreCall.Spend, unix: Long): StoreAnswer {
        val latest = today(unix)
        val (day, amount) = (call.day ?: latest) to call.amount.toBigDecimal()
        val total = entries.filterKeys { it.first == day && it.second != call.entry }.values.fold(BigDecimal.ZERO, BigDecimal::add)
        val grows = entries[day to call.entry].let { it == null || amount > it }
        if (grows && call.cap != null && total + amount > call.cap!!.toBigDecimal()) return StoreAnswer.Over(day, total.toPlainString())
        entries[day to call.entry] = amount
        return StoreAnswer.Granted(day)
    }

    /** The day by a clock that never goes back. */
    fun today(unix: Long): Long = maxOf(today, unix.floorDiv(DAY)).also { today = it }

    /** A call was made, and nobody knows yet what came of it. */
    fun doubt(call: StoreCall) {
        if (call is StoreCall.Put) unsure[call.name] = call.data
        if (call is StoreCall.Delete) unsure[call.name] = null
    }

    /** Another client has these names from now on. */
    fun takeAway(names: List<String>): Unit = names.forEach { kept[it]?.owned = false }

    /** The process dies: what it had is free, and these writes are on the disk though nobody confirmed them. */
    fun crash(also: List<String>) {
        kept.values.forEach { it.owned = false }
        for (name in also) {
            check(name in unsure) { "every write of `$name` was confirmed" }
            val data = unsure[name]
            if (data == null) kept.remove(name) else kept[name] = Kept(data, null, false)
        }
        unsure.clear()
    }

    fun data(name: String): ByteArray? = kept[name]?.data

    fun plant(name: String, data: ByteArray) {
        kept[name] = Kept(data, kept[name]?.until, kept[name]?.owned == true)
    }

    private companion object {
        const val DAY = 24L * 3600 * 1000
        const val PAGE = 500
    }
}
