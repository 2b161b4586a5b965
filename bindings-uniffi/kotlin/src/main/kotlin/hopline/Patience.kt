package hopline

import java.io.IOException
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch

/**
 * Makes calls that hold nobody for longer than they may. A call that takes longer stays out and may still be done, so none is made before it
 * has ended: that one could be done first.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class Patience(private val scope: CoroutineScope, private val dispatcher: CoroutineDispatcher) {
    private val late: MutableSet<Job> = ConcurrentHashMap.newKeySet()

    /** True once a call has waited in vain for a late one: the next ones don't wait. */
    @Volatile
    private var isStuck = false

    suspend fun <T> within(call: suspend () -> T): T {
        if (late.isNotEmpty() && (isStuck || !endsInTime(scope.launch(Dispatchers.Unconfined) { ArrayList(late).joinAll() }))) isStuck = late.isNotEmpty()
        if (isStuck) throw StoreNotOpenedException("an earlier call of the store has not ended")
        val calling = scope.async(dispatcher, CoroutineStart.ATOMIC) { runCatching { call() } }
        if (endsInTime(calling)) return calling.await().getOrThrow()
        late += calling
        calling.invokeOnCompletion {
            late -= calling
            if (late.isEmpty()) isStuck = false
        }
        throw IOException("the call did not end within $LONGEST")
    }

    /** The time is the system's, since a store is not bound to a test's own; whoever waits goes on in their own thread. */
    private suspend fun endsInTime(job: Job): Boolean {
        val ended = CompletableDeferred<Boolean>()
        val heard = job.invokeOnCompletion { ended.complete(true) }
        val timer = scope.launch(Dispatchers.Default) {
            delay(LONGEST)
            ended.complete(false)
        }
        return try {
            ended.await()
        } finally {
            heard.dispose()
            timer.cancel()
        }
    }

    private companion object {
        val LONGEST = 30.seconds
    }
}
