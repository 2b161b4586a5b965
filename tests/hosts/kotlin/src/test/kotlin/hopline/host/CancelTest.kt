package hopline.host

import hopline.AgentClient
import hopline.FolderStore
import hopline.RecordKind
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.OpenSession
import hopline.Options
import hopline.Phase
import hopline.Request
import hopline.Response
import hopline.Secret
import hopline.SessionType
import hopline.Store
import hopline.Transport
import java.nio.file.Path
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource

/** Where a purchase is when its coroutine is cancelled. */
enum class At { BEFORE_THE_SAVE, WHILE_SAVING, BEFORE_THE_EFFECT, AFTER_THE_EFFECT, POLLING, READING_CREDENTIALS }

private suspend fun AgentClient.buy(): OpenSession =
    openSession(SessionType.Dynamic, "dynamic-world", intent = "job-17", credentials = true)

class CancelTest {
    @ParameterizedTest
    @EnumSource
    fun `a purchase that was cancelled is finished by the next client, for one charge`(at: At, @TempDir folder: Path): Unit = runBlocking {
        val slow = if (at == At.POLLING) "2000" else "0"
        Sandbox("--seed", "31", "--provisioning-ms", slow).use { sandbox ->
            val reached = CompletableDeferred<Unit>()
            val letGo = CountDownLatch(1)
            sandbox.client(Holding(at, reached), Blocking(FolderStore(folder), at, reached, letGo)).use { agent ->
                val buying = async(Dispatchers.Default) { agent.buy() }
                if (at != At.BEFORE_THE_SAVE) withTimeout(20.seconds) { reached.await() }
                buying.cancel()
                letGo.countDown()
                assertThrows(CancellationException::class.java) { runBlocking { buying.await() } }
            }
            sandbox.client(OkHttpTransport(), FolderStore(folder)).use { agent ->
                val open = withTimeout(30.seconds) { agent.buy() }
                assertEquals(Phase.READY, open.phase)
                assertTrue(open.proxy.password != null)
                assertEquals(1 to 1, sandbox.counts())
            }
        }
    }

