package hopline

import java.io.IOException
import java.io.InterruptedIOException
import java.net.ConnectException
import java.net.NoRouteToHostException
import java.net.UnknownHostException
import java.nio.channels.UnresolvedAddressException
import java.util.concurrent.TimeoutException
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonPrimitive

/** What a request through a session met. */
public sealed interface Seen {
    /** An answer with this HTTP status. */
    public data class Status(val status: Int) : Seen

    /** A page that asks for a captcha. */
    public data object Captcha : Seen

    /** No answer in time. */
    public data object Timeout : Seen

    /** A block that shows in another way. */
    public data object Block : Seen

    /** The proxy refused the request, or could not be reached. */
    public data object Proxy : Seen

    /** The target could not be reached, or failed in another way. It says nothing about the session. */
    public data object Target : Seen

    public companion object {
        /** What an exception of OkHttp, `java.net.http`, `HttpURLConnection` or a SOCKS socket means: the proxy's failures apart from the target's. */
        public fun of(error: Throwable): Seen {
            val all = generateSequence(error) { it.cause }.take(8).toList()
            val said = all.filterIsInstance<IOException>().joinToString("\n") { it.message.orEmpty() }
            val answered = TUNNEL.find(said)?.groupValues?.get(1)?.toInt()
            return when {
                // What the proxy answered in place of a tunnel. From 500 on it could not reach the target.
                answered != null -> if (answered >= 500) Target else Proxy
                OF_PROXY.containsMatchIn(said) -> Proxy
                all.any { it is TimeoutCancellationException || it is TimeoutException } -> Timeout
                // A connection is made to the proxy only: it is the proxy that connects to the target.
                all.any { it is ConnectException || it is NoRouteToHostException || it is UnknownHostException || it is UnresolvedAddressException } -> Proxy
                // By its name, since Android does not have it.
                all.any { it.javaClass.simpleName == "HttpConnectTimeoutException" } || CONNECTING.containsMatchIn(said) -> Proxy
                all.any { it is InterruptedIOException || it.javaClass.simpleName == "HttpTimeoutException" } -> Timeout
                else -> Target
            }
        }

        /** As OkHttp, `java.net.http` and `HttpURLConnection` say it. */
        private val TUNNEL = Regex("""(?:response code for CONNECT: |Tunnel failed, got: |Proxy returns "HTTP/1\.. )(\d{3})""")
        private val OF_PROXY =
            Regex("authenticate with proxy|[Pp]roxy [Aa]uthentication|No credentials provided|authentication attempts|tunnel connections|SOCKS proxy|SOCKS *: *authentication")
        private val CONNECTING = Regex("[Cc]onnect timed out|failed to connect")
    }
}

internal fun told(seen: Seen): JsonElement =
    when (seen) {
        is Seen.Status -> tree(mapOf("status" to seen.status))
        Seen.Captcha -> JsonPrimitive("captcha")
        Seen.Timeout -> JsonPrimitive("timeout")
        Seen.Block -> JsonPrimitive("block")
        Seen.Proxy -> JsonPrimitive("proxy")
        Seen.Target -> JsonPrimitive("target")
    }
