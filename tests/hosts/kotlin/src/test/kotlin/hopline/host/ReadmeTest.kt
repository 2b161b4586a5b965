package hopline.host

import com.sun.net.httpserver.HttpServer
import java.io.File
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The programs of the README, and of the site's pages, are those in `readme/`, which were compiled with the tests, and run here: twice, and after a kill. */
class ReadmeTest {
    private val readme = File(System.getenv("HOPLINE_README") ?: "../../../bindings-uniffi/kotlin/README.md").readText()

    private fun start(main: String, folder: Path, sandbox: Sandbox, more: Map<String, String> = emptyMap(), arguments: List<String> = emptyList()): Process =
        sandbox.program(main, *arguments.toTypedArray()).directory(folder.toFile()).redirectErrorStream(true).apply { environment() += more }.start()

    private fun run(main: String, folder: Path, sandbox: Sandbox, more: Map<String, String> = emptyMap(), arguments: List<String> = emptyList()): String {
        val process = start(main, folder, sandbox, more, arguments)
        val text = process.inputReader().readText()
        check(process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0) { text }
        return text
    }

    /** Starts a program, and kills it once it has come to this. */
    private fun kill(main: String, folder: Path, sandbox: Sandbox, arguments: List<String> = emptyList(), at: () -> Boolean) {
        val process = start(main, folder, sandbox, arguments = arguments)
        val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120)
        while (process.isAlive && !at() && System.nanoTime() < end) Thread.sleep(20)
        val came = at() && process.isAlive
        process.destroyForcibly().waitFor()
        check(came) { "it never came to that: ${process.inputReader().readText()}" }
    }

    @Test
    fun `every program of the readme is one that is run`() {
        val shown = Regex("```kotlin\n(.*?)```", RegexOption.DOT_MATCHES_ALL).findAll(readme).map { it.groupValues[1] }.toList()
        val kept = listOf("Phone.kt", "First.kt", "Shortest.kt").map { File("src/test/kotlin/readme/$it").readText() }
        assertEquals(kept, shown)
    }

    @Test
    fun `the shortest program goes on wherever it was killed, and buys again today and tomorrow`(@TempDir folders: Path) {
        assertTrue(File("src/test/kotlin/readme/Shortest.kt").readLines().count { it.isNotBlank() } <= 12)
        // Each is held at the next step, so that it is killed before that: a request to end its session does not end it for an hour.
        val places =
            listOf(
                Triple("list_products", "create_session", "delay"),
                Triple("create_session", "get_session", "delay"),
                Triple("get_session", "terminate_session", "in_progress"),
            )
        for ((operation, then, kind) in places) {
            val folder = Files.createDirectory(folders.resolve(operation))
            Sandbox("--seed", "78", "--provisioning-ms", "0").use { sandbox ->
                val page = listOf(sandbox.targetUrl)
                sandbox.fault(then, """{"kind":"$kind","ms":3600000}""")
                kill("ShortestKt", folder, sandbox, page) { sandbox.times(operation) > 0 }
                sandbox.clearFaults()
                for (charges in 1..3) {
                    assertEquals("200 for 2 USD\n", run("ShortestKt", folder, sandbox, arguments = page), operation)
                    assertEquals(charges to charges, sandbox.counts(), operation)
                    if (charges == 2) sandbox.control("clock", """{"advance_ms":86400000}""")
                }
                assertTrue("\"status\":\"active\"" !in "${sandbox.state()["sessions"]}", operation)
            }
        }
    }

    @Test
    fun `the whole program buys a session, ends it, and says so when it is run again`(@TempDir folder: Path) {
        Sandbox("--seed", "71", "--provisioning-ms", "0").use { sandbox ->
            assertTrue("dynamic-world: " in run("FirstKt", folder, sandbox))
            val told = run("ProgramKt", folder, sandbox)
            assertTrue("is READY at" in told && "[redacted]" in told, told)
            assertTrue("\"status\":\"terminated\"" in "${sandbox.state()["sessions"]}", told)
            val again = run("ProgramKt", folder, sandbox)
            assertTrue("new intent" in again && "is READY" !in again, again)
            assertEquals(1 to 1, sandbox.counts())
        }
    }

    @Test
    fun `a pool's program finds its sessions again`(@TempDir folder: Path) {
        Sandbox("--seed", "76", "--provisioning-ms", "0").use { sandbox ->
            val page = sandbox.targetUrl.replace("127.0.0.1", "localhost")
            val told = run("PooledKt", folder, sandbox, arguments = listOf(page, page))
            assertEquals(2, Regex("200, KEEP").findAll(told).count(), told)
            val bought = sandbox.counts()
            assertTrue(bought.first in 1..2 && bought.first == bought.second, "$bought")
            val again = run("PooledKt", folder, sandbox, arguments = listOf(page))
            assertTrue("200, KEEP" in again && sandbox.counts() == bought, again)
        }
    }

    @Test
    fun `a pool's program reads 1500 pages with 1024 descriptors`(@TempDir folder: Path) {
        Sandbox("--seed", "77", "--provisioning-ms", "0").use { sandbox ->
            val page = sandbox.targetUrl.replace("127.0.0.1", "localhost")
            val program = sandbox.program("PooledKt", *List(1500) { "$page?$it" }.toTypedArray())
            val limited = ProcessBuilder(listOf("sh", "-c", "ulimit -n 1024 && exec \"$0\" \"$@\"") + program.command())
            limited.environment() += program.environment()
            val process = limited.directory(folder.toFile()).redirectErrorStream(true).start()
            val told = process.inputReader().readText()
            assertTrue(process.waitFor() == 0, told)
            assertEquals(1500, Regex("200, KEEP").findAll(told).count(), told.take(3000))
        }
    }

    @Test
    fun `the whole program goes on with its purchase after it was killed`(@TempDir folder: Path) {
        Sandbox("--seed", "72", "--provisioning-ms", "0").use { sandbox ->
            sandbox.fault("create_session", """{"kind":"delay","ms":60000}""")
            kill("ProgramKt", folder, sandbox) { sandbox.counts().second == 1 }
            sandbox.fault("get_session_health", """{"kind":"delay","ms":60000}""")
            kill("ProgramKt", folder, sandbox) { sandbox.times("get_session_health") == 1 }
            val told = run("ProgramKt", folder, sandbox)
            assertTrue("is READY at" in told && "cost" !in told, told)
            assertTrue("\"status\":\"terminated\"" in "${sandbox.state()["sessions"]}", told)
            assertEquals(1 to 1, sandbox.counts())
        }
    }

    @Test
    fun `the reseller's program makes nothing twice, after a kill either`(@TempDir folder: Path) {
        Sandbox("--seed", "73", "--provisioning-ms", "0").use { sandbox ->
            sandbox.fault("list_static_orders", """{"kind":"delay","ms":60000}""")
            kill("ResellerKt", folder, sandbox) { kept(folder.resolve("hopline-records"), listOf("names")).any { "\"order_no\":" in it } }
            val sold = run("ResellerKt", folder, sandbox)
            assertTrue("is READY\na proxy at 127." in sold && "purchase" in sold && "renewal" in sold && "costs" !in sold, sold)
            // Run again it finds the order that it has cancelled.
            assertTrue("is ENDED" in run("ResellerKt", folder, sandbox))
            assertEquals(listOf(1, 1, 1), listOf("create", "renew", "cancel").map { sandbox.times("${it}_static_order") })
            assertEquals(1, sandbox.times("create_user"))
        }
    }

    @Test
    fun `an app buys through its own backend, which has the key`(@TempDir folder: Path) {
        Sandbox("--seed", "74", "--provisioning-ms", "0").use { sandbox ->
            Backend(sandbox).use { backend ->
                val app = mapOf("APP_BACKEND" to backend.url, "APP_TOKEN" to "token-of-the-user", "HOPLINE_API_KEY" to "", "HOPLINE_BASE_URL" to "")
                val first = run("PhoneKt", folder, sandbox, app)
                assertTrue(" is yours" in first, first)
                assertEquals(first, run("PhoneKt", folder, sandbox, app))
                assertEquals(1 to 1, sandbox.counts())
                val stranger = run("PhoneKt", folder, sandbox, app + ("APP_TOKEN" to "another"))
                assertTrue(" is yours" !in stranger && sandbox.apiKey !in stranger, stranger)
            }
        }
    }
}

