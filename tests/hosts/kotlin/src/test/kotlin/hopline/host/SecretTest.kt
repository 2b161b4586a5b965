package hopline.host

import hopline.AgentClient
import hopline.Event
import hopline.EventName
import hopline.FolderStore
import hopline.HoplineException
import hopline.Method
import hopline.OkHttpTransport
import hopline.Options
import hopline.Protocol
import hopline.Safety
import hopline.Secret
import hopline.SessionType
import hopline.Until
import hopline.forCurl
import hopline.sessionEvent
import hopline.url
import java.io.PrintWriter
import java.io.StringWriter
import java.math.BigDecimal
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class SecretTest {
    private fun printed(error: Throwable): String = StringWriter().also { error.printStackTrace(PrintWriter(it)) }.toString()

    @Test
    fun `no secret is printed, told or kept`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "61", "--provisioning-ms", "0", "--api-key", "canary-key-0123456789").use { sandbox ->
            val events = CopyOnWriteArrayList<Event>()
            sandbox.client(OkHttpTransport(), FolderStore(folder), Options(attempts = 2)).use { agent ->
                launch { agent.events.collect { events += it } }
                yield()
                sandbox.fault("create_session", """{"kind":"drop_before"}""")
                val header = mapOf("X-Trace" to Secret("canary-header"))
                val open =
                    agent.openSession(SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, intent = "job-17", headers = header, credentials = true)
                val secrets = listOf(open.proxy.username!!, open.proxy.password!!, open.proxy.fullUrl!!).map { it.reveal() } + listOf("canary", sandbox.apiKey)
                sandbox.fault("rotate_session", """{"kind":"drop_after"}""", times = 9)
                val failure = runCatching { open.rotate(includeCredentials = true) }.exceptionOrNull() as HoplineException
                val shown =
                    listOf(open, open.session, open.session.proxy, open.raw, agent, failure, printed(failure), agent.saved(), events, Options(), header)
                        .map { it.toString() } + kept(folder)
                assertTrue(events.any { it.event == EventName.REPEATING } && shown.size > 12, "$events")
                for (text in shown) secrets.forEach { assertTrue(it !in text, "a secret shows in: $text") }
            }
        }
    }

    /** An answer with a secret in every place that has one. */
    private val secrets =
        """{"api_key":"canary-issued","api_secret":"canary-issued","agent_id":7,"session_id":"s-1","status":"active","message":"sent","items":[],
            "proxy":{"host":"gate.example","port":1080,"protocol":"http","username":"canary-user","password":"canary-password",
            "full_url":"http://canary-user:canary-password@gate.example:1080"}}"""

    @Test
    fun `no secret of the whole API is printed, told or kept`(@TempDir folder: Path): Unit = runBlocking {
        val (shown, sent) = CopyOnWriteArrayList<String>() to CopyOnWriteArrayList<String>()
        var lost = false
        val service = Scripted { request ->
            sent += "${request.headers} ${request.body?.decodeToString()}"
            shown += kept(folder) + "$request"
            if (lost) throw java.io.IOException("lost ${request.headers.map { it.second }} and ${request.body?.decodeToString()}")
            answered(if (request.url.endsWith("request-api-key")) secrets.replace("active", "email_sent") else secrets)
        }
        val options = Options(attempts = 1)
        AgentClient(Secret("canary-key"), "https://api.example/v1", service, FolderStore(folder), options, dailyCapUsd = BigDecimal(100)).use { agent ->
            val events = launch { agent.events.collect { shown += "$it" } }
            yield()
            val (email, header) = Secret("canary@mail.example") to mapOf("X-More" to Secret("canary-header"))
            fun body(note: String) = JsonObject(mapOf("note" to JsonPrimitive(note)))
            val calls =
                listOf<suspend () -> Any>(
                    { agent.requestApiKey(email, headers = header) }, { agent.registerAccount("A", contactEmail = email) },
                    { agent.getSession("s-1", includeCredentials = true) }, { agent.request(Method.POST, "/x", body = body("canary-body"), headers = header) },
                    // A request that may be sent again is kept, its body included, so this one has nothing to hide there.
                    { agent.request(Method.PUT, "/x", body = body("plain"), headers = header, safety = Safety.KEYED, intent = "free-${shown.size}") },
                    { agent.reportSessionEvent("s-1", sessionEvent(more = body("canary-event"))) },
                    { agent.getBalance(until = Until("/status", listOf("active")), deadline = Duration.ZERO) },
                )
            for (call in calls) shown += "${call()}"
            val proxy = agent.getSession("s-1").proxy!!
            assertEquals("canary-password", proxy.password?.reveal())
            shown += listOf(proxy, proxy.url(), proxy.forCurl(), agent, options, agent.walkProducts(headers = header)).map { "$it" }
            shown += agent.walkProducts(headers = header).pages().toList().map { "$it" }
            lost = true
            for (call in calls) shown += printed(runCatching { call() }.exceptionOrNull() as HoplineException)
            shown += agent.saved().map { "$it" } + kept(folder)
            assertTrue(kept(folder).isNotEmpty(), "records were kept")
            agent.close()
            events.join()
        }
        for (secret in listOf("canary-key", "canary@mail.example", "canary-header", "canary-body", "canary-event")) {
            assertTrue(sent.any { secret in it }, "$secret was never sent, so nothing is shown by its absence")
        }
        for (text in shown) assertTrue("canary" !in text, "a secret shows in: $text")
    }

    @Test
    fun `a secret and a request print nothing of what they hold`() {
        assertEquals("[redacted]", "${Secret("canary")}")
        assertEquals(Secret("a"), Secret("a"))
        val request = hopline.Request("GET", "https://h/p?token=canary", listOf("x" to "canary"), "canary".toByteArray(), Options().timeout ?: kotlin.time.Duration.ZERO, 1)
        assertEquals("GET https://h/p", "$request")
        assertTrue("canary" !in "${answered("\"canary\"")}")
    }
}

/** The content of all files of a folder, or of those of these parts. One that is replaced between the list and the read is read by its new name. */
fun kept(folder: Path, parts: List<String> = listOf("names", "drafts", "spent")): List<String> =
    try {
        // Not the locks: whoever opens and closes them takes them away from this process.
        parts.map(folder::resolve).filter(Files::exists).flatMap { part -> Files.walk(part).use { all -> all.filter(Files::isRegularFile).map { Files.readString(it) }.toList() } }
    } catch (_: java.nio.file.NoSuchFileException) {
        kept(folder, parts)
    } catch (_: java.io.UncheckedIOException) {
        kept(folder, parts)
    }
