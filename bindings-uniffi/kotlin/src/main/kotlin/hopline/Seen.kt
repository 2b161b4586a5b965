package hopline

import hopline.core.hostText
import kotlin.time.Duration
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** An observation from one request through a session. */
public sealed interface Seen {
    /** An answer with this HTTP status, and the wait that its `Retry-After` asks for, which counts for leases of a pool. */
    public data class Status(val status: Int, val retryAfter: Duration? = null) : Seen

    /** A page that asks for a captcha. */
    public data object Captcha : Seen

    /** No answer in time. */
    public data object Timeout : Seen

    /** A block that shows in another way. */
    public data object Block : Seen

    /** The proxy refused the request, or could not be reached. */
    public data object Proxy : Seen

    /** The target could not be reached, or failed in another way. This is no observation about the session. */
    public data object Target : Seen

    /**
     * A failure that may be the proxy's or the target's, such as a connection that broke off. After three in a row the session has to be
     * read again; a pool does that by itself.
     */
    public data object Unknown : Seen

    public companion object {
        /**
         * Interprets an exception of an HTTP client and its causes: the proxy's failures apart from the target's. The library knows the
         * exceptions of OkHttp, `java.net.http`, `HttpURLConnection`, Ktor and SOCKS sockets. Another one is a timeout or the proxy's
         * failure if its name or its words say so, and else [Unknown].
         */
        public fun of(error: Throwable): Seen {
            val chain = generateSequence(error) { it.cause }.take(MOST).map { mapOf("names" to names(it), "said" to sayable(it.message)) }.toList()
            return when (val seen = asked { hostText("seen", encode("chain" to chain)) }.let(::parse)) {
                is JsonPrimitive -> WORDS.entries.first { it.value == seen.content }.key
                else -> Status((seen as JsonObject).text("status")!!.toInt())
            }
        }

        /** The names of a class and its base classes. */
        private fun names(error: Throwable): List<String> =
            generateSequence<Class<*>>(error.javaClass) { it.superclass }.takeWhile { it != Throwable::class.java }.map { it.name }.toList()

        private fun sayable(text: String?): String = text.orEmpty().take(LONGEST).toByteArray().decodeToString()

        private const val MOST = 8
        private const val LONGEST = 4000
    }
}

private val WORDS: Map<Seen, String> =
    mapOf(
        Seen.Captcha to "captcha", Seen.Timeout to "timeout", Seen.Block to "block", Seen.Proxy to "proxy", Seen.Target to "target", Seen.Unknown to "unknown",
    )

internal fun told(seen: Seen): JsonElement = if (seen is Seen.Status) tree(mapOf("status" to seen.status)) else JsonPrimitive(WORDS.getValue(seen))
