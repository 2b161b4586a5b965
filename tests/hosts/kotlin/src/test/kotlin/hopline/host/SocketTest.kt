package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Request
import hopline.Secret
import hopline.SessionType
import hopline.Transport
import hopline.TransportException
import java.net.http.HttpClient
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.parallel.Isolated
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** Connections that misbehave, and HTTP clients that would make up for it by themselves. Each write is to arrive once. */
@Isolated("it sets a property of the process")
class SocketTest {
    private fun client(url: String, transport: Transport, options: Options = ONCE): AgentClient = AgentClient(Secret("key"), url, transport, options = options)

    private fun buy(agent: AgentClient): HoplineException =
        assertThrows(HoplineException::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }

    private fun Sandbox.count(method: String): Int = requests().count { it.word("method") == method }

    private fun Sandbox.connections(): Int = requests().distinctBy { it.word("connection") }.size

    @ParameterizedTest
    @MethodSource("transports")
    fun `a write on a reused connection that breaks is not sent again`(transport: Transport): Unit = runBlocking {
        Sandbox().use { sandbox ->
            sandbox.fault("create_session", """{"kind":"drop_before"}""", 100)
            sandbox.fault("terminate_session", """{"kind":"drop_before"}""", 100)
            sandbox.client(transport, options = ONCE).use { agent ->
                repeat(3) {
                    agent.getBalance()
                    val failure = buy(agent)
                    assertTrue(failure is HoplineException.InDoubt && failure.effect == Effect.UNKNOWN, "$failure")
                }
                assertEquals(3, sandbox.count("POST"))
                agent.getBalance()
                assertThrows(HoplineException::class.java) { runBlocking { agent.terminateSession("s-1") } }
                assertEquals(1, sandbox.count("DELETE"))
                assertTrue(sandbox.connections() < sandbox.requests().size, "no connection was used twice")
            }
        }
    }

