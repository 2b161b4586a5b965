package hopline

import hopline.core.FailureKind
import hopline.core.Sent
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.isActive

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

/** One send. The core keeps its time, and breaks it off. */
internal class Exchange(private val transport: Transport, private val headers: Headers?, private val clock: Clock) {
    /** The headers to send, or the failure of the caller's own. */
    suspend fun headers(asked: hopline.core.Request): Pair<List<Pair<String, String>>, ExchangeResult?> {
        val own = asked.headers.map { it.name to it.value }
        return try {
            own + more(own.map { it.first.lowercase() }.toSet()) to null
        } catch (unfit: Unfit) {
            own to ExchangeResult(kind = FailureKind.HEADERS, sent = Sent.NEVER, unfit = unfit.rule)
        } catch (error: Throwable) {
            own to ExchangeResult(kind = FailureKind.HEADERS, sent = Sent.NEVER, note = "`headers` threw ${placed(error)}")
        }
    }

    /** Hands the request to the transport, unless it is late by now: the device may have slept. */
    suspend fun send(asked: hopline.core.Request, all: List<Pair<String, String>>): ExchangeResult {
        if (clock.monotonic() > asked.sendBefore) return ExchangeResult(kind = FailureKind.LATE, sent = Sent.NEVER)
        val most = asked.maxBody.coerceAtMost((Int.MAX_VALUE - 1).toUInt()).toInt()
        return once(Request(asked.method, asked.url, all, asked.body, asked.timeoutMs.toLong().milliseconds, most))
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
            val kind = if (currentCoroutineContext().isActive) FailureKind.OTHER else FailureKind.ABORTED
            ExchangeResult(kind = kind, note = "the transport met ${described(error, request)}")
        }

    private fun cut(response: Response, most: Int): Response =
        Response(response.status, response.headers, response.body.copyOf(most), truncated = true)

    companion object {
        private val TOKEN = ('a'..'z').toSet() + ('A'..'Z') + ('0'..'9') + "!#$%&'*+-.^_`|~".toSet()

        /** The headers that the core or the transport sets, even where a request has none of them. */
        private val RESERVED =
            setOf("connection", "content-length", "content-type", "host", "idempotency-key", "transfer-encoding", "x-api-key")
    }
}
