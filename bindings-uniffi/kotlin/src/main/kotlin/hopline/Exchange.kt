package hopline

import hopline.core.FailureKind
import hopline.core.Sent
import java.util.concurrent.atomic.AtomicReference
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.launch

/** The caller's own headers, requested before each send. */
internal typealias Headers = suspend () -> Map<String, String>

/** The outcome of a send: a response, or the reason why there is none. */
internal class ExchangeResult(
    val response: Response? = null,
    val kind: FailureKind = FailureKind.OTHER,
    val sent: Sent = Sent.MAYBE,
    val note: String? = null,
    /** The reason why a header of the caller's own can't be sent, as the end of a sentence. */
    val unfit: String? = null,
)

/** One send, for no longer than it may take, even if the transport ignores its timeout. */
internal class Exchange(
    private val transport: Transport,
    private val headers: Headers?,
    private val clock: Clock,
    private val threads: Threads,
) {
    private val scope = CoroutineScope(SupervisorJob())

    /**
     * Decides which comes first: the coroutine that sends, or the one that gives up. The other one then knows the outcome, so `NEVER` is
     * reported only for a request that can't be sent any more.
     */
    private class Turn {
        private val first = AtomicReference<Sent?>(null)

        /** Returns true if the request may be handed to the transport. */
        fun begin(): Boolean = first.compareAndSet(null, Sent.MAYBE)

        /** Prevents the request from beginning. Returns whether it had begun. */
        fun giveUp(): Sent = if (first.compareAndSet(null, Sent.NEVER)) Sent.NEVER else first.get()!!
    }

    /**
     * Never throws: a cancelled caller gets `ABORTED`, and the core has to know it. Nothing is sent unless the store's claims stand just
     * before the send.
     */
    suspend fun run(asked: hopline.core.Request, claimsStand: suspend () -> Boolean): ExchangeResult {
        val turn = Turn()
        val came = CompletableDeferred<ExchangeResult>()
        return try {
            send(asked, claimsStand, turn, came)
        } catch (_: CancellationException) {
            arrived(came) ?: ExchangeResult(kind = FailureKind.ABORTED, sent = turn.giveUp())
        }
    }

    private suspend fun send(asked: hopline.core.Request, claimsStand: suspend () -> Boolean, turn: Turn, came: CompletableDeferred<ExchangeResult>): ExchangeResult {
        val timeout = asked.timeoutMs.toLong().milliseconds
        // In a coroutine of its own, so that a transport that can't be interrupted delays no other work.
        val sending = scope.launch(threads.http) { came.complete(attempt(asked, claimsStand, timeout, turn)) }
        val until = clock.monotonic() + timeout.inWholeMilliseconds + GRACE
        val ending = scope.launch(threads.timing, CoroutineStart.UNDISPATCHED) {
            clock.waitUntil(until)
            came.complete(ExchangeResult(kind = FailureKind.TIMEOUT, sent = turn.giveUp()))
        }
        return try {
            came.await()
        } finally {
            sending.cancel()
            ending.cancel()
        }
    }

    /** An answer that was there before its waiter was cancelled counts. */
    @OptIn(ExperimentalCoroutinesApi::class)
    private fun arrived(came: CompletableDeferred<ExchangeResult>): ExchangeResult? = if (came.isCompleted) came.getCompleted() else null

    private suspend fun attempt(asked: hopline.core.Request, claimsStand: suspend () -> Boolean, timeout: Duration, turn: Turn): ExchangeResult {
        val own = asked.headers.map { it.name to it.value }
        val all =
            try {
                own + more(own.map { it.first.lowercase() }.toSet())
            } catch (unfit: Unfit) {
                return ExchangeResult(kind = FailureKind.HEADERS, sent = turn.giveUp(), unfit = unfit.rule)
            } catch (error: Throwable) {
                return ExchangeResult(kind = FailureKind.HEADERS, sent = turn.giveUp(), note = "`headers` threw ${placed(error)}")
            }
        try {
            if (!asked.endsSession && !claimsStand()) return ExchangeResult(kind = FailureKind.LATE, sent = turn.giveUp(), note = "the store did not vouch for its claims")
        } catch (error: Throwable) {
            return ExchangeResult(kind = FailureKind.LATE, sent = turn.giveUp(), note = "`vouches` threw ${placed(error)}")
        }
        if (clock.monotonic() > asked.sendBefore) return ExchangeResult(kind = FailureKind.LATE, sent = turn.giveUp())
        if (!turn.begin()) return ExchangeResult(kind = FailureKind.ABORTED, sent = Sent.NEVER)
        val most = asked.maxBody.coerceAtMost((Int.MAX_VALUE - 1).toUInt()).toInt()
        return once(Request(asked.method, asked.url, all, asked.body, timeout, most))
    }

    /** The caller's own headers. They can't replace one of the core's, such as the key and the idempotency key. */
    private suspend fun more(own: Set<String>): List<Pair<String, String>> {
        val given = headers?.invoke().orEmpty().toList()
        for ((name, value) in given) {
            val isToken = name.isNotEmpty() && name.all { it in TOKEN }
            when {
                !isToken -> throw Unfit("must have names made of letters, digits and hyphens")
                name.lowercase() in own || name.lowercase() in RESERVED -> throw Unfit("must not have `${name.lowercase()}`, which the client sets")
                !value.all { it == '\t' || it in ' '..'~' } -> throw Unfit("must have a value of visible ASCII for `$name`")
            }
        }
        return given
    }

    private class Unfit(val rule: String) : Exception()

    private suspend fun once(request: Request): ExchangeResult =
        try {
            val response = unpacked(transport.send(request), request.maxBody)
            if (response.body.size <= request.maxBody) ExchangeResult(response) else ExchangeResult(cut(response, request.maxBody))
        } catch (failure: TransportException) {
            ExchangeResult(kind = failure.kind.core, sent = failure.sent, note = failure.cause?.let { "the transport met ${described(it, request)}" })
        } catch (error: Throwable) {
            ExchangeResult(note = "the transport met ${described(error, request)}")
        }

    private fun cut(response: Response, most: Int): Response =
        Response(response.status, response.headers, response.body.copyOf(most), truncated = true)

    companion object {
        /**
         * Milliseconds beyond the timeout after which the transport is abandoned. The transport itself should end at its timeout, since
         * only it knows whether it had sent anything.
         */
        private const val GRACE = 500L

        private val TOKEN = ('a'..'z').toSet() + ('A'..'Z') + ('0'..'9') + "!#$%&'*+-.^_`|~".toSet()

        /** The headers that the core or the transport sets, even where a request has none of them. */
        private val RESERVED =
            setOf("connection", "content-length", "content-type", "host", "idempotency-key", "transfer-encoding", "x-api-key")
    }
}
