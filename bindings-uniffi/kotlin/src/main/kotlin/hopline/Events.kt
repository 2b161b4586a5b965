package hopline

import kotlin.time.Duration
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

/** For whom an event is, in rising order: `agent.events.filter { it.level >= Level.INFO }`. */
public enum class Level {
    /** For who looks for a fault. */
    DEBUG,

    /** For who watches what is bought, and why nothing is. */
    INFO,

    /** Somebody should look. */
    WARNING,
}

/** For whom it is. */
public val Event.level: Level get() = event.level

/** Hands events to whoever listens. Who listens too slowly misses some; nothing waits for them. */
internal class Events(scope: CoroutineScope, dispatcher: CoroutineDispatcher) {
    private val told = Channel<() -> Event?>(Channel.UNLIMITED)

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
        for (event in told) event()?.let { shared.tryEmit(it) }
        closed = true
        shared.tryEmit(null)
    }

    /** Called under the engine's lock: it is made and listened to elsewhere. */
    fun tell(event: () -> Event?) {
        if (shared.subscriptionCount.value > 0) told.trySend(event)
    }

    /** Waits until all that was told is handed out. */
    suspend fun close() {
        told.close()
        telling.join()
    }
}

/** Null if it can't be read: nothing depends on an event, and least of all a program's life. */
internal fun event(packed: ByteArray): Event? = runCatching { Packed(packed).readEvent() }.getOrNull()

/** A request goes out, or has `come` to its end after so long. */
internal fun exchanged(operation: String, request: hopline.core.Request, came: ExchangeResult? = null, after: Duration? = null): Event =
    Event(
        operation = operation,
        event = if (came == null) EventName.SENT else EventName.ANSWERED,
        method = request.method,
        path = "/" + request.url.substringAfter("://").substringAfter("/", "").substringBefore("?"),
        httpStatus = came?.response?.status,
        failure = came?.takeIf { it.response == null }?.kind?.name?.lowercase(),
        duration = after,
    )
