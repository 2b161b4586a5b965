package hopline

import hopline.core.FailureKind
import hopline.core.Sent
import java.io.IOException
import java.lang.reflect.InvocationTargetException
import kotlin.time.Duration

/**
 * HTTP, by the HTTP client of a program. Repeats, redirects and answers to 401 are decided by Hopline alone: a transport must send a
 * request once, and never again.
 */
public fun interface Transport {
    /**
     * Sends a request once and returns its answer, whatever its status. Throws [TransportException] if it knows that nothing was sent; any
     * other exception means that the request may have been sent. Must stop when its coroutine is cancelled, and should hold no thread while
     * it waits.
     */
    public suspend fun send(request: Request): Response
}

/** `java.net.http`, if the platform has it. Loaded by name, so that Android's tools see it only in an app that uses it. */
internal fun defaultTransport(): Transport =
    try {
        Class.forName("java.net.http.HttpClient")
        Class.forName(listOf("hopline", "JavaHttpTransport").joinToString(".")).getConstructor().newInstance() as Transport
    } catch (_: ClassNotFoundException) {
        val what = "there is no java.net.http here; give the client a transport, such as OkHttpTransport()"
        throw unfit("transport", what)
    } catch (wrong: InvocationTargetException) {
        throw wrong.targetException
    }

/** A request to send. The request may hold secrets, so only its method and its path print. */
public class Request(
    /** The method. */
    public val method: String,
    /** The whole URL. */
    public val url: String,
    /** The headers, in the order to send them in. */
    public val headers: List<Pair<String, String>>,
    /** The body, if there is one. */
    public val body: ByteArray?,
    /** The timeout. */
    public val timeout: Duration,
    /** The most bytes to read of the answer's body. */
    public val maxBody: Int,
) {
    override fun toString(): String = "$method ${url.substringBefore('?')}"
}

/** An answer. The answer may hold secrets, so only its status prints. */
public class Response(
    /** The status. */
    public val status: Int,
    /** The headers. Only those that the core needs are kept. */
    public val headers: List<Pair<String, String>>,
    /** The body, up to the limit. */
    public val body: ByteArray,
    /** True if the body was longer than the limit. */
    public val truncated: Boolean = false,
) {
    override fun toString(): String = "HTTP $status"
}

/** A request without an answer, and whether it may have reached the service. */
public class TransportException(
    /** The reason. */
    public val kind: Kind,
    /** True if a byte of the request may have left. False only if the failure certainly came before. */
    public val mayHaveBeenSent: Boolean,
    cause: Throwable? = null,
) : IOException("the request has no answer: ${kind.name.lowercase()}", cause) {
    /** The reason why a request has no answer. */
    public enum class Kind(internal val core: FailureKind) {
        /** The host name has no address. */
        DNS(FailureKind.DNS),

        /** The connection could not be made. */
        CONNECT(FailureKind.CONNECT),

        /** The TLS session could not be made. */
        TLS(FailureKind.TLS),

        /** The answer did not come in time. */
        TIMEOUT(FailureKind.TIMEOUT),

        /** The connection broke. */
        CLOSED(FailureKind.CLOSED),

        /** Any other reason. */
        OTHER(FailureKind.OTHER),
    }

    internal val sent: Sent get() = if (mayHaveBeenSent) Sent.MAYBE else Sent.NEVER
}
