package hopline.host

import hopline.FolderStore
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Phase
import hopline.RecordKind
import hopline.SessionType
import hopline.Transport
import java.nio.file.Path
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.parallel.Isolated
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

@Isolated("it counts the threads of the process")
class ManyTest {
    @ParameterizedTest
    @MethodSource("transports")
    fun `one client holds two hundred sessions at once`(transport: Transport, @TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "51", "--provisioning-ms", "100-900", "--balance", "100000", "--session-limit", "1000", "--rate-limit", "1000000").use { sandbox ->
            sandbox.client(transport, FolderStore(folder)).use { agent ->
                val before = Thread.activeCount()
                var most = 0
                val opened = coroutineScope {
                    val watch = launch {
                        while (true) {
                            most = maxOf(most, Thread.activeCount())
                            delay(10)
                        }
                    }
                    val all = List(200) { async { agent.openSession(SessionType.Dynamic, "dynamic-world", intent = "job-$it") } }.awaitAll()
                    watch.cancel()
                    all
                }
                assertTrue(opened.all { it.phase == Phase.READY })
                assertEquals(200, opened.map { it.sessionId }.toSet().size)
                assertEquals(200 to 200, sandbox.counts())
                assertTrue(most - before < 350, "${most - before} threads more")
                coroutineScope { opened.forEach { launch { it.terminate() } } }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a thousand purchases at once are a thousand sessions, and none is in doubt`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "53", "--provisioning-ms", "0", "--balance", "1000000", "--session-limit", "2000", "--rate-limit", "1000000").use { sandbox ->
            sandbox.client(transport, options = Options(timeout = 240.seconds, window = 300.seconds)).use { agent ->
                val bought = withContext(Dispatchers.Default) { List(1000) { async { agent.createSession(SessionType.Dynamic, "dynamic-world", intent = "job-$it") } }.awaitAll() }
                assertEquals(1000, bought.map { it.sessionId }.toSet().size)
                assertEquals(setOf(RecordKind.ACCEPTED), agent.saved().map { it.holds }.toSet())
            }
            assertEquals(1000 to 1000, sandbox.counts())
        }
    }

    @Test
    fun `callers that start the same intent at once get one session`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "52", "--provisioning-ms", "100").use { sandbox ->
            sandbox.client(store = FolderStore(folder)).use { agent ->
                val all = withContext(Dispatchers.Default) {
                    List(50) { async { agent.openSession(SessionType.Dynamic, "dynamic-world", intent = "job-17") } }.awaitAll()
                }
                assertEquals(1, all.map { it.sessionId }.toSet().size)
                assertEquals(1 to 1, sandbox.counts())
            }
        }
    }

    @Test
    fun `a thousand reads of one client take no thread each`(): Unit = runBlocking {
        val service = Scripted {
            delay(50)
            answered("""{"balance":5}""")
        }
        hopline.AgentClient(null, "https://api.example/v1", service).use { agent ->
            val before = Thread.activeCount()
            var most = 0
            coroutineScope { repeat(1000) { launch { agent.getBalance().also { most = maxOf(most, Thread.activeCount()) } } } }
            assertEquals(1000, service.sent.size)
            assertTrue(most - before < 100, "${most - before} threads more")
        }
    }

    companion object {
        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}
