package hopline.host

import hopline.AgentClient
import hopline.Phase
import hopline.Protocol
import hopline.Proxy
import hopline.RotateReason
import hopline.Secret
import hopline.Seen
import hopline.SessionType
import hopline.Verdict
import hopline.through
import java.io.IOException
import java.net.ConnectException
import java.net.ServerSocket
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.URI
import java.net.UnknownHostException
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse.BodyHandlers
import java.time.Duration
import java.util.concurrent.TimeUnit
import javax.net.ssl.SSLHandshakeException
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** A session that was opened is live, and an exception of an HTTP client says whose failure it was. */
class HandleTest {
    @Test
    fun `a handle shows what any call has read, and its generation grows with each new exit`(): Unit = runBlocking {
        Sandbox("--seed", "131", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, intent = "job-17", credentials = true)
                val again = agent.openSession(SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, intent = "job-17")
                val password = open.proxy.password
                assertNotNull(password)
                agent.getSession(open.sessionId)
                assertEquals(password, open.proxy.password, "what a read did not ask for is as it was")
                assertEquals(0 to password, open.generation to open.refresh().proxy?.password)
                open.rotate(RotateReason.Block)
                assertEquals(listOf(1, 1), listOf(open.generation, again.generation))
                assertTrue(open.proxy.password != null && "generation=1" in "$open")
                agent.rotateSession(open.sessionId)
                assertEquals(2, again.generation)
                again.terminate()
                assertEquals(Phase.ENDED to Phase.ENDED, open.phase to again.phase)
            }
        }
    }

    @Test
    fun `a rotation whose answer shows no proxy leaves none, since the login before it is no longer good`(): Unit = runBlocking {
        val service = Scripted { request ->
            val proxy = ""","proxy":{"host":"gate.example","port":1080,"username":"u","password":"old"}"""
            answered("""{"session_id":"s-1","session_type":"dynamic","status":"active"${if ("/rotate" in request.url) "" else proxy}}""")
        }
        AgentClient(Secret("key"), "https://api.example/v1", service).use { agent ->
            val open = agent.openSession(SessionType.Dynamic, "p")
            assertNotNull(open.proxy.password)
            open.rotate(RotateReason.Block)
            assertEquals(listOf(1, null, null), listOf(open.generation, open.proxy.host, open.proxy.password))
        }
    }

    private fun thrown(work: () -> Int): Seen = runCatching(work).fold({ error("it was answered $it") }, Seen::of)

    private fun okHttp(proxy: Proxy, url: String): Seen =
        thrown {
            OkHttpClient.Builder().through(proxy).connectTimeout(2, TimeUnit.SECONDS).readTimeout(500, TimeUnit.MILLISECONDS).build()
                .newCall(Request.Builder().url(url).build()).execute().use { it.code }
        }

    private fun java(proxy: Proxy, url: String): Seen =
        thrown {
            HttpClient.newBuilder().through(proxy).connectTimeout(Duration.ofSeconds(2)).build()
                .send(HttpRequest.newBuilder(URI(url)).timeout(Duration.ofMillis(1500)).build(), BodyHandlers.ofString()).statusCode()
        }

    @Test
    fun `the proxy's failures are told from the target's, in OkHttp and in java net http`(): Unit = runBlocking {
        Sandbox("--seed", "132", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, credentials = true)
                ServerSocket(0).use { silent ->
                    val wrong = open.proxy.copy(password = Secret("wrong"), fullUrl = null)
                    val gone = open.proxy.copy(port = CLOSED_PORT.toLong(), fullUrl = null)
                    val nowhere = open.proxy.copy(host = "no-such-host.invalid", fullUrl = null)
                    for (client in listOf(::okHttp, ::java)) {
                        assertEquals(Seen.Proxy, client(wrong, "https://localhost:${silent.localPort}/"), "$client, wrong password")
                        assertEquals(Seen.Proxy, client(gone, sandbox.targetUrl), "$client, a closed port")
                        assertEquals(Seen.Proxy, client(nowhere, sandbox.targetUrl), "$client, an unknown proxy")
                        assertEquals(Seen.Target, client(open.proxy, "https://localhost:$CLOSED_PORT/"), "$client, a target that listens not")
                        assertEquals(Seen.Timeout, client(open.proxy, "http://localhost:${silent.localPort}/"), "$client, a target that is silent")
                    }
                }
                val advice = open.observe(ConnectException("Connection refused")) as Verdict.Unsure
                assertEquals((open.observe(Seen.Proxy) as Verdict.Unsure).why, advice.why)
                assertTrue("proxy" in advice.why && "target" in (open.observe(IOException("unexpected end of stream")) as Verdict.Unsure).why)
                assertEquals(Verdict.Rotate(RotateReason.Http403), open.observe(403))
            }
        }
    }

    @Test
    fun `exceptions are known by what they say, also those of sockets and of URL connections`() {
        val known =
            mapOf(
                IOException("Unable to tunnel through proxy. Proxy returns \"HTTP/1.1 407 Proxy Authentication Required\"") to Seen.Proxy,
                IOException("Unable to tunnel through proxy. Proxy returns \"HTTP/1.1 502 Bad Gateway\"") to Seen.Target,
                IOException("Tunnel failed, got: 503") to Seen.Target,
                IOException("Unexpected response code for CONNECT: 403") to Seen.Proxy,
                SocketException("SOCKS : authentication failed") to Seen.Proxy,
                SocketException("Can't connect to SOCKS proxy:Connection refused") to Seen.Proxy,
                SocketException("SOCKS: Host unreachable") to Seen.Target,
                SocketTimeoutException("Connect timed out") to Seen.Proxy,
                SocketTimeoutException("Read timed out") to Seen.Timeout,
                UnknownHostException("gate.example") to Seen.Proxy,
                SSLHandshakeException("bad certificate") to Seen.Target,
                IOException("wrapped", ConnectException("refused")) to Seen.Proxy,
                SSLHandshakeException("Remote host terminated the handshake") to Seen.Unknown,
                IOException("unexpected end of stream on https://shop.example/...") to Seen.Unknown,
                IOException("a proxy of mine said 407") to Seen.Proxy,
                IllegalStateException("the request timed out") to Seen.Timeout,
                IllegalStateException() to Seen.Unknown,
            )
        for ((error, seen) in known) assertEquals(seen, Seen.of(error), "$error")
    }
}
