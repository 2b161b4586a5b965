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
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.URI
import java.net.URLDecoder
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Path
import java.security.KeyStore
import java.util.concurrent.CopyOnWriteArrayList
import javax.net.ssl.KeyManagerFactory
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLSocket
import javax.net.ssl.TrustManagerFactory
import javax.net.ssl.X509TrustManager
import kotlin.concurrent.thread
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir

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

    /**
     * A proxy that lets nobody past without a login, and behind it a site whose `http` sends on to its `https`, which answers `/asks` as a
     * proxy would. `told` are the requests that the site gets in a tunnel.
     */
    private class OddProxy(folder: Path, val told: MutableList<String> = CopyOnWriteArrayList()) : AutoCloseable {
        private val server = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
        val port: Int get() = server.localPort
        val trust: KeyStore

        init {
            val (file, password) = folder.resolve("site.p12") to "password"
            val names = listOf("-dname", "CN=shop.localhost", "-ext", "san=dns:shop.localhost")
            val made = ProcessBuilder(
                listOf("${System.getProperty("java.home")}/bin/keytool", "-genkeypair", "-alias", "site", "-keyalg", "EC", "-keystore", "$file", "-storepass", password) + names,
            ).redirectErrorStream(true).start()
            val said = made.inputStream.reader().readText()
            check(made.waitFor() == 0) { said }
            trust = KeyStore.getInstance(file.toFile(), password.toCharArray())
            val keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm()).apply { init(trust, password.toCharArray()) }
            val tls = SSLContext.getInstance("TLS").apply { init(keys.keyManagers, null, null) }
            thread(isDaemon = true) { while (!server.isClosed) runCatching { server.accept() }.onSuccess { thread(isDaemon = true) { runCatching { it.use { socket -> serve(socket, tls) } } } } }
        }

        private fun serve(socket: Socket, tls: SSLContext) {
            val head = head(socket)
            if ("proxy-authorization:" !in head.lowercase()) return answer(socket, "407 No Login\r\nProxy-Authenticate: Basic realm=\"proxy\"")
            val path = head.substringAfter(' ').substringBefore(' ').substringAfter("localhost")
            if (!head.startsWith("CONNECT ")) return answer(socket, "301 Moved\r\nLocation: https://shop.localhost$path")
            socket.getOutputStream().write("HTTP/1.1 200 OK\r\n\r\n".toByteArray())
            val inner = (tls.socketFactory.createSocket(socket, null, socket.port, true) as SSLSocket).apply { useClientMode = false }
            val asked = head(inner).also { told += it }
            answer(inner, if ("/asks" in asked) "407 No Login\r\nProxy-Authenticate: Basic realm=\"site\"" else "200 OK")
        }

        private fun head(socket: Socket): String =
            buildString { while (!endsWith("\r\n\r\n")) append(socket.getInputStream().read().also { check(it >= 0) }.toChar()) }

        private fun answer(socket: Socket, begin: String) {
            socket.getOutputStream().write("HTTP/1.1 $begin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".toByteArray())
            socket.close()
        }

        override fun close(): Unit = server.close()
    }

    @Test
    fun `no site gets the proxy's login`(@TempDir folder: Path) {
        OddProxy(folder).use { odd ->
            val managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()).apply { init(odd.trust) }.trustManagers
            val tls = SSLContext.getInstance("TLS").apply { init(null, managers, null) }
            val through = proxy("localhost", odd.port.toLong(), Protocol.Http)
            val http = OkHttpClient.Builder().through(through).sslSocketFactory(tls.socketFactory, managers[0] as X509TrustManager).build()
            fun status(url: String): Int = http.newCall(Request.Builder().url(url).build()).execute().use { it.code }
            val came = listOf("http://shop.localhost/", "https://shop.localhost/", "http://shop.localhost/asks", "https://shop.localhost/asks").map(::status)
            assertEquals(listOf(200, 200, 407, 407), came)
            assertEquals(4, odd.told.size, "each came to the site once")
            assertTrue(odd.told.none { "authorization" in it.lowercase() }, "${odd.told}")
        }
    }
}
