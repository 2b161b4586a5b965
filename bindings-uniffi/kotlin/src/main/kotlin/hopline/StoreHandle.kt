package hopline

import hopline.core.ClaimedName
import hopline.core.ListedName
import hopline.core.StoreAnswer
import hopline.core.StoreCall
import java.io.IOException
import java.lang.ref.WeakReference
import kotlin.time.Duration.Companion.milliseconds

/** The store of one client, in the form that the core calls. */
internal class StoreHandle private constructor(private val store: Store) {
    /** Carries out one call. Throws the store's exceptions. */
    suspend fun call(call: StoreCall): StoreAnswer =
        when (call) {
            is StoreCall.Claim ->
                when (val claim = store.claim(call.names, call.most.toInt())) {
                    is Claim.Claimed -> StoreAnswer.Claimed(claim.names.map { (name, data) -> ClaimedName(name, data) })
                    is Claim.Busy -> StoreAnswer.Busy(claim.data)
                }
            is StoreCall.Put -> written(store.put(call.name, call.data, call.new, call.keepFor?.milliseconds, call.release))
            is StoreCall.Delete -> written(store.delete(call.name))
            is StoreCall.Release -> store.release(call.names).let { StoreAnswer.Done }
            is StoreCall.ListNames -> {
                val page = store.list(call.space, call.after, call.open)
                StoreAnswer.Listed(page.entries.map { ListedName(it.name, it.data, hopline.core.Whose.valueOf(it.whose.name)) }, page.more)
            }
            is StoreCall.Spend ->
                when (val spent = store.spend(call.space, call.day, call.entry, call.amount.toBigDecimal(), call.cap?.toBigDecimal())) {
                    is Spent.Granted -> StoreAnswer.Granted(spent.day)
                    is Spent.Over -> StoreAnswer.Over(spent.day, spent.total.toPlainString())
                }
        }

    /** Reports claims that have ended to `lost`. */
    fun onLost(lost: (List<String>?) -> Unit): Unit = store.onLost(lost)

    /** Returns true if a request may be sent under a name of this client's. */
    suspend fun vouches(): Boolean = store.vouches()

    /** Releases all names, and then closes the store, even if the release fails. */
    suspend fun close(): Unit =
        try {
            store.release(null)
        } finally {
            store.close()
        }

    private fun written(isDone: Boolean): StoreAnswer = if (isDone) StoreAnswer.Done else StoreAnswer.Lost

    companion object {
        private val taken = ArrayList<WeakReference<Store>>()

        /** Gives a store to a client. Two clients with one object would both own its names, and buy twice. */
        fun of(store: Store): StoreHandle =
            synchronized(taken) {
                taken.removeAll { it.get() == null }
                if (taken.any { it.get() === store }) throw refused("client", "store_in_use")
                taken += WeakReference(store)
                StoreHandle(store)
            }
    }
}

/** The message of a store's failure. The messages of other exceptions are left out, since they may hold a secret. */
internal fun said(error: Throwable): String {
    val name = error.javaClass.simpleName
    return if (error is IOException && error.message != null) "${error.message} ($name)" else name
}
