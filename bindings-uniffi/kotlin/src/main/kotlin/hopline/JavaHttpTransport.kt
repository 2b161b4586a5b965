package hopline

import hopline.TransportException.Kind
import java.io.IOException
import java.net.ConnectException
import java.net.URI
import java.net.UnknownHostException
import java.net.http.HttpClient
import java.net.http.HttpConnectTimeoutException
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse
import java.net.http.HttpTimeoutException
import java.nio.ByteBuffer
import java.nio.channels.UnresolvedAddressException
import java.security.cert.CertificateException
import java.time.Duration
import java.util.concurrent.Callable
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import java.util.concurrent.CompletionStage
import java.util.concurrent.ExecutionException
import java.util.concurrent.Executors
import java.util.concurrent.Flow
import java.util.concurrent.ThreadFactory
import javax.net.ssl.SSLException
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.suspendCancellableCoroutine

/**
 * HTTP by `java.net.http`, which is part of Java 11 and later, and not of Android. The transport uses HTTP/1.1.
 *
 * A client that follows redirects or answers 401 by itself is refused, and so is one in a program that sets
 * `jdk.httpclient.enableAllMethodRetry`, by which Java would send a purchase twice. Java still repeats a GET whose reused connection was
 * closed, which changes nothing.
 *
 * The given client is for reads. A write is sent by a client of its own with the same settings, and so over a connection of its own: a
 * reused connection may hold an answer that belongs to no request, which would be taken for that of a purchase. A `localAddress` can't be
 * read from a client, so writes have none. A client that is not the platform's, such as a wrapper, sends its writes itself.
 */
public class JavaHttpTransport @JvmOverloads constructor(private val client: HttpClient = HttpClient.newHttpClient()) : Transport {
    init {
        val wrong =
            when {
                client.followRedirects() != HttpClient.Redirect.NEVER -> "the HTTP client follows redirects; build it without them"
                client.authenticator().isPresent -> "the HTTP client answers 401 by itself; build it without an authenticator"
                System.getProperty(REPEATS).let { it != null && it != "false" } ->
                    "the property $REPEATS lets Java send a request twice; take it away"
                else -> null
            }
        if (wrong != null) throw unfit("transport", wrong)
    }

    override suspend fun send(request: Request): Response {
        val built =
            try {
                request.forJava()
            } catch (error: IllegalArgumentException) {
                throw TransportException(Kind.OTHER, mayHaveBeenSent = false, error)
            }
        if (request.method == "GET" || !isPlatforms) return client.answer(built, request.maxBody)
        val own =
            try {
                OwnClient.like(client)
            } catch (error: ExecutionException) {
                throw TransportException(Kind.CONNECT, mayHaveBeenSent = false, error.cause)
            } catch (error: InterruptedException) {
                Thread.currentThread().interrupt()
                throw TransportException(Kind.OTHER, mayHaveBeenSent = false, error)
            }
        return own.use { it.client.answer(built, request.maxBody) }
    }

    /** A wrapper may do more than the platform's client, such as answer for a test. */
    private val isPlatforms = client.javaClass.name.startsWith("jdk.internal.net.http.")

    private suspend fun HttpClient.answer(request: HttpRequest, most: Int): Response =
        suspendCancellableCoroutine { waiting ->
            if (!waiting.isActive) return@suspendCancellableCoroutine
            val exchange = sendAsync(request) { Limited(most) }
            waiting.invokeOnCancellation { exchange.cancel(true) }
            exchange.whenComplete { answer, error ->
                if (error == null) {
                    waiting.resumeWith(Result.success(answer.read()))
                } else {
                    // A wrapper may have sent the request before, and failed when it sent it again.
                    waiting.resumeWithException(failure(error).let { if (isPlatforms) it else TransportException(it.kind, true, it.cause) })
                }
            }
        }
}

/** A client for one request, and its thread. Closing it closes its connection. */
private class OwnClient(val client: HttpClient, private val threads: Set<Thread>) : AutoCloseable {
    /** Without this, a client ends its thread only after it was garbage-collected. */
    override fun close(): Unit = threads.forEach(Thread::interrupt)

