package hopline

import java.util.concurrent.ConcurrentHashMap
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers

/**
 * Where a client works: threads of the caller's dispatcher, of its own views, so that nobody's waiting can keep it from going on. Once
 * [move] was called they are the library's own, since a caller that blocks until the client is closed may block its dispatcher as well.
 */
internal class Threads(private val given: CoroutineDispatcher) {
    /** For what waits for nothing… */
    val work = Lane(4, "hopline")

    /** …for what waits for disks… */
    val disk = Lane(8, "hopline-store")

    /** …and for transports that block: as many as the core has requests out at once, whose number it limits itself, so that the end of a session never waits. */
    val http = Lane(Int.MAX_VALUE, "hopline-http")

    @Volatile
    private var isMoved = false

    /** The dispatcher by which waits are timed: a test's own may let them pass at once. */
    val timing: CoroutineDispatcher get() = if (isMoved) OWN else given

    /** From here on nothing is done in the caller's threads, and what they were given and have not begun is done elsewhere. */
    fun move() {
        isMoved = true
        listOf(work, disk, http).forEach(Lane::move)
    }

    /** A view of the dispatcher that hands on what it has not begun. */
    inner class Lane(parallelism: Int, name: String) : CoroutineDispatcher() {
        private val theirs = given.limitedParallelism(parallelism, name)
        private val own = OWN.limitedParallelism(parallelism, name)
        private val waiting: MutableSet<Turn> = ConcurrentHashMap.newKeySet()

        override fun dispatch(context: CoroutineContext, block: Runnable) {
            val turn = Turn(block).also { waiting += it }
            // Looked at only now: whatever `move` did not find here goes to the own ones.
            (if (isMoved) own else theirs).dispatch(context, turn)
        }

        fun move(): Unit = waiting.forEach { own.dispatch(EmptyCoroutineContext, it) }

        /** It runs once, in whichever thread comes to it first. */
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
