package hopline

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.onSubscription
import kotlinx.coroutines.flow.transformWhile
import kotlinx.coroutines.launch

/** Hands events to whoever listens. Who listens too slowly misses some; nothing waits for them. */
internal class Events(scope: CoroutineScope, dispatcher: CoroutineDispatcher) {
    private val told = Channel<ByteArray>(Channel.UNLIMITED)

    /** Null is the end. */
    private val shared = MutableSharedFlow<Event?>(extraBufferCapacity = 4096, onBufferOverflow = BufferOverflow.DROP_OLDEST)

    @Volatile
    private var closed = false

    val flow: Flow<Event> =
        shared.onSubscription { if (closed) emit(null) }.transformWhile { event ->
            event?.let { emit(it) }
            event != null
        }

    /** Hands out all that was told, and then the end. */
    private val telling: Job = scope.launch(dispatcher) {
        for (packed in told) event(packed)?.let { shared.tryEmit(it) }
        closed = true
        shared.tryEmit(null)
    }

    /** Called under the engine's lock: who listens goes on elsewhere. */
    fun tell(packed: ByteArray) {
        if (shared.subscriptionCount.value > 0) told.trySend(packed)
    }

    /** Waits until all that was told is handed out. */
    suspend fun close() {
        told.close()
        telling.join()
    }
}

/** Null if it can't be read: nothing depends on an event, and least of all a program's life. */
internal fun event(packed: ByteArray): Event? = runCatching { Packed(packed).readEvent() }.getOrNull()
