package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.Options
import hopline.Request
import hopline.SessionType
import java.io.IOException
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** An app's own backend stands before the service: the client has no key, and headers of the app's own. */
class HeadersTest {
    private val quick = Options(account = "user-17", attempts = 2, backoff = 1.milliseconds, timeout = 300.milliseconds)

    private fun client(service: Scripted, headers: suspend () -> Map<String, String>) =
        AgentClient(null, "https://backend.example/v1", service, options = quick, headers = headers)

    private fun Request.header(name: String): String? = headers.firstOrNull { it.first.equals(name, ignoreCase = true) }?.second

    private fun fails(client: AgentClient, work: suspend (AgentClient) -> Unit): HoplineException =
        assertThrows(HoplineException::class.java) { runBlocking { work(client) } }

    @Test
    fun `each send asks for the headers anew, and a repeat has the same idempotency key`(): Unit = runBlocking {
        var number = 0
        lateinit var service: Scripted
        service = Scripted { if (service.sent.size == 1) throw IOException("gone") else answered("""{"session_id":"s-1","status":"creating"}""", 202) }
        client(service) { mapOf("Authorization" to "Bearer token-${++number}") }.use { agent ->
            agent.createSession(SessionType.Dynamic, "p")
            assertEquals(listOf("Bearer token-1", "Bearer token-2"), service.sent.map { it.header("authorization") })
            assertEquals(1, service.sent.map { it.header("idempotency-key")!! }.toSet().size)
            assertTrue(service.sent.none { it.header("x-api-key") != null })
        }
    }

    @Test
    fun `without the headers nothing is sent, and that is known`() {
        val nobody = Scripted { error("nothing was to be sent") }
        client(nobody) { error("canary") }.use { agent ->
            val failure = fails(agent) { it.createSession(SessionType.Dynamic, "p") }
            assertEquals(Effect.NONE, failure.effect, "$failure")
            assertTrue("`headers`" in failure.message.orEmpty() && "nothing was charged" in failure.message.orEmpty(), "$failure")
            assertTrue( "IllegalStateException" in "$failure" && "canary" !in "$failure", "$failure")
        }
        client(nobody) { awaitCancellation() }.use { agent ->
            assertEquals(Effect.NONE, fails(agent) { it.createSession(SessionType.Dynamic, "p") }.effect)
        }
        assertTrue(nobody.sent.isEmpty())
    }

    @Test
    fun `they take the place of no header of Hopline's own`() {
        val nobody = Scripted { error("nothing was to be sent") }
        for (name in listOf("Idempotency-Key", "X-API-Key", "Content-Type", "Content-Length", "accept")) {
            client(nobody) { mapOf(name to "x") }.use { agent ->
                val failure = fails(agent) { it.createSession(SessionType.Dynamic, "p") }
                assertEquals(Effect.NONE, failure.effect)
                assertTrue(failure is HoplineException.Invalid && failure.field == "headers" && failure.attempts == 0, "$failure")
                assertTrue("`${name.lowercase()}`" in failure.message.orEmpty(), "$failure")
            }
        }
        assertTrue(nobody.sent.isEmpty())
    }

    @Test
    fun `what can't be a header is refused at once, without its value`() {
        val nobody = Scripted { error("nothing was to be sent") }
        for ((headers, said) in listOf(mapOf("x y" to "canary") to "names made of", mapOf("x-user" to "canary\n") to "`x-user`", mapOf("x-user" to "canäry") to "`x-user`")) {
            var asked = 0
            client(nobody) { headers.also { asked += 1 } }.use { agent ->
                val failure = fails(agent) { it.createSession(SessionType.Dynamic, "p") }
                assertTrue(failure is HoplineException.Invalid && failure.field == "headers" && said in failure.message.orEmpty(), "$failure")
                assertTrue(asked == 1 && "can" !in failure.message.orEmpty().substringAfter("headers"), "$failure")
            }
        }
        assertTrue(nobody.sent.isEmpty())
    }
}