    companion object {
        private val group = ThreadGroup("hopline-write")

        /** One after the other, so that a new thread belongs to the client that is being made. */
        private val maker = Executors.newSingleThreadExecutor { work -> Thread(group, work, "hopline-write").apply { isDaemon = true } }

        /** The executor of a client that was given none. */
        private val workers = Executors.newCachedThreadPool(Executors.defaultThreadFactory().let { factory -> ThreadFactory { factory.newThread(it).apply { isDaemon = true } } })

        fun like(given: HttpClient): OwnClient =
            maker.submit(
                Callable {
                    val before = selectors()
                    val built = HttpClient.newBuilder().sslContext(given.sslContext()).sslParameters(given.sslParameters())
                    built.executor(given.executor().orElse(workers))
                    given.proxy().ifPresent(built::proxy)
                    given.cookieHandler().ifPresent(built::cookieHandler)
                    given.connectTimeout().ifPresent(built::connectTimeout)
                    OwnClient(built.build(), selectors() - before)
                },
            ).get()

        private fun selectors(): Set<Thread> {
            val all = arrayOfNulls<Thread>(2 * group.activeCount() + 8)
            group.enumerate(all)
            return all.filterNotNull().filter { it.name.endsWith("-SelectorManager") }.toSet()
        }
    }
}

private const val REPEATS = "jdk.httpclient.enableAllMethodRetry"

private fun Request.forJava(): HttpRequest {
    val built = HttpRequest.newBuilder(URI.create(url)).version(HttpClient.Version.HTTP_1_1)
    headers.forEach { (name, value) -> built.header(name, value) }
    built.timeout(Duration.ofMillis(timeout.inWholeMilliseconds))
    return built.method(method, body?.let(BodyPublishers::ofByteArray) ?: BodyPublishers.noBody()).build()
}

private fun HttpResponse<Body>.read(): Response {
    val headers = headers().map().flatMap { (name, values) -> values.map { name to it } }
    return Response(statusCode(), headers, body().bytes, body().truncated)
}

/**
 * Java's `ConnectException` and `HttpConnectTimeoutException` come only from connecting, and names without an address cause one. A
 * certificate is refused before anything is sent.
 */
private fun failure(error: Throwable): TransportException {
    val cause = if (error is CompletionException) error.cause ?: error else error
    val all = generateSequence(cause) { it.cause }.take(8).toList()
    return when {
        all.any { it is UnresolvedAddressException || it is UnknownHostException } -> TransportException(Kind.DNS, false, cause)
        cause is ConnectException -> TransportException(Kind.CONNECT, false, cause)
        cause is HttpConnectTimeoutException -> TransportException(Kind.CONNECT, false, cause)
        cause is HttpTimeoutException -> TransportException(Kind.TIMEOUT, true, cause)
        all.any { it is SSLException } -> TransportException(Kind.TLS, all.none { it is CertificateException }, cause)
        cause is IOException -> TransportException(Kind.CLOSED, true, cause)
        else -> TransportException(Kind.OTHER, true, cause)
    }
}

private class Body(val bytes: ByteArray, val truncated: Boolean)

/** Reads no more of a body than requested. */
private class Limited(private val most: Int) : HttpResponse.BodySubscriber<Body> {
    private val read = CompletableFuture<Body>()
    private val parts = ArrayList<ByteArray>()
    private var size = 0
    private var flow: Flow.Subscription? = null

    override fun getBody(): CompletionStage<Body> = read

    override fun onSubscribe(subscription: Flow.Subscription) {
        flow = subscription
        subscription.request(Long.MAX_VALUE)
    }

    override fun onNext(item: List<ByteBuffer>) {
        if (read.isDone) return
        for (buffer in item) {
            val part = ByteArray(minOf(buffer.remaining(), most - size))
            val more = buffer.remaining() > part.size
            buffer.get(part)
            parts += part
            size += part.size
            if (more) {
                flow?.cancel()
                read.complete(whole(truncated = true))
                return
            }
        }
    }

    override fun onError(throwable: Throwable) {
        read.completeExceptionally(throwable)
    }

    override fun onComplete() {
        read.complete(whole(truncated = false))
    }

    private fun whole(truncated: Boolean): Body {
        val bytes = ByteArray(size)
        parts.fold(0) { at, part -> at + part.size.also { part.copyInto(bytes, at) } }
        return Body(bytes, truncated)
    }
}
