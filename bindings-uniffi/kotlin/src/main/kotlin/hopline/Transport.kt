package hopline

import hopline.core.FailureKind
import hopline.core.Sent
import java.io.IOException
import java.lang.reflect.InvocationTargetException
import kotlin.time.Duration

/**
 * HTTP, by whatever client a program has. Repeats, redirects and answers to 401 are Hopline's alone to decide: a transport
 * must send a request once, and never again.
 */
public fun interface Transport {
    /**
     * Sends a request once and gives its answer, whatever its status. Throws [TransportException] where it knows that nothing
     * was sent; any other exception means that it may have been. Must stop when its coroutine is cancelled, and should hold no
     * thread while it waits.
     */
    public suspend fun send(request: Request): Response
}

/** `java.net.http`, where the platform has it. By name, so that Android's tools meet it only in an app that asks for it. */
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

/** A request to send. It may hold secrets, so only its method and its path print. */
public class Request(
    /** The method. */
    public val method: String,
    /** The whole URL. */
    public val url: String,
    /** The headers, in the order to send them in. */
    public val headers: List<Pair<String, String>>,
    /** The body, if there is one. */
    public val body: ByteArray?,
    /** Give up after this long. */
    public val timeout: Duration,
    /** Read no more than this many bytes of the answer's body. */
    public val maxBody: Int,
) {
    override fun toString(): String = "$method ${url.substringBefore('?')}"
}

/** An answer. It may hold secrets, so only its status prints. */
public class Response(
    /** The status. */
    public val status: Int,
    /** The headers. Those that the core does not ask for are left out. */
    public val headers: List<Pair<String, String>>,
    /** The body, or as much of it as was to be read. */
    public val body: ByteArray,
    /** Whether there was more of the body than was to be read. */
    public val truncated: Boolean = false,
) {
    override fun toString(): String = "HTTP $status"
}

/** A request that has no answer, and whether it may have reached the service. */
public class TransportException(
    /** Why. */
    public val kind: Kind,
    /** Whether a byte of it may have left. False only where the failure surely came before. */
    public val mayHaveBeenSent: Boolean,
    cause: Throwable? = null,
) : IOException("the request has no answer: ${kind.name.lowercase()}", cause) {
    /** Why a request has no answer. */
    public enum class Kind(internal val core: FailureKind) {
        /** The host name has no address. */
        DNS(FailureKind.DNS),

        /** No connection. */
        CONNECT(FailureKind.CONNECT),

        /** No TLS session. */
        TLS(FailureKind.TLS),

        /** No answer in time. */
        TIMEOUT(FailureKind.TIMEOUT),

        /** The connection broke. */
        CLOSED(FailureKind.CLOSED),

        /** Anything else. */
        OTHER(FailureKind.OTHER),
    }

    internal val sent: Sent get() = if (mayHaveBeenSent) Sent.MAYBE else Sent.NEVER
}
