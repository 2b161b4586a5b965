package hopline.host

import hopline.AgentClient
import hopline.Event
import hopline.FolderStore
import hopline.HoplineException
import hopline.OkHttpTransport
import hopline.Options
import hopline.Protocol
import hopline.Secret
import hopline.SessionType
import java.io.PrintWriter
import java.io.StringWriter
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
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
                        .map { it.toString() } + Files.list(folder).use { all -> all.map { Files.readString(it) }.toList() }
                assertTrue(events.any { it.event == "repeating" } && shown.size > 12, "$events")
                for (text in shown) secrets.forEach { assertTrue(it !in text, "a secret shows in: $text") }
            }
        }
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