    @Test
    fun `a write of an interrupted thread says that nothing was sent and leaves the interrupt to its owner`(): Unit = runBlocking {
        Sandbox().use { sandbox ->
            val request = Request("POST", "${sandbox.agentUrl}/sessions", emptyList(), "{}".toByteArray(), 5.seconds, 1000)
            Thread.currentThread().interrupt()
            val failure = runCatching { JavaHttpTransport().send(request) }.exceptionOrNull()
            assertTrue(Thread.interrupted(), "the interrupt is lost")
            assertTrue(failure is TransportException && !failure.mayHaveBeenSent, "$failure")
            assertEquals(0, sandbox.requests().size)
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a connection that is reset before or after the request was read leaves a purchase in doubt`(transport: Transport) {
        Sandbox().use { sandbox ->
            sandbox.fault("create_session", """{"kind":"reset"}""")
            for (url in listOf(sandbox.resetUrl, sandbox.agentUrl)) {
                client(url, transport).use { agent ->
                    val failure = buy(agent)
                    assertTrue(failure is HoplineException.InDoubt && failure.effect == Effect.UNKNOWN, "$url: $failure")
                }
            }
            assertEquals(1, sandbox.requests().size)
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a server that closes an idle connection gets a write once at most`(transport: Transport): Unit = runBlocking {
        Sandbox().use { sandbox ->
            sandbox.fault("get_balance", """{"kind":"hang_up"}""", 100)
            sandbox.client(transport, options = ONCE).use { agent ->
                repeat(5) {
                    // A read may get the connection that was closed after the last one.
                    runCatching { agent.getBalance() }
                    runCatching { agent.terminateSession("s-$it") }
                    assertTrue(sandbox.requests().count { request -> request.word("path").endsWith("/s-$it") } <= 1)
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `what an http client answers by itself is left to the core`(transport: Transport) {
        val answers =
            listOf(503 to "Retry-After: 0", 408 to "Retry-After: 0", 401 to "WWW-Authenticate: Basic realm='x'", 302 to "Location: /v1/account/info",
                307 to "Location: /v1/account/info", 308 to "Location: /v1/account/info", 421 to "X-A: b", 407 to "Proxy-Authenticate: Basic realm='x'")
        Sandbox().use { sandbox ->
            for ((place, answer) in answers.withIndex()) {
                val (status, header) = answer
                val (name, value) = header.split(": ")
                sandbox.clearFaults()
                // More often than it may be asked for.
                sandbox.fault(null, """{"kind":"answer","status":$status,"headers":{"$name":"${value.replace("'", "\\\"")}"},"body":"<html>"}""", 10)
                sandbox.client(transport, options = ONCE).use { agent ->
                    val failure = buy(agent)
                    // OkHttp has an error of its own for a proxy's answer where there is no proxy.
                    val told = if (status == 407 && transport is OkHttpTransport) null else status
                    assertEquals(told, failure.status, "$failure")
                    assertEquals(place + 1, sandbox.requests().size, "$status: ${sandbox.requests()}")
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `the core hears of retry-after though the http client does not`(transport: Transport) {
        Sandbox().use { sandbox ->
            sandbox.fault("create_session", """{"kind":"error","code":"RATE_LIMIT_EXCEEDED","retry_after":{"header":3600}}""")
            sandbox.client(transport, options = ONCE).use { assertNotNull(buy(it).retryAt) }
        }
        Sandbox().use { sandbox ->
            sandbox.fault("get_balance", """{"kind":"answer","status":503,"headers":{"Retry-After":"3600"},"body":"<html>"}""", 10)
            sandbox.client(transport, options = Options(attempts = 3)).use { agent ->
                val failure = assertThrows(HoplineException::class.java) { runBlocking { agent.getBalance() } }
                assertNotNull(failure.retryAt)
                assertEquals(1, sandbox.requests().size)
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `nothing was sent where nobody listens, and that is known`(transport: Transport) {
        for (url in listOf("http://127.0.0.1:$CLOSED_PORT/v1", "https://nobody.invalid/v1")) {
            // A lost packet to a server of names costs seconds.
            client(url, transport, Options(attempts = 1, timeout = 30.seconds)).use { agent ->
                val failure = buy(agent)
                assertTrue(failure is HoplineException.Unavailable && failure.effect == Effect.NONE, "$failure")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a body without an end is read as far as it may be`(transport: Transport) {
        Sandbox().use { sandbox ->
            sandbox.fault("get_balance", """{"kind":"huge","silent":true}""")
            sandbox.client(transport, options = Options(attempts = 1, maxBody = 100_000, timeout = 5.seconds)).use { agent ->
                val failure = assertThrows(HoplineException::class.java) { runBlocking { agent.getBalance() } }
                assertTrue(failure is HoplineException.Protocol, "$failure")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a server that never answers is given up in time`(transport: Transport) {
        Sandbox().use { sandbox ->
            sandbox.fault("create_session", """{"kind":"delay","ms":60000}""")
            sandbox.client(transport, options = Options(attempts = 1, timeout = 2.seconds)).use { agent ->
                val begin = System.nanoTime()
                val failure = buy(agent)
                assertTrue(failure.effect == Effect.UNKNOWN, "$failure")
                assertTrue(System.nanoTime() - begin < 30_000_000_000)
            }
        }
    }

    @Test
    fun `an OkHttp client that may repeat a request, or answer it for a test, is refused`() {
        val repeating = OkHttpClient.Builder().addInterceptor { chain -> chain.proceed(chain.request()).close().let { chain.proceed(chain.request()) } }.build()
        val answering = object : OkHttpClient() {
            override fun newCall(request: okhttp3.Request): okhttp3.Call = error("the test answers")
        }
        for (client in listOf(repeating, answering)) {
            val refused = assertThrows(HoplineException.Invalid::class.java) { OkHttpTransport(client) }
            assertEquals("transport", refused.field, "$refused")
        }
    }

    @Test
    fun `what breaks OkHttp fails a request, and ends no thread`() {
        val breaking = OkHttpClient.Builder().addNetworkInterceptor { throw IllegalStateException("it broke") }.build()
        val (uncaught, before) = CopyOnWriteArrayList<Throwable>() to Thread.getDefaultUncaughtExceptionHandler()
        Thread.setDefaultUncaughtExceptionHandler { _, error -> uncaught += error }
        try {
            Sandbox().use { sandbox ->
                val failure = sandbox.client(OkHttpTransport(breaking), options = ONCE).use { buy(it) }
                assertTrue(failure.effect == Effect.NONE && "it broke" in "$failure", "$failure")
            }
            breaking.dispatcher.executorService.shutdown()
            assertTrue(breaking.dispatcher.executorService.awaitTermination(60, TimeUnit.SECONDS))
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before)
        }
        assertEquals(emptyList<Throwable>(), uncaught.toList())
    }

    @Test
    fun `a java client that would send again by itself is refused`() {
        val follows = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.ALWAYS).build()
        assertThrows(HoplineException.Invalid::class.java) { JavaHttpTransport(follows) }
        val repeats = "jdk.httpclient.enableAllMethodRetry"
        System.setProperty(repeats, "true")
        try {
            val refused = assertThrows(HoplineException.Invalid::class.java) { JavaHttpTransport() }
            assertTrue(repeats in refused.message!!, refused.message)
        } finally {
            System.clearProperty(repeats)
        }
    }

    companion object {
        private val ONCE = Options(attempts = 1, timeout = 5.seconds)

        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}
