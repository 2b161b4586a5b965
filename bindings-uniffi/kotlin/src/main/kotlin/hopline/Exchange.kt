package hopline

import hopline.core.FailureKind
import hopline.core.Sent
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Semaphore
import kotlinx.coroutines.sync.withPermit
import kotlinx.coroutines.withTimeoutOrNull

/** What came of a send: a response, or why there is none. */
internal class Came(
    val response: Response? = null,
    val kind: FailureKind = FailureKind.OTHER,
    val sent: Sent = Sent.MAYBE,
    val note: String? = null,
)

/** One send each, for no longer than it may take, whatever the transport makes of its timeout. */
internal class Exchange(private val transport: Transport) {
    private val slots = Semaphore(MOST)
    private val scope = CoroutineScope(SupervisorJob())

    /** Never throws: whoever is cancelled gets `aborted`, and the core is to hear of it. */
    suspend fun run(asked: hopline.core.Request): Came {
        val begun = AtomicBoolean()
        return try {
            slots.withPermit { send(asked, begun) }
        } catch (_: CancellationException) {
            Came(kind = FailureKind.ABORTED, sent = if (begun.get()) Sent.MAYBE else Sent.NEVER)
        }
    }

    private suspend fun send(asked: hopline.core.Request, begun: AtomicBoolean): Came {
        val timeout = asked.timeoutMs.toLong().milliseconds
        val headers = asked.headers.map { it.name to it.value }
        val most = asked.maxBody.coerceAtMost((Int.MAX_VALUE - 1).toUInt()).toInt()
        val request = Request(asked.method, asked.url, headers, asked.body, timeout, most)
        val came = CompletableDeferred<Came>()
        // On its own, so that a transport that can't be interrupted holds up nobody.
        val sending = scope.launch(dispatcher) {
            if (Clock.monotonic() > asked.sendBefore) {
                came.complete(Came(kind = FailureKind.LATE, sent = Sent.NEVER))
            } else {
                begun.set(true)
                came.complete(once(request))
            }
        }
        return try {
            withTimeoutOrNull(timeout + GRACE) { came.await() } ?: Came(kind = FailureKind.TIMEOUT)
        } finally {
            sending.cancel()
        }
    }

    private suspend fun once(request: Request): Came =
        try {
            val response = transport.send(request)
            if (response.body.size <= request.maxBody) Came(response) else Came(cut(response, request.maxBody))
        } catch (failure: TransportException) {
            Came(kind = failure.kind.core, sent = failure.sent, note = failure.cause?.let(::said))
        } catch (error: Throwable) {
            Came(note = said(error))
        }

    private fun cut(response: Response, most: Int): Response =
        Response(response.status, response.headers, response.body.copyOf(most), truncated = true)

    private fun said(error: Throwable): String =
        "the transport met ${error.javaClass.simpleName}, whose text is left out since it may hold secrets"

    companion object {
        /** How many requests of a client may be out at once; further ones wait their turn. */
        private const val MOST = 128

        /** The transport itself is to end at its timeout, since it knows whether it had sent anything. */
        private val GRACE: Duration = 500.milliseconds

        /** Of its own, so that nobody's waiting can keep it from going on. */
        private val dispatcher = Dispatchers.IO.limitedParallelism(64, "hopline-http")
    }
}
