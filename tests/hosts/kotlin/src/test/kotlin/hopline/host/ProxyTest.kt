package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.Protocol
import hopline.Proxy
import hopline.Secret
import hopline.SessionType
import hopline.forCurl
import hopline.through
import hopline.url
import java.net.URI
import java.net.URLDecoder
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse.BodyHandlers
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** A session's proxy, used by the HTTP clients that people have, over real sockets. */
class ProxyTest {
    private val odd = listOf("user@1:/", "p%ss:w@rd /?#[]é\"\\+*~")

    private fun proxy(host: String? = "gate.example", port: Long? = 8080, protocol: Protocol? = Protocol.Http, fullUrl: String? = null) =
        Proxy(host = host, port = port, protocol = protocol, username = Secret(odd[0]), password = Secret(odd[1]), fullUrl = fullUrl?.let(::Secret))

    private suspend fun AgentClient.proxy(protocol: Protocol): Proxy =
        openSession(SessionType.Dynamic, "dynamic-world", protocol = protocol, credentials = true).proxy

    private fun exit(body: String): String = Json.parseToJsonElement(body).members().word("address")

    private fun byOkHttp(url: String, proxy: Proxy): String =
        OkHttpClient.Builder().through(proxy).build().newCall(Request.Builder().url(url).build()).execute().use { exit(it.body!!.string()) }

    private fun byJava(url: String, proxy: Proxy): String =
        exit(HttpClient.newBuilder().through(proxy).build().send(HttpRequest.newBuilder(URI(url)).build(), BodyHandlers.ofString()).body())

    /** Null where there is no curl, which is a failure where all is to be checked. */
    private fun byCurl(url: String, proxy: Proxy): String? {
        val curl = runCatching { ProcessBuilder("curl", "-sS", "--config", "-", url).redirectErrorStream(true).start() }.getOrElse {
            if (System.getenv("CI") == "true") throw it
            return null
        }
        curl.outputStream.use { it.write(proxy.forCurl().reveal().toByteArray()) }
        val told = curl.inputReader().readText()
        check(curl.waitFor() == 0) { told }
        return exit(told)
    }

    @Test
    fun `a page is fetched through the session`(): Unit = runBlocking {
        Sandbox("--seed", "111", "--provisioning-ms", "0").use { sandbox ->
            // A name that only the proxy has to know.
            val url = sandbox.targetUrl.replace("127.0.0.1", "shop.localhost")
            sandbox.client().use { agent ->
                val http = agent.proxy(Protocol.Http)
                val socks = agent.proxy(Protocol.Socks5)
                val (first, second) = (sandbox.state().getValue("sessions") as JsonArray).map { it.members().word("exit") }
                assertEquals(listOf(first, first), listOf(byOkHttp(url, http), byJava(url, http)))
                assertEquals(listOf(first, second), listOf(byCurl(url, http) ?: first, byCurl(url, socks) ?: second))
            }
        }
    }

    @Test
    fun `a wrong password is an answer, and is tried no more than a few times`(): Unit = runBlocking {
        Sandbox("--seed", "112", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val wrong = agent.proxy(Protocol.Http).copy(password = Secret("wrong"))
                val url = sandbox.targetUrl.replace("127.0.0.1", "shop.localhost")
                val status = OkHttpClient.Builder().through(wrong).build().newCall(Request.Builder().url(url).build()).execute().use { it.code }
                assertEquals(407, status)
                assertThrows<java.io.IOException> { byJava(url, wrong) }
            }
        }
    }

    @Test
    fun `what can't speak the protocol names the one to buy`() {
        val unable: List<(Proxy) -> Any> = listOf({ OkHttpClient.Builder().through(it) }, { HttpClient.newBuilder().through(it) })
        for (through in unable) for (protocol in listOf(Protocol.Socks5, Protocol.Https)) {
            val refused = assertThrows<HoplineException.Invalid> { through(proxy(protocol = protocol)) }
            assertTrue("buy the session with `protocol` http" in refused.message!!, refused.message)
            assertEquals("protocol" to Effect.NONE, refused.field to refused.effect)
        }
        // The service may speak plain HTTP where it sells https, and its URL says so.
        unable.forEach { it(proxy(protocol = Protocol.Https, fullUrl = "http://x")) }
    }

    @Test
    fun `credentials survive the URL, whatever they are`() {
        val url = URI(proxy("2001:db8::1", 1080, Protocol.Socks5).url().reveal())
        assertEquals(listOf("socks5h", "[2001:db8::1]", 1080), listOf(url.scheme, url.host, url.port))
        assertEquals(odd, url.rawUserInfo.split(':').map { URLDecoder.decode(it, "UTF-8") })
        fun scheme(protocol: Protocol, fullUrl: String? = null) = proxy(protocol = protocol, fullUrl = fullUrl).url().reveal().substringBefore(':')
        assertEquals(listOf("http", "https", "socks5h"), listOf(Protocol.Http, Protocol.Https, Protocol.Socks5).map { scheme(it) })
        assertEquals(listOf("http", "socks5h"), listOf(scheme(Protocol.Https, "http://x"), scheme(Protocol.Socks5, "socks5://x")))
    }

    @Test
    fun `a proxy that is not complete says what to do, and prints no secret`() {
        val odds =
            mapOf(
                Proxy(host = "h", port = 1, protocol = Protocol.Socks5) to "`username` and password are missing, since they were not requested; use `credentials`",
                proxy(host = null) to "`host` and port are missing",
                proxy(host = "h\"\nx") to "`host` is not a host name",
                proxy(port = 65536) to "`port` must be 1 to 65535",
                proxy(protocol = null) to "`protocol` is missing or unknown",
                proxy(protocol = Protocol("quic")) to "`protocol` is missing or unknown",
            )
        for ((proxy, said) in odds) {
            for (settings in listOf<(Proxy) -> Any>({ it.url() }, { it.forCurl() })) {
                val refused = assertThrows<HoplineException.Invalid> { settings(proxy) }
                assertTrue(said in refused.message!! && "p%ss" !in "$refused $proxy", refused.message)
            }
        }
        assertEquals("[redacted] [redacted]", "${proxy().url()} ${proxy().forCurl()}")
    }
}