/** An app's backend, as the README says that it has to be: it knows its users, adds the key, and changes nothing else. */
private class Backend(private val sandbox: Sandbox) : AutoCloseable {
    private val http = HttpClient.newHttpClient()
    private val threads = Executors.newCachedThreadPool()
    private val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
    val url = "http://127.0.0.1:${server.address.port}/v1"

    init {
        server.executor = threads
        server.createContext("/v1") { exchange ->
            exchange.use {
                if (exchange.requestHeaders.getFirst("Authorization") != "Bearer token-of-the-user") {
                    exchange.sendResponseHeaders(401, -1)
                    return@use
                }
                val there = URI(sandbox.agentUrl.removeSuffix("/v1") + exchange.requestURI)
                val request = HttpRequest.newBuilder(there).header("X-API-Key", sandbox.apiKey)
                for (name in listOf("Content-Type", "Idempotency-Key")) exchange.requestHeaders.getFirst(name)?.let { request.header(name, it) }
                val answer = http.send(request.method(exchange.requestMethod, BodyPublishers.ofByteArray(exchange.requestBody.readBytes())).build(), BodyHandlers.ofByteArray())
                for (name in listOf("Content-Type", "Retry-After")) answer.headers().firstValue(name).ifPresent { exchange.responseHeaders.set(name, it) }
                exchange.sendResponseHeaders(answer.statusCode(), answer.body().size.toLong().takeIf { it > 0 } ?: -1)
                exchange.responseBody.write(answer.body())
            }
        }
        server.start()
    }

    override fun close() {
        server.stop(0)
        threads.shutdownNow()
    }
}
