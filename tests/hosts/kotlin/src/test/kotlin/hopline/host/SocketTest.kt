package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Secret
import hopline.SessionType
import hopline.Transport
import java.net.ServerSocket
import java.net.Socket
import java.net.http.HttpClient
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

/** Servers that misbehave, and HTTP clients that would make up for it by themselves. Each write is to arrive once. */
@Isolated("it sets a property of the process")
class SocketTest {
    private fun client(url: String, transport: Transport, options: Options = Options(attempts = 1, timeout = 5.seconds)): AgentClient =
        AgentClient(Secret("canary-key"), url, transport, options = options)

    private fun buy(agent: AgentClient): HoplineException =
        assertThrows(HoplineException::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }

    private val balance = """{"success":true,"data":{"balance":5}}"""

    @ParameterizedTest
    @MethodSource("transports")
    fun `a write on a reused connection that breaks is not sent again`(transport: Transport): Unit = runBlocking {
        RawServer { request, socket -> request.startsWith("GET") && write(socket, "200 OK", balance) }.use { server ->
            client(server.url, transport).use { agent ->
                repeat(3) {
                    agent.getBalance()
                    val failure = buy(agent)
                    assertTrue(failure is HoplineException.InDoubt && failure.effect == Effect.UNKNOWN, "$failure")
                }
                assertEquals(3, server.count("POST"))
                agent.getBalance()
                assertThrows(HoplineException::class.java) { runBlocking { agent.terminateSession("s-1") } }
                assertEquals(1, server.count("DELETE"))
                assertTrue(server.connections.size < server.requests.size, "no connection was used twice")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a server that closes an idle connection gets a write once at most`(transport: Transport): Unit = runBlocking {
        RawServer { request, socket -> write(socket, "200 OK", balance) && !request.startsWith("GET") }.use { server ->
            client(server.url, transport).use { agent ->
                repeat(5) {
                    agent.getBalance()
                    runCatching { agent.terminateSession("s-$it") }
                    assertTrue(server.requests.count { line -> line.contains("s-$it ") } <= 1)
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `what an http client answers by itself is left to the core`(transport: Transport): Unit = runBlocking {
        val answers =
            listOf("503 Busy" to "Retry-After: 0", "408 Slow" to "Retry-After: 0", "401 No" to "WWW-Authenticate: Basic realm=\"x\"", "302 Found" to "Location: /v1/other",
                "307 Go" to "Location: /v1/other", "308 Go" to "Location: /v1/other", "421 Elsewhere" to "X-A: b", "407 Proxy" to "Proxy-Authenticate: Basic realm=\"x\"")
        for ((status, header) in answers) {
            RawServer { _, socket -> write(socket, status, "<html>", header) }.use { server ->
                client(server.url, transport).use { agent ->
                    val failure = buy(agent)
                    // OkHttp has an error of its own for a proxy's answer where there is no proxy.
                    val told = if (status.startsWith("407") && transport is OkHttpTransport) null else status.take(3).toInt()
                    assertEquals(told, failure.status, "$failure")
                    assertEquals(1, server.requests.size, "$status: ${server.requests}")
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `the core hears of retry-after though the http client does not`(transport: Transport): Unit = runBlocking {
        val refusal = """{"success":false,"data":null,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow down"}}"""
        RawServer { _, socket -> write(socket, "429 Slow down", refusal, "Retry-After: 3600") }.use { server ->
            client(server.url, transport).use { assertNotNull(buy(it).retryAt) }
        }
        RawServer { _, socket -> write(socket, "503 Busy", "<html>", "Retry-After: 3600") }.use { server ->
            client(server.url, transport, Options(attempts = 3)).use { agent ->
                val failure = assertThrows(HoplineException::class.java) { runBlocking { agent.getBalance() } }
                assertNotNull(failure.retryAt)
                assertEquals(1, server.requests.size)
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `nothing was sent where nobody listens, and that is known`(transport: Transport): Unit = runBlocking {
        val free = ServerSocket(0).use { it.localPort }
        for (url in listOf("http://127.0.0.1:$free/v1", "https://nobody.invalid/v1")) {
            // A lost packet to a server of names costs seconds.
            client(url, transport, Options(attempts = 1, timeout = 30.seconds)).use { agent ->
                val failure = buy(agent)
                assertTrue(failure is HoplineException.Unavailable && failure.effect == Effect.NONE, "$failure")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a body without an end is read as far as it may be`(transport: Transport): Unit = runBlocking {
        fun endless(socket: Socket): Boolean {
            val out = socket.getOutputStream()
            out.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"success\":true,\"data\":\"".toByteArray())
            while (true) out.write(ByteArray(4096) { 'a'.code.toByte() })
        }
        RawServer { _, socket -> endless(socket) }.use { server ->
            client(server.url, transport, Options(attempts = 1, maxBody = 100_000, timeout = 5.seconds)).use { agent ->
                val failure = assertThrows(HoplineException::class.java) { runBlocking { agent.getBalance() } }
                assertTrue(failure is HoplineException.Protocol, "$failure")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a server that never answers is given up in time`(transport: Transport): Unit = runBlocking {
        RawServer { _, socket -> socket.getInputStream().read() > 0 }.use { server ->
            client(server.url, transport, Options(attempts = 1, timeout = 2.seconds)).use { agent ->
                val begin = System.nanoTime()
                val failure = buy(agent)
                assertTrue(failure.effect == Effect.UNKNOWN, "$failure")
                assertTrue(System.nanoTime() - begin < 30_000_000_000)
            }
        }
    }

    @Test
    fun `an application interceptor that repeats is left out`(): Unit = runBlocking {
        val repeating = OkHttpClient.Builder().addInterceptor { chain -> chain.proceed(chain.request()).close().let { chain.proceed(chain.request()) } }.build()
        RawServer { _, socket -> write(socket, "500 Oh", "<html>") }.use { server ->
            client(server.url, OkHttpTransport(repeating)).use { buy(it) }
            assertEquals(1, server.requests.size)
        }
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
        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}
