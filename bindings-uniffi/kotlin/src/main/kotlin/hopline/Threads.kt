package hopline

import java.util.concurrent.ConcurrentHashMap
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainCoroutineDispatcher

/**
 * The threads of a client: the caller's dispatcher, in views of its own, so that no waiting call can block it. After [move] they are the
 * library's own, since a caller that blocks until the client is closed may block its dispatcher as well.
 */
internal class Threads(private val given: CoroutineDispatcher) {
    /** A dispatcher that runs work in the thread that has it, as `Dispatchers.Unconfined` does, has no threads to give. */
    private val lent = if (given is MainCoroutineDispatcher || given.isDispatchNeeded(EmptyCoroutineContext)) given else OWN

    /** For work that never waits. */
    val work = Lane(4, "hopline")

    /** For work that waits for disks. */
    val disk = Lane(8, "hopline-store")

    /**
     * For transports that block: as many threads as the core has requests out at once, whose number it limits itself, so that a termination
     * never waits.
     */
    val http = Lane(Int.MAX_VALUE, "hopline-http")

    @Volatile
    private var isMoved = false

    /** The dispatcher that times waits: a test's own may let them pass at once. */
    val timing: CoroutineDispatcher get() = if (isMoved) OWN else given

    /** Moves all further work, and the work that has not begun, out of the caller's threads. */
    fun move() {
        isMoved = true
        listOf(work, disk, http).forEach(Lane::move)
    }

    /** A view of the dispatcher that hands on the work that has not begun. */
    inner class Lane(parallelism: Int, name: String) : CoroutineDispatcher() {
        private val theirs = lent.limitedParallelism(parallelism, name)
        private val own = OWN.limitedParallelism(parallelism, name)
        private val waiting: MutableSet<Turn> = ConcurrentHashMap.newKeySet()

        override fun dispatch(context: CoroutineContext, block: Runnable) {
            val turn = Turn(block).also { waiting += it }
            // Read only now: work that `move` did not find here goes to the own threads.
            (if (isMoved) own else theirs).dispatch(context, turn)
        }

        fun move(): Unit = waiting.forEach { own.dispatch(EmptyCoroutineContext, it) }

        /** Runs once, in whichever thread gets to it first. */
        private inner class Turn(private val block: Runnable) : Runnable {
            override fun run() {
                if (waiting.remove(this)) block.run()
            }
        }
    }

    private companion object {
        val OWN = Dispatchers.IO
    }
}
