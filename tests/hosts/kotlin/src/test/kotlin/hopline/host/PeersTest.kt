package hopline.host

import hopline.AgentClient
import hopline.Clock
import hopline.Effect
import hopline.RecordKind
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Protocol
import hopline.Proxy
import hopline.Secret
import hopline.Seen
import hopline.SessionType
import hopline.Transport
import hopline.through
import io.ktor.client.engine.ProxyBuilder
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.http
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.request.get
import java.net.ConnectException
import java.net.InetSocketAddress
import java.net.ProxySelector
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Path
import java.util.UUID
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import javax.net.ssl.HttpsURLConnection
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.sync.Semaphore
import kotlinx.coroutines.sync.withPermit
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** The odd server before a sandbox, and the proxies, for one test. */
private class Peers(sandbox: Sandbox, vararg options: String) : AutoCloseable {
    private val program = System.getenv("HOPLINE_PEERS") ?: error("HOPLINE_PEERS must name the odd server; `cargo xtask test kotlin` does")
    private val process =
        ProcessBuilder(program, "--service", sandbox.agentUrl.removeSuffix("/v1"), *options).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val ready: JsonObject = Json.parseToJsonElement(process.inputReader().readLine()).members()

    /** Each of its behaviours, and whether every client is to read the answer. */
    val behaviours: List<Pair<String, Boolean>> =
        (ready.getValue("behaviours") as JsonArray).map { it.members() }.map { it.word("name") to (it.word("answer") == "given") }

    fun url(folder: String): String = "${ready.word("odd_url")}/$folder/v1"

    /** Addresses at which connections hang; none where the system lets none hang. */
    val blackHoles: List<String> get() = (ready.getValue("black_holes") as JsonArray).map { (it as JsonPrimitive).content }

    /** The file with the certificate of the authority that the proxies' own sites have. */
    val authority: String get() = ready.word("tls_ca")

    /** Where the HTTP proxy of that name is. */
    fun address(name: String): InetSocketAddress =
        ready.getValue("http").members().word(name).let { InetSocketAddress(it.substringBeforeLast(':'), it.substringAfterLast(':').toInt()) }

    fun proxy(name: String, username: String, password: String): Proxy =
        address(name).let { Proxy(it.hostString, it.port.toLong(), Protocol.Http, Secret(username), Secret(password)) }

    private fun recorded(): JsonObject {
        val asked = HttpRequest.newBuilder(URI.create(ready.word("control_url"))).build()
        return Json.parseToJsonElement(HttpClient.newHttpClient().send(asked, BodyHandlers.ofString()).body()).members()
    }

    /** The logins that the proxies were given, as they were read. */
    fun logins(): Set<Pair<String, String>> =
        (recorded().getValue("logins") as JsonArray).map { it.members() }.mapNotNull { login ->
            login.maybe("username")?.let { text(it) to text(login.word("password")) }
        }.toSet()

    private fun text(hex: String): String = hex.chunked(2).map { it.toInt(16).toByte() }.toByteArray().toString(Charsets.UTF_8)

    /** The connections that requests of this method have come over, one for each. */
    fun connections(method: String): List<String> =
        (recorded().getValue("relayed") as JsonArray).map { it.members() }.filter { it.word("method") == method }.map { it.getValue("connection").toString() }

    override fun close() {
        process.destroy()
        process.waitFor()
    }
}

