package hopline.host

import hopline.AgentClient
import hopline.Clock
import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Protocol
import hopline.Proxy
import hopline.Response
import hopline.Secret
import hopline.SessionType
import hopline.Store
import hopline.Transport
import hopline.through
import java.io.File
import java.net.InetSocketAddress
import java.net.http.HttpClient
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.CopyOnWriteArraySet
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import javax.tools.ToolProvider
import kotlin.jvm.optionals.getOrNull
import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import okhttp3.Cookie
import okhttp3.CookieJar
import okhttp3.HttpUrl
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The needs of a phone, as far as another machine can show them. */
class PhoneTest {
    private val balance = """{"balance":5}"""

    @Test
    fun `no work of a client is done in the thread that calls it`(): Unit = runBlocking {
        val used = CopyOnWriteArraySet<String>()
        fun here() = used.add(Thread.currentThread().name)
        val clock =
            object : Clock {
                override fun unix(): Long = Clock.SYSTEM.unix().also { here() }

                override fun monotonic(): Long = Clock.SYSTEM.monotonic().also { here() }
            }
        val own = SharedStore().client()
        val store =
            object : Store by own {
                override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
                    here()
                    return own.put(name, data, new, keepFor, release)
                }

                override suspend fun close() = own.close().also { here() }
            }
        val service = Transport { here().let { answered("""{"session_id":"s-1","status":"creating"}""", 202) } }
        val threads = Executors.newSingleThreadExecutor { Thread(it, "main-of-the-app") }.asCoroutineDispatcher()
        threads.use { main ->
            withContext(main) {
                val agent = AgentClient(Secret("key"), "https://api.example/v1", service, store, headers = { here().let { emptyMap() } }, clock = clock)
                agent.createSession(SessionType.Dynamic, "p", intent = "job-17")
                agent.saved().forEach { agent.resume(it.record) }
                agent.resumeAll()
                agent.saved().forEach { agent.forget(it.record) }
                agent.shutdown()
            }
        }
        assertTrue(used.isNotEmpty() && used.none { "main-of-the-app" in it }, "$used")
    }

    @Test
    fun `what an app's own backend refuses in its own words bought nothing, and its intent sends the same key again`(): Unit = runBlocking {
        var isAllowed = false
        val backend = Scripted {
            if (isAllowed) answered("""{"session_id":"s-1","status":"creating"}""", 202)
            else Response(403, listOf("Content-Type" to "application/json"), """{"error":"not this user"}""".toByteArray())
        }
        AgentClient(null, "https://shop.example/v1", backend, options = Options(account = "user-1")).use { agent ->
            for (intent in listOf(null, "job-17")) {
                val refused = assertThrows(HoplineException.Refused::class.java) {
                    runBlocking { agent.createSession(SessionType.Dynamic, "p", intent = intent) }
                }
                assertEquals(Effect.NONE, refused.effect)
            }
            isAllowed = true
            assertEquals(0, agent.resumeAll().size, "nobody asked for it again")
            assertEquals("s-1", agent.createSession(SessionType.Dynamic, "p", intent = "job-17").sessionId)
            val keys = backend.sent.map { request -> request.headers.single { it.first == "idempotency-key" }.second }
            assertTrue(keys.size == 3 && keys[1] == keys[2] && keys[0] != keys[1], "$keys")
        }
        isAllowed = false
        // Where the service itself is to answer, that is no answer of its.
        AgentClient(Secret("key"), "https://api.example/v1", backend).use { agent ->
            val failure = runCatching { agent.createSession(SessionType.Dynamic, "p") }.exceptionOrNull()
            assertEquals(Effect.UNKNOWN, (failure as HoplineException).effect)
        }
    }

    @Test
    fun `a platform without java net http gets a sentence that says what to give`() {
        // As on Android: the module is not there, and the class can't be found.
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val java = File(System.getProperty("java.home"), "bin/java").path
        val process = ProcessBuilder(java, "--limit-modules", "java.base,java.logging,java.desktop", "-cp", path, "hopline.host.Platform").redirectErrorStream(true).start()
        val told = process.inputReader().readText()
        assertEquals(0, process.waitFor(), told)
        assertTrue("there is no java.net.http here; give the client a transport, such as OkHttpTransport()" in told, told)
        assertTrue("with OkHttp: 5" in told && "NoClassDefFoundError" !in told, told)
    }

    @Test
    fun `the clock is that of Android where there is one, which goes on in deep sleep`(@TempDir folder: Path) {
        val source = Files.createDirectories(folder.resolve("android/os")).resolve("SystemClock.java")
        Files.writeString(source, "package android.os; public class SystemClock { public static long elapsedRealtime() { return 1234567890123L; } }")
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, source.toString()))
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val java = File(System.getProperty("java.home"), "bin/java").path
        val process = ProcessBuilder(java, "-cp", "$path${File.pathSeparator}$folder", "hopline.host.Platform").redirectErrorStream(true).start()
        val told = process.inputReader().readText()
        assertEquals(0, process.waitFor(), told)
        assertTrue("monotonic: 1234567890123" in told, told)
    }

    @Test
    fun `a request that a sleeping device would send too late is not sent`(): Unit = runBlocking {
        val monotonic = AtomicLong(1_000_000)
        val clock =
            object : Clock {
                override fun unix(): Long = 1_750_000_000_000 + monotonic.get()

                override fun monotonic(): Long = monotonic.get()
            }
        var asked = 0
        // The device sleeps for an hour while the app looks for its token, and once it is awake it takes no time.
        val headers: suspend () -> Map<String, String> = {
            if (asked++ == 0) monotonic.addAndGet(1.hours.inWholeMilliseconds)
            emptyMap()
        }
        val service = Scripted { answered(balance) }
        AgentClient(Secret("key"), "https://api.example/v1", service, headers = headers, clock = clock).use { agent ->
            agent.getBalance()
            assertEquals(2 to 1, asked to service.sent.size)
        }
    }

    @Test
    fun `the name of a proxy is not looked up before it is used`() {
        val proxy = Proxy("gate.invalid", 8080, Protocol.Http, Secret("name"), Secret("word"))
        val address = OkHttpClient.Builder().through(proxy).build().proxy!!.address() as InetSocketAddress
        assertTrue(address.isUnresolved && address.hostString == "gate.invalid")
        val selector = HttpClient.newBuilder().through(proxy).build().proxy().getOrNull()!!
        assertTrue((selector.select(java.net.URI("https://shop.example")).single().address() as InetSocketAddress).isUnresolved)
    }

    @Test
    fun `records are for the user who runs the program`(@TempDir folder: Path): Unit = runBlocking {
        val place = folder.resolve("new/records")
        AgentClient(Secret("key"), "https://api.example/v1", Scripted { throw java.io.IOException("gone") }, FolderStore(place), Options(attempts = 1)).use { agent ->
            assertThrows(HoplineException::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }
            fun permissions(path: Path) = PosixFilePermissions.toString(Files.getPosixFilePermissions(path))
            assertEquals("rwx------", permissions(place))
            val (folders, files) = Files.walk(place).use { all -> all.toList().partition { Files.isDirectory(it) } }
            assertTrue(files.any { it.startsWith(place.resolve("names")) } && files.any { it.startsWith(place.resolve("locks")) }, "$files")
            folders.forEach { assertEquals("rwx------", permissions(it), "$it") }
            files.forEach { assertEquals("rw-------", permissions(it), "$it") }
        }
    }

    @Test
    fun `on Android the folder is one that no backup has`(@TempDir app: Path) {
        assertEquals(app.resolve("no_backup/hopline"), FolderStore.android(app.resolve("no_backup").toFile()).path)
        val refused = assertThrows(HoplineException.Invalid::class.java) { FolderStore.android(app.resolve("files").toFile()) }
        assertTrue("context.noBackupFilesDir" in refused.message!!, refused.message)
    }

    @Test
    fun `cookies of the app's client are neither sent nor kept`(): Unit = runBlocking {
        val kept = ArrayList<Cookie>()
        val jar =
            object : CookieJar {
                override fun loadForRequest(url: HttpUrl): List<Cookie> = listOf(Cookie.Builder().domain(url.host).name("canary").value("x").build())

                override fun saveFromResponse(url: HttpUrl, cookies: List<Cookie>) {
                    kept += cookies
                }
            }
        Sandbox().use { sandbox ->
            sandbox.fault("get_balance", """{"kind":"answer","status":200,"headers":{"Set-Cookie":"a=b"},"body":"{\"success\":true,\"data\":{}}"}""")
            sandbox.client(OkHttpTransport(OkHttpClient.Builder().cookieJar(jar).build())).use { it.getBalance() }
            val sent = sandbox.requests().single().toString()
            assertTrue("canary" !in sent && kept.isEmpty(), "$sent $kept")
        }
    }

    @Test
    fun `a store is not touched before the first call`(@TempDir folder: Path) {
        val place = folder.resolve("records")
        AgentClient(Secret("key"), "https://api.example/v1", JavaHttpTransport(), FolderStore(place)).close()
        assertTrue(Files.notExists(place))
    }

    @Test
    fun `requests of one client that are stuck hold up no other client`(): Unit = runBlocking {
        val stuck = CompletableDeferred<Unit>()
        val begun = AtomicInteger()
        val blocking = Transport { begun.incrementAndGet().let { runBlocking { stuck.await() } }.let { answered(balance) } }
        val options = Options(attempts = 1, timeout = 120.seconds, maxInFlight = 200)
        AgentClient(Secret("key"), "https://api.example/v1", blocking, options = options).use { first ->
            val waiting = List(200) { async { runCatching { first.getBalance(timeout = 120.seconds) } } }
            while (begun.get() < 200) delay(1)
            AgentClient(Secret("key"), "https://api.example/v1", Scripted { answered(balance) }).use { assertEquals(balance, it.getBalance().raw.text) }
            stuck.complete(Unit)
            waiting.forEach { it.await() }
        }
    }
}

/** A program of its own: makes a client with what the platform has. */
object Platform {
    @JvmStatic
    fun main(arguments: Array<String>) {
        println("monotonic: ${Clock.SYSTEM.monotonic()}")
        try {
            AgentClient(Secret("key"), "https://api.example/v1").close()
        } catch (refused: HoplineException.Invalid) {
            println(refused.message)
        }
        val service = Scripted { answered("""{"balance":5}""") }
        AgentClient(Secret("key"), "https://api.example/v1", service).use { agent ->
            OkHttpTransport()
            println("with OkHttp: ${runBlocking { agent.getBalance().raw.text }.filter { it.isDigit() }}")
        }
    }
}
