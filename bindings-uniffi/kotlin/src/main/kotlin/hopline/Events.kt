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

/** The audience of an event, in rising order: `agent.events.filter { it.level >= Level.INFO }`. */
public enum class Level {
    /** For finding a fault. */
    DEBUG,

    /** For following purchases and their obstacles. */
    INFO,

    /** A person should look. */
    WARNING,
}

/** The audience of the event. */
public val Event.level: Level get() = event.level

/** Hands events to collectors. A collector that is too slow misses some; nothing waits for it. */
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

    /** Hands out all events, and then the end. */
    private val telling: Job = scope.launch(dispatcher) {
        try {
            for (event in told) event()?.let { shared.tryEmit(it) }
        } finally {
            closed = true
            shared.tryEmit(null)
        }
    }

    /** Called under the engine's lock: the event is made and collected elsewhere. */
    fun tell(event: () -> Event?) {
        if (shared.subscriptionCount.value > 0) told.trySend(event)
    }

    /** Waits until all events are handed out. */
    suspend fun close() {
        told.close()
        telling.join()
    }
}

/** Null if the event can't be read: nothing depends on an event, and least of all a program's life. */
internal fun event(packed: ByteArray): Event? = runCatching { Packed(packed).readEvent() }.getOrNull()

/** The event for a request that goes out, or that ended with `came` after that time. */
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