/** HTTP clients of others before servers that answer as some do. */
class PeersTest {
    @ParameterizedTest
    @MethodSource("transports")
    fun `a purchase over an odd connection is made once, and later answers are those of their requests`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "151", "--provisioning-ms", "0", "--balance", "100000", "--rate-limit", "1000000", "--session-limit", "1000").use { sandbox ->
            Peers(sandbox).use { peers ->
                val few = Semaphore(8)
                val options = Options(timeout = 10.seconds, attempts = 6, backoff = 10.milliseconds)
                val odd =
                    peers.behaviours.flatMap { (name, isGiven) -> listOf("$name.once.writes") + listOf(name).filter { isGiven } }.map { folder ->
                        // OkHttp 4.12 breaks a connection with several interim answers by itself.
                        if (folder == "informational" && transport is OkHttpTransport) async { null } else async {
                            few.withPermit {
                                runCatching { AgentClient(Secret(sandbox.apiKey), peers.url(folder), transport, options = options).use { buy(it) } }
                                    .exceptionOrNull()?.let { "$folder: $it" }
                            }
                        }
                    }.awaitAll()
                assertEquals(emptyList<String>(), odd.filterNotNull())
                val bought = odd.size - if (transport is OkHttpTransport) 1 else 0
                assertEquals(bought to bought, sandbox.counts())
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a purchase that finds no connection in time has no effect`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "156").use { sandbox ->
            Peers(sandbox).use { peers ->
                // The client's own time is slow, so that the HTTP client comes first on a busy machine, too: only it knows how far it came.
                val slow = Clock.of { System.nanoTime() / 20_000_000 }
                for (hole in peers.blackHoles) {
                    val options = Options(timeout = 2.seconds, attempts = 1, allowHttp = true)
                    val failure = runCatching { AgentClient(Secret("key"), "http://$hole/v1", transport, options = options, clock = slow).use { buy(it) } }.exceptionOrNull()
                    assertEquals(Effect.NONE, (failure as HoplineException).effect, "$hole: $failure")
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `every write is sent over a connection that no request has used, which is kept for none`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "152", "--provisioning-ms", "0", "--balance", "100000").use { sandbox ->
            Peers(sandbox).use { peers ->
                AgentClient(Secret(sandbox.apiKey), peers.url("plain"), transport).use { agent -> repeat(3) { buy(agent) } }
                val (writes, reads) = peers.connections("POST") to peers.connections("GET")
                assertEquals(3, writes.size)
                assertEquals(writes, writes.distinct() - reads.toSet())
                assertTrue(reads.distinct().size < reads.size, "reads keep theirs: $reads")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `an answer of nobody's that comes while the next purchase is out is not that one's`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "153", "--provisioning-ms", "0", "--balance", "100000").use { sandbox ->
            Peers(sandbox).use { peers ->
                // Every purchase takes longer than the answer of nobody does that comes after the one before it.
                sandbox.fault("create_session", """{"kind":"delay","ms":100}""", times = 5)
                AgentClient(Secret(sandbox.apiKey), peers.url("second-answer-30.writes"), transport).use { agent ->
                    val bought = List(5) { agent.createSession(SessionType.Dynamic, "dynamic-world").sessionId }
                    assertEquals(bought, bought.distinct() - "ses_of_nobody")
                    assertEquals(5 to 5, sandbox.counts())
                }
            }
        }
    }

    @Test
    fun `what Java sends its writes with ends with them`(): Unit = runBlocking {
        Sandbox("--seed", "154", "--provisioning-ms", "0", "--balance", "100000", "--session-limit", "1000").use { sandbox ->
            fun selectors() = Thread.getAllStackTraces().keys.filter { it.threadGroup?.name == "hopline-write" && "Selector" in it.name }
            sandbox.fault("create_session", """{"kind":"delay","ms":60000}""")
            sandbox.client().use { agent ->
                val held = async(Dispatchers.Default) { agent.createSession(SessionType.Dynamic, "dynamic-world") }
                withTimeout(20.seconds) { while (selectors().isEmpty() || sandbox.counts().second == 0) delay(20) }
                held.cancelAndJoin()
            }
            sandbox.client().use { agent ->
                repeat(20) { agent.createSession(SessionType.Dynamic, "dynamic-world") }
                withTimeout(60.seconds) { while (selectors().isNotEmpty()) delay(20) }
            }
        }
    }

    @Test
    fun `a client that wraps Java's sends writes, too, and what it could not send again may have been sent`(): Unit = runBlocking {
        val sent = CopyOnWriteArrayList<String>()
        val real = HttpClient.newHttpClient()
        class Wrapping(val repeats: Boolean = false) : HttpClient() {
            override fun cookieHandler() = real.cookieHandler()

            override fun connectTimeout() = real.connectTimeout()

            override fun followRedirects() = real.followRedirects()

            override fun proxy() = real.proxy()

            override fun sslContext() = real.sslContext()

            override fun sslParameters() = real.sslParameters()

            override fun authenticator() = real.authenticator()

            override fun version() = real.version()

            override fun executor() = real.executor()

            override fun <T> send(request: HttpRequest, handler: HttpResponse.BodyHandler<T>): HttpResponse<T> = real.send(request, handler)

            override fun <T> sendAsync(request: HttpRequest, handler: HttpResponse.BodyHandler<T>): CompletableFuture<HttpResponse<T>> {
                val came = real.sendAsync(request.also { sent += it.method() }, handler)
                return if (repeats) came.thenCompose { CompletableFuture.failedFuture(ConnectException("there is no way to it now")) } else came
            }

            override fun <T> sendAsync(request: HttpRequest, handler: HttpResponse.BodyHandler<T>, push: HttpResponse.PushPromiseHandler<T>?) =
                real.sendAsync(request.also { sent += it.method() }, handler, push)
        }
        Sandbox("--seed", "155", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(JavaHttpTransport(Wrapping())).use { it.createSession(SessionType.Dynamic, "dynamic-world") }
            assertEquals(listOf("POST"), sent.toList())
            sandbox.client(JavaHttpTransport(Wrapping(repeats = true)), options = Options(attempts = 1)).use { agent ->
                val failure = runCatching { agent.createSession(SessionType.Dynamic, "dynamic-world") }.exceptionOrNull() as HoplineException
                assertEquals(Effect.UNKNOWN, failure.effect, "$failure")
            }
        }
    }

    /** The HTTP clients of programs' own requests through a session's proxy: each gives the status that a page was answered with. */
    private fun visitors(trust: Trust): Map<String, (String, Proxy) -> Int> =
        mapOf(
            "OkHttp" to { url, proxy ->
                val http = OkHttpClient.Builder().sslSocketFactory(trust.context.socketFactory, trust.manager).callTimeout(3, TimeUnit.SECONDS).through(proxy).build()
                http.newCall(okhttp3.Request.Builder().url(url).build()).execute().use { it.code }
            },
            "java.net.http" to { url, proxy ->
                val http = HttpClient.newBuilder().sslContext(trust.context).through(proxy).build()
                http.send(HttpRequest.newBuilder(URI(url)).timeout(java.time.Duration.ofSeconds(3)).build(), BodyHandlers.discarding()).statusCode()
            },
        )

    /** Further clients whose exceptions `Seen.of` knows. A program gives them a proxy in its own way, without a login. */
    private fun others(trust: Trust): Map<String, (String, Proxy) -> Int> =
        mapOf(
            "HttpURLConnection" to { url, proxy ->
                val through = java.net.Proxy(java.net.Proxy.Type.HTTP, InetSocketAddress(proxy.host, proxy.port!!.toInt()))
                (URI(url).toURL().openConnection(through) as HttpsURLConnection).run {
                    sslSocketFactory = trust.context.socketFactory
                    readTimeout = 3000
                    responseCode
                }
            },
            "Ktor" to { url, proxy ->
                val http = io.ktor.client.HttpClient(CIO) {
                    engine {
                        this.proxy = ProxyBuilder.http("http://${proxy.host}:${proxy.port}")
                        https { trustManager = trust.manager }
                    }
                    install(HttpTimeout) { requestTimeoutMillis = 3000 }
                }
                http.use { runBlocking { it.get(url).status.value } }
            },
        )

    @Test
    fun `a proxy is given the login as it is, whatever its letters and its length`(@TempDir folder: Path) {
        Sandbox("--seed", "156").use { sandbox ->
            Peers(sandbox, "--tls", "$folder").use { peers ->
                val logins = listOf("søren" to "SØREN", "ĘdwardĄcki1" to "pässword", "u".repeat(600) + "-country-us" to "p".repeat(2000), "user" to "%2F:@/ ?#")
                for ((name, visit) in visitors(Trust(peers.authority))) for ((username, password) in logins) for (url in listOf("http://shop.example/", "https://shop.example/")) {
                    assertEquals(200, visit(url, peers.proxy("right", username, password)), "$name $url")
                }
                assertEquals(logins.toSet(), peers.logins())
            }
        }
    }

    @Test
    fun `a proxy that is dead, hangs, closes or refuses is told apart from its target`(@TempDir folder: Path) {
        Sandbox("--seed", "157").use { sandbox ->
            Peers(sandbox, "--tls", "$folder").use { peers ->
                val trust = Trust(peers.authority)
                for ((name, visit) in visitors(trust) + others(trust)) {
                    val seen = listOf("dead", "refuses_login", "forbids", "hangs", "closes").associateWith { manner ->
                        val proxy = peers.proxy(manner, "user", "password")
                        runCatching { visit("https://shop.example/", proxy) }.fold({ Seen.Status(it) }, { Seen.of(it) })
                    }
                    for (sure in listOf("dead", "forbids")) assertEquals(Seen.Proxy, seen[sure], "$name $sure")
                    // Java 25 fails by itself at the third 407, with a NullPointerException, which says nothing of the proxy.
                    val refused =
                        when {
                            // The proxy's own answer comes from it, of which observe knows that it is no target's.
                            name == "HttpURLConnection" -> setOf(Seen.Proxy, Seen.Status(407))
                            name == "java.net.http" && Runtime.version().feature() >= 25 -> setOf(Seen.Proxy, Seen.Unknown)
                            else -> setOf(Seen.Proxy)
                        }
                    assertTrue(seen["refuses_login"] in refused, "$name ${seen["refuses_login"]}")
                    assertTrue(seen["hangs"] in setOf(Seen.Proxy, Seen.Timeout), "$name ${seen["hangs"]}")
                    assertTrue(seen["closes"] in setOf(Seen.Proxy, Seen.Unknown), "$name ${seen["closes"]}")
                }
            }
        }
    }

    @Test
    fun `a purchase behind a proxy that fails ends in time, and says whether it may have been sent`(): Unit = runBlocking {
        Sandbox("--seed", "158").use { sandbox ->
            Peers(sandbox).use { peers ->
                for (manner in listOf("dead", "hangs", "closes", "refuses_login")) {
                    val (host, port) = peers.address(manner).run { hostString to port }
                    val transports =
                        listOf(
                            OkHttpTransport(OkHttpClient.Builder().proxy(java.net.Proxy(java.net.Proxy.Type.HTTP, InetSocketAddress(host, port))).build()),
                            JavaHttpTransport(HttpClient.newBuilder().proxy(ProxySelector.of(InetSocketAddress(host, port))).build()),
                        )
                    for (transport in transports) {
                        sandbox.client(transport, options = Options(timeout = 1.seconds, attempts = 1)).use { agent ->
                            val failed = withTimeout(60.seconds) { runCatching { agent.createSession(SessionType.Dynamic, "dynamic-world") } }.exceptionOrNull()
                            val effect = if (manner == "dead") Effect.NONE else Effect.UNKNOWN
                            assertEquals(effect, (failed as HoplineException).effect, "$manner ${transport.javaClass.simpleName} $failed")
                            assertEquals(effect == Effect.UNKNOWN, agent.saved().isNotEmpty())
                        }
                    }
                }
                assertEquals(0 to 0, sandbox.counts())
            }
        }
    }

    private suspend fun buy(agent: AgentClient) {
        val bought = agent.createSession(SessionType.Dynamic, "dynamic-world", intent = UUID.randomUUID().toString()).sessionId
        repeat(2) { assertTrue(agent.balance().signum() > 0) }
        assertEquals(bought, agent.getSession(bought).sessionId)
        assertTrue(agent.saved().none { it.holds == RecordKind.IN_DOUBT || it.holds == RecordKind.IN_DOUBT_FOR_GOOD })
    }

    companion object {
        @JvmStatic
        fun transports(): List<Transport> = listOf(JavaHttpTransport(), OkHttpTransport())
    }
}
