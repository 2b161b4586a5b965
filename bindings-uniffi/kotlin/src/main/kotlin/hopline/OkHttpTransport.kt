package hopline

import hopline.TransportException.Kind
import java.io.IOException
import java.io.InterruptedIOException
import java.net.ConnectException
import java.net.UnknownHostException
import java.util.concurrent.TimeUnit
import javax.net.ssl.SSLException
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.suspendCancellableCoroutine
import okhttp3.Authenticator
import okhttp3.Call
import okhttp3.Callback
import okhttp3.ConnectionPool
import okhttp3.CookieJar
import okhttp3.Dispatcher
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.RequestBody
import okio.Buffer
import okio.BufferedSink

/**
 * HTTP by OkHttp. The given client's connections, TLS, proxy, DNS and network interceptors are used; its own repeats, redirects, cache,
 * cookies, timeouts and answers to 401 are left out. A client with application interceptors is refused, since they may send twice, or stand
 * for the service in a test: pass the headers that they add to the client as `headers`. So is one of a class derived from OkHttp's.
 *
 * The given client's connections are for reads. A write has a connection of its own: a reused connection may hold an answer that belongs to
 * no request, which would be taken for that of a purchase. Writes are sent over HTTP/1.1, since HTTP/2 sends several over one connection.
 */
public class OkHttpTransport(client: OkHttpClient = OkHttpClient()) : Transport {
    init {
        val wrong =
            when {
                client.interceptors.isNotEmpty() ->
                    "the HTTP client has application interceptors, which may send a request twice or answer it themselves; build it without them"
                client.javaClass != OkHttpClient::class.java -> "the HTTP client is of a class derived from OkHttp's, which would be passed by; give OkHttp's"
                else -> null
            }
        if (wrong != null) throw unfit("transport", wrong)
    }

    private val client: OkHttpClient =
        client.newBuilder().apply {
            retryOnConnectionFailure(false)
            followRedirects(false)
            followSslRedirects(false)
            authenticator(Authenticator.NONE)
            cache(null)
            cookieJar(CookieJar.NO_COOKIES)
            addInterceptor(Guard)
            addNetworkInterceptor(Wire)
            // The engine sets how long each request may take, and how many may be out at once.
            callTimeout(0, TimeUnit.SECONDS)
            connectTimeout(0, TimeUnit.SECONDS)
            readTimeout(0, TimeUnit.SECONDS)
            writeTimeout(0, TimeUnit.SECONDS)
            dispatcher(
                Dispatcher(client.dispatcher.executorService).apply {
                    maxRequests = Int.MAX_VALUE
                    maxRequestsPerHost = Int.MAX_VALUE
                },
            )
        }.build()

    private val writes: OkHttpClient =
        this.client.newBuilder().connectionPool(ConnectionPool(0, 1, TimeUnit.NANOSECONDS)).protocols(listOf(okhttp3.Protocol.HTTP_1_1)).build()

    override suspend fun send(request: Request): Response {
        val trace = Trace()
        val call =
            try {
                (if (request.method == "GET") client else writes).newCall(request.forOkHttp(trace))
            } catch (error: IllegalArgumentException) {
                throw TransportException(Kind.OTHER, mayHaveBeenSent = false, error)
            }
        call.timeout().timeout(request.timeout.inWholeMilliseconds, TimeUnit.MILLISECONDS)
        return suspendCancellableCoroutine { waiting ->
            waiting.invokeOnCancellation { call.cancel() }
            call.enqueue(
                object : Callback {
                    override fun onFailure(call: Call, e: IOException) = waiting.resumeWithException(trace.failure(e))

                    override fun onResponse(call: Call, response: okhttp3.Response) {
                        val read = runCatching { response.use { trace.read(it, request.maxBody) } }
                        read.fold({ waiting.resumeWith(Result.success(it)) }, { waiting.resumeWithException(trace.failure(it)) })
                    }
                },
            )
        }
    }
}

/** The progress of one call on the wire. */
private class Trace {
    @Volatile
    var begun = false

    @Volatile
    var retryAfter: List<String> = emptyList()

    /** Before the last interceptor was reached, no byte of the request was written. */
    fun failure(error: Throwable): TransportException {
        val kind =
            when (error) {
                is UnknownHostException -> Kind.DNS
                is ConnectException -> Kind.CONNECT
                is SSLException -> Kind.TLS
                is InterruptedIOException -> Kind.TIMEOUT
                is IOException -> Kind.CLOSED
                else -> Kind.OTHER
            }
        return TransportException(kind, begun, error)
    }

    fun read(response: okhttp3.Response, most: Int): Response {
        val hidden = retryAfter.map { RETRY_AFTER to it }
        val source = response.body?.source()
        val body = Buffer()
        while (source != null && body.size <= most && source.read(body, minOf(CHUNK, most + 1L - body.size).coerceAtLeast(1)) >= 0) Unit
        val truncated = body.size > most
        return Response(response.code, response.headers.map { it } + hidden, body.readByteArray(minOf(body.size, most.toLong())), truncated)
    }
}

/**
 * The first interceptor. An exception of OkHttp that is no `IOException`, such as at several interim answers, would end its thread, and with that
 * an Android app.
 */
private object Guard : Interceptor {
    override fun intercept(chain: Interceptor.Chain): okhttp3.Response =
        try {
            chain.proceed(chain.request())
        } catch (error: RuntimeException) {
            throw IOException("$error", error)
        }
}

/** The last interceptor before the wire. OkHttp repeats a 503 by itself when it sees that header, so this hides it. */
private object Wire : Interceptor {
    override fun intercept(chain: Interceptor.Chain): okhttp3.Response {
        val trace = chain.request().tag(Trace::class.java)
        trace?.begun = true
        val response = chain.proceed(chain.request())
        trace?.retryAfter = response.headers(RETRY_AFTER)
        return response.newBuilder().removeHeader(RETRY_AFTER).build()
    }
}

private fun Request.forOkHttp(trace: Trace): okhttp3.Request {
    val built = okhttp3.Request.Builder().url(url).tag(Trace::class.java, trace)
    headers.forEach { (name, value) -> built.addHeader(name, value) }
    val needsBody = method == "POST" || method == "PUT" || method == "PATCH"
    return built.method(method, (body ?: ByteArray(0).takeIf { needsBody })?.let(::Once)).build()
}

/** A body that OkHttp may write once. Its type is among the headers. */
private class Once(private val bytes: ByteArray) : RequestBody() {
    override fun contentType(): MediaType? = null

    override fun contentLength(): Long = bytes.size.toLong()

    override fun isOneShot(): Boolean = true

    override fun writeTo(sink: BufferedSink) {
        sink.write(bytes)
    }
}

private const val RETRY_AFTER = "Retry-After"
private const val CHUNK = 65_536L
