package hopline.host

import hopline.AgentClient
import hopline.Holds
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Secret
import hopline.SessionType
import hopline.Transport
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse.BodyHandlers
import java.util.UUID
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.sync.Semaphore
import kotlinx.coroutines.sync.withPermit
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** The odd server before a sandbox, for one test. */
private class Peers(sandbox: Sandbox) : AutoCloseable {
    private val program = System.getenv("HOPLINE_PEERS") ?: error("HOPLINE_PEERS must name the odd server; `cargo xtask test kotlin` does")
    private val process =
        ProcessBuilder(program, "--service", sandbox.agentUrl.removeSuffix("/v1")).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val ready: JsonObject = Json.parseToJsonElement(process.inputReader().readLine()).members()

    /** Each of its behaviours, and whether every client is to read the answer. */
    val behaviours: List<Pair<String, Boolean>> =
        (ready.getValue("behaviours") as JsonArray).map { it.members() }.map { it.word("name") to (it.word("answer") == "given") }

    fun url(folder: String): String = "${ready.word("odd_url")}/$folder/v1"

    /** The connections that requests of this method have come over, one for each. */
    fun connections(method: String): List<String> {
        val asked = HttpRequest.newBuilder(URI.create(ready.word("control_url"))).build()
        val recorded = Json.parseToJsonElement(HttpClient.newHttpClient().send(asked, BodyHandlers.ofString()).body()).members()
        return (recorded.getValue("relayed") as JsonArray).map { it.members() }.filter { it.word("method") == method }.map { it.getValue("connection").toString() }
    }

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

    @Test
    fun `OkHttp sends every write over a connection that no request has used, and keeps it for none`(): Unit = runBlocking {
        Sandbox("--seed", "152", "--provisioning-ms", "0", "--balance", "100000").use { sandbox ->
            Peers(sandbox).use { peers ->
                AgentClient(Secret(sandbox.apiKey), peers.url("plain"), OkHttpTransport()).use { agent -> repeat(3) { buy(agent) } }
                val (writes, reads) = peers.connections("POST") to peers.connections("GET")
                assertEquals(3, writes.size)
                assertEquals(writes, writes.distinct() - reads.toSet())
                assertTrue(reads.distinct().size < reads.size, "reads keep theirs: $reads")
            }
        }
    }

    private suspend fun buy(agent: AgentClient) {
        val bought = agent.createSession(SessionType.Dynamic, "dynamic-world", intent = UUID.randomUUID().toString()).sessionId
        repeat(2) { assertTrue(agent.balance().signum() > 0) }
        assertEquals(bought, agent.getSession(bought).sessionId)
        assertTrue(agent.saved().none { it.holds == Holds.IN_DOUBT || it.holds == Holds.IN_DOUBT_FOR_GOOD })
    }

    companion object {
        @JvmStatic
        fun transports(): List<Transport> = listOf(JavaHttpTransport(), OkHttpTransport())
    }
}