    @Test
    fun `the same client goes on with what was cancelled`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "32", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(store = FolderStore(folder)).use { agent ->
                sandbox.fault("create_session", """{"kind":"delay","ms":60000}""")
                val buying = async(Dispatchers.Default) { agent.buy() }
                withTimeout(20.seconds) { while (sandbox.counts().second == 0) delay(20) }
                buying.cancelAndJoin()
                assertEquals(listOf(RecordKind.IN_DOUBT), agent.saved().map { it.holds })
                assertEquals(Phase.READY, agent.buy().phase)
                assertEquals(1 to 1, sandbox.counts())
            }
        }
    }

    @Test
    fun `a scope that fails cancels what it started and says why`(): Unit = runBlocking {
        Sandbox("--seed", "33", "--provisioning-ms", "60000").use { sandbox ->
            sandbox.client().use { agent ->
                val failure = assertThrows(IllegalStateException::class.java) {
                    runBlocking {
                        coroutineScope {
                            repeat(5) { launch { agent.openSession(SessionType.Dynamic, "dynamic-world", intent = "job-$it") } }
                            withTimeout(20.seconds) { while (agent.saved().mapNotNull { it.sessionId }.toSet().size < 5) delay(20) }
                            error("the job is off")
                        }
                    }
                }
                assertEquals("the job is off", failure.message)
                assertEquals(5, agent.saved().count { it.sessionId != null })
            }
        }
    }

    @Test
    fun `what was cancelled before it began sends nothing`(): Unit = runBlocking {
        val service = Scripted { answered("{}") }
        AgentClient(null, "https://api.example/v1", service).use { agent ->
            val job = launch(start = CoroutineStart.LAZY) { agent.getBalance() }
            job.cancelAndJoin()
            assertTrue(service.sent.isEmpty())
        }
    }

    @Test
    fun `a transport that can't be stopped holds up nobody`(): Unit = runBlocking {
        val stuck = Transport { Thread.sleep(600_000).let { answered("{}") } }
        AgentClient(null, "https://api.example/v1", stuck, options = Options(attempts = 1)).use { agent ->
            val begin = System.nanoTime()
            assertNull(withTimeoutOrNull(200.milliseconds) { agent.getBalance() })
            val failure = runCatching { agent.getBalance(timeout = 200.milliseconds) }.exceptionOrNull()
            assertTrue(failure is hopline.HoplineException, "$failure")
            assertTrue(System.nanoTime() - begin < 300_000_000_000)
        }
    }

    @Test
    fun `an answer that is there before its sender goes on is heard, and nothing of it is left`(): Unit = runBlocking {
        var times = 0
        val service = Transport { if (times++ == 0) Response(503, listOf("Retry-After" to "1"), ByteArray(0)) else answered("""{"balance":1}""") }
        val agent = AgentClient(Secret("key"), "https://api.example/v1", service, dispatcher = Quick)
        assertEquals("""{"balance":1}""", withTimeout(30.seconds) { agent.getBalance() }.raw.text)
        val began = System.nanoTime()
        agent.shutdown(300.seconds)
        assertTrue(System.nanoTime() - began < 150_000_000_000, "it waited for an answer that had come")
    }

    @Test
    fun `a client that is closed ends what is under way, and keeps it`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "34", "--provisioning-ms", "2000").use { sandbox ->
            val agent = sandbox.client(JavaHttpTransport(), FolderStore(folder))
            val buying: Deferred<Result<OpenSession>> = async(Dispatchers.Default) { runCatching { agent.buy() } }
            withTimeout(10.seconds) { while (sandbox.counts().first == 0) delay(20) }
            agent.close()
            val failure = buying.await().exceptionOrNull()
            assertTrue(failure is hopline.HoplineException, "$failure")
            sandbox.client(store = FolderStore(folder)).use { assertEquals(Phase.READY, it.buy().phase) }
            assertEquals(1 to 1, sandbox.counts())
        }
    }
}

/** A caller that has something sent goes on only after it was. */
private object Quick : CoroutineDispatcher() {
    override fun dispatch(context: CoroutineContext, block: Runnable) = Dispatchers.Default.dispatch(context, block)

    override fun limitedParallelism(parallelism: Int, name: String?): CoroutineDispatcher =
        if (name != "hopline-http") Dispatchers.Default.limitedParallelism(parallelism, name)
        else object : CoroutineDispatcher() {
            override fun dispatch(context: CoroutineContext, block: Runnable) = thread { block.run() }.join()
        }
}

/** Holds a request up at one point of a purchase. */
private class Holding(private val at: At, private val reached: CompletableDeferred<Unit>) : Transport {
    private val http = OkHttpTransport()

    override suspend fun send(request: Request): Response {
        val wanted =
            when (at) {
                At.BEFORE_THE_EFFECT, At.AFTER_THE_EFFECT -> request.method == "POST"
                At.READING_CREDENTIALS -> "include_credentials=true" in request.url
                else -> false
            }
        if (wanted && at == At.BEFORE_THE_EFFECT) hold()
        val response = http.send(request)
        if (at == At.POLLING && request.method == "GET") reached.complete(Unit)
        if (wanted) hold()
        return response
    }

    private suspend fun hold(): Nothing {
        reached.complete(Unit)
        awaitCancellation()
    }
}

/** Holds the first save up. */
private class Blocking(private val store: Store, private val at: At, private val reached: CompletableDeferred<Unit>, private val letGo: CountDownLatch) : Store by store {
    override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
        if (at == At.WHILE_SAVING && reached.complete(Unit)) letGo.await(20, TimeUnit.SECONDS)
        return store.put(name, data, new, keepFor, release)
    }
}
