package hopline.host

import hopline.AgentClient
import hopline.Clock
import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.Lease
import hopline.LeaseAdvice
import hopline.Options
import hopline.Pool
import hopline.PoolOptions
import hopline.Secret
import hopline.SessionType
import hopline.Store
import hopline.Transport
import java.lang.ref.WeakReference
import java.math.BigDecimal
import java.nio.file.Path
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicLong
import java.util.logging.Handler
import java.util.logging.LogRecord
import java.util.logging.Logger
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.seconds
import kotlin.time.measureTime
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.UnconfinedTestDispatcher
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

private val SHOP = PoolOptions(2, SessionType.Dynamic, "dynamic-world", dailyCapUsd = BigDecimal(10_000), keepReady = 2)

/** The behaviour of a client once it is closed, or once no reference to it is left, and the threads that it waits for. */
@OptIn(ExperimentalCoroutinesApi::class)
class ClosingTest {
    private suspend fun until(what: String, holds: suspend () -> Boolean) {
        runCatching { withTimeout(60.seconds) { while (!holds()) delay(20) } }.onFailure { throw AssertionError("not so: $what", it) }
    }

    /** A clock that the test sets ahead. */
    private class Ahead : Clock {
        val by = AtomicLong()

        override fun unix(): Long = System.currentTimeMillis() + by.get()

        override fun monotonic(): Long = System.nanoTime() / 1_000_000 + by.get()
    }

    /** Makes a client with a pool that is to have two sessions, and forgets both. */
    private suspend fun leave(sandbox: Sandbox, clock: Clock): WeakReference<AgentClient> {
        val agent = AgentClient(Secret(sandbox.apiKey), sandbox.agentUrl, clock = clock)
        val pool = agent.openPool("shop", SHOP)
        until("it is held, since there is no money") { pool.status().hold != null }
        return WeakReference(agent)
    }

    @Test
    fun `a client that nobody holds buys nothing more, though a pool of it is to have sessions`(): Unit = runBlocking {
        val warnings = CopyOnWriteArrayList<String>()
        val logger = Logger.getLogger("hopline")
        val handler = object : Handler() {
            override fun publish(record: LogRecord) {
                warnings += record.message
            }

            override fun flush() = Unit

            override fun close() = Unit
        }
        logger.addHandler(handler)
        Sandbox("--seed", "141", "--balance", "0", "--provisioning-ms", "0").use { sandbox ->
            val clock = Ahead()
            val forgotten = leave(sandbox, clock)
            until("it is collected, and said so") {
                System.gc()
                forgotten.get() == null && warnings.any { "ClosingTest.kt:" in it && "was not closed" in it }
            }
            sandbox.control("balance", """{"amount":"1000"}""")
            val before = sandbox.requests().size
            clock.by.set(3_600_000)
            delay(12_000)
            assertEquals(0 to before, sandbox.counts().second to sandbox.requests().size)
        }
        logger.removeHandler(handler)
    }

    @Test
    fun `a client that only a lease, or a call that is under way, holds goes on`(): Unit = runBlocking {
        val answer = CompletableDeferred<Unit>()
        val service = Transport { answer.await().let { answered("""{"balance":1}""") } }
        val asking = async(Dispatchers.Default) { AgentClient(Secret("key"), "https://api.example/v1", service).getBalance().raw.text }
        Sandbox("--seed", "142", "--provisioning-ms", "0").use { sandbox ->
            val lent = CompletableDeferred<Lease>()
            val lending = launch(Dispatchers.Default) { lend(sandbox.client(), lent) }
            val lease = lent.await()
            repeat(20) {
                System.gc()
                delay(50)
            }
            assertTrue(lease.valid)
            lending.cancel()
        }
        answer.complete(Unit)
        assertEquals("""{"balance":1}""", asking.await())
    }

    private suspend fun lend(agent: AgentClient, lent: CompletableDeferred<Lease>): Unit =
        agent.openPool("shop", SHOP).withLease {
            lent.complete(it)
            awaitCancellation()
        }

    @Test
    @Timeout(60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a client of a test's dispatcher is closed in the test's thread`(): Unit = runTest {
        val service = Transport { answered("""{"balance":1}""") }
        val own = StandardTestDispatcher(testScheduler)
        AgentClient(Secret("key"), "https://api.example/v1", service, dispatcher = own).use { agent ->
            assertEquals("""{"balance":1}""", agent.getBalance().raw.text)
            agent.openPool("shop", SHOP.copy(keepReady = 0))
        }
    }

    @Test
    @Timeout(120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a client is closed in the only thread of its dispatcher, while calls are under way`() {
        val only = Executors.newSingleThreadExecutor()
        fun close(): Long {
            val called = CompletableDeferred<Unit>()
            val service = Transport { called.complete(Unit).let { awaitCancellation() } }
            val agent = AgentClient(Secret("key"), "https://api.example/v1", service, dispatcher = only.asCoroutineDispatcher())
            val asking = CoroutineScope(Dispatchers.Default).async { runCatching { agent.getBalance() } }
            runBlocking { called.await() }
            val began = System.nanoTime()
            only.submit { agent.close() }.get()
            assertEquals(Effect.NONE, (runBlocking { asking.await() }.exceptionOrNull() as HoplineException).effect)
            return System.nanoTime() - began
        }
        // Where it waits for its own thread, it does so for ten seconds each time; a busy machine is slow now and then.
        assertTrue(List(3) { close() }.min() < 10_000_000_000, "it waited for its own thread")
        only.shutdown()
    }

    /** Runs what has no dispatcher, as the body of a `suspend fun main` has none. */
    private fun undispatched(work: suspend () -> Unit) {
        val ended = CompletableFuture<Unit>()
        work.startCoroutine(Continuation(EmptyCoroutineContext) { it.fold(ended::complete, ended::completeExceptionally) })
        ended.get()
    }

    @Test
    @Timeout(120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a client is closed by a caller without a dispatcher, who goes on in a thread of the client's`(@TempDir folder: Path) {
        val service = Transport { answered("""{"session_id":"s-1","status":"creating"}""") }
        var number = 0
        suspend fun buy(dispatcher: CoroutineDispatcher) {
            val agent = AgentClient(Secret("key"), "https://api.example/v1", service, FolderStore(folder.resolve("${number++}")), dispatcher = dispatcher)
            agent.use { it.createSession(SessionType.Dynamic, "dynamic-world", intent = "job-17") }
        }
        val callers = listOf<() -> Unit>(
            { undispatched { buy(Dispatchers.IO) } },
            { runBlocking(Dispatchers.Unconfined) { buy(Dispatchers.IO) } },
            { runBlocking(Dispatchers.Unconfined) { buy(Dispatchers.Unconfined) } },
            { runTest(UnconfinedTestDispatcher()) { buy(UnconfinedTestDispatcher(testScheduler)) } },
        )
        for ((place, caller) in callers.withIndex()) {
            // Where it waits for its own thread, it does so for ten seconds each time; a busy machine is slow now and then.
            assertTrue(List(2) { measureTime(caller) }.min() < 10.seconds, "caller $place waited for the thread that it was in")
        }
    }

    @Test
    @Timeout(60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a client is closed by who hears its events, and whoever else hears them hears their end`(): Unit = runBlocking {
        val agent = AgentClient(Secret("key"), "https://api.example/v1", Transport { answered("""{"balance":1}""") })
        val hearing = List(2) { place -> CoroutineScope(Dispatchers.Unconfined).launch { agent.events.collect { if (place == 0) agent.close() } } }
        runCatching { agent.getBalance() }
        hearing.joinAll()
    }

    /** A store whose puts wait for a test. */
    private class Slow(private val store: Store, private val waits: (suspend (data: String) -> Unit)) : Store by store {
        override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean =
            waits(String(data)).let { store.put(name, data, new, keepFor, release) }
    }

    @Test
    fun `nothing is sent once closing has begun, but the end of a session that was asked for before`(): Unit = runBlocking {
        for (ends in listOf(false, true)) {
            val (putting, go) = CompletableDeferred<Unit>() to CompletableDeferred<Unit>()
            var isSlow = false
            val store = Slow(SharedStore().client()) {
                if (isSlow) {
                    putting.complete(Unit)
                    go.await()
                }
            }
            val sent = CopyOnWriteArrayList<String>()
            val service = Scripted { request -> answered("{}").also { sent += "${request.method} ${request.url}" } }
            val agent = AgentClient(Secret("key"), "https://api.example/v1", service, store)
            isSlow = true
            val asking = async(Dispatchers.Default) { runCatching { if (ends) agent.terminateSession("s-1") else agent.openPool("shop", SHOP) } }
            putting.await()
            val closing = async(Dispatchers.Default) { agent.shutdown(30.seconds) }
            until("it closes") { runCatching { agent.saved() }.exceptionOrNull() is HoplineException.Misuse }
            go.complete(Unit)
            closing.await()
            assertEquals(if (ends) listOf("DELETE https://api.example/v1/sessions/s-1") else emptyList(), sent.toList())
            assertEquals(ends, asking.await().isSuccess)
        }
    }

    @Test
    fun `a pool's purchase whose record is being stored when closing begins is not sent`(): Unit = runBlocking {
        Sandbox("--seed", "145", "--provisioning-ms", "0").use { sandbox ->
            val (putting, go) = CompletableDeferred<Unit>() to CompletableDeferred<Unit>()
            val store = Slow(SharedStore().client()) { data ->
                if ("create_session" in data) {
                    putting.complete(Unit)
                    go.await()
                }
            }
            val agent = sandbox.client(store = store)
            agent.openPool("shop", SHOP)
            withTimeout(60.seconds) { putting.await() }
            val closing = async(Dispatchers.Default) { agent.shutdown(30.seconds) }
            until("it closes") { runCatching { agent.saved() }.exceptionOrNull() is HoplineException.Misuse }
            go.complete(Unit)
            closing.await()
            assertEquals(0, sandbox.requests().count { it.word("method") == "POST" })
        }
    }

    @Test
    fun `a lease is not valid once its client is closed, and its pool may be closed after it`(): Unit = runBlocking {
        Sandbox("--seed", "143", "--provisioning-ms", "0").use { sandbox ->
            val agent = sandbox.client()
            val pool: Pool = agent.openPool("shop", SHOP)
            pool.withLease { lease ->
                assertTrue(lease.valid)
                agent.shutdown()
                assertFalse(lease.valid)
                assertEquals(listOf(LeaseAdvice.GIVE_BACK, LeaseAdvice.GIVE_BACK), listOf(lease.observe(403), lease.observe(200)))
            }
            pool.close()
            assertThrows(HoplineException.Misuse::class.java) { runBlocking { pool.status() } }
        }
    }

    @Test
    fun `a drain that waits for a lease ends with its client, and nothing is sent for it afterwards`(): Unit = runBlocking {
        Sandbox("--seed", "146", "--provisioning-ms", "0").use { sandbox ->
            val (sent, wire) = CopyOnWriteArrayList<String>() to JavaHttpTransport()
            val agent = sandbox.client(Transport { request -> wire.send(request.also { sent += it.method }) })
            val pool = agent.openPool("shop", SHOP)
            pool.waitReady(2)
            pool.withLease {
                val draining = async(Dispatchers.Default) { runCatching { pool.drain(600.seconds) } }
                until("it ends what is not lent") { "DELETE" in sent }
                agent.shutdown(1.seconds)
                val failure = withTimeout(60.seconds) { draining.await() }.exceptionOrNull()
                assertTrue(failure is HoplineException.Cancelled, "$failure")
            }
            // The lease has ended, by which a drain would go on.
            delay(1.seconds)
            assertEquals(1, sent.count { it == "DELETE" })
        }
    }

    @Test
    fun `of a termination that has no answer when closing's time is up nobody knows, and core says so`(): Unit = runBlocking {
        val out = CompletableDeferred<Unit>()
        val agent = AgentClient(Secret("key"), "https://api.example/v1", Transport { out.complete(Unit).let { awaitCancellation() } })
        val asking = async(Dispatchers.Default) { runCatching { agent.terminateSession("s-1") } }
        out.await()
        agent.shutdown(1.seconds)
        val failure = withTimeout(60.seconds) { asking.await() }.exceptionOrNull() as HoplineException
        assertEquals(Effect.UNKNOWN to "s-1", failure.effect to failure.sessionId, "$failure")
        assertTrue(failure is HoplineException.Cancelled || failure is HoplineException.InDoubt, "$failure")
    }

    @Test
    fun `a termination finds a thread, though each of the requests that may be out holds one`(): Unit = runBlocking {
        val (begun, free) = AtomicLong() to CountDownLatch(1)
        val service = Transport { request ->
            if (request.method == "GET") begun.incrementAndGet().let { free.await() }
            answered("{}")
        }
        AgentClient(Secret("key"), "https://api.example/v1", service, options = Options(timeout = 120.seconds, maxInFlight = 200)).use { agent ->
            val reads = List(200) { async(Dispatchers.Default) { agent.getBalance(timeout = 120.seconds) } }
            until("all are out") { begun.get() == 200L }
            withTimeout(60.seconds) { agent.terminateSession("s-1") }
            free.countDown()
            reads.awaitAll()
        }
    }

    @Test
    fun `a target's Retry-After is read as the service's is`(): Unit = runBlocking {
        Sandbox("--seed", "144", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                agent.openPool("shop", SHOP).withLease(target = "shop.example") { lease ->
                    assertEquals(LeaseAdvice.KEEP, lease.observe(200, null))
                    assertThrows(HoplineException.Invalid::class.java) { lease.observe(99_999, "1") }
                    assertTrue(lease.observe(429, "Fri, 31 Dec 2999 23:59:59 GMT") != LeaseAdvice.KEEP)
                }
            }
        }
    }

    private fun TestScope.agent(service: Transport): AgentClient {
        val clock = object : Clock {
            override fun unix(): Long = 1_750_000_000_000 + testScheduler.currentTime

            override fun monotonic(): Long = testScheduler.currentTime
        }
        val dispatcher = StandardTestDispatcher(testScheduler)
        return AgentClient(Secret("key"), "https://api.example/v1", service, options = Options(attempts = 1, timeout = 300.seconds), clock = clock, dispatcher = dispatcher)
    }

    @Test
    @Timeout(150, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a request takes no longer than its timeout by a test's own time`(): Unit = runTest(timeout = 140.seconds) {
        for (service in listOf(Transport { delay(1.hours).let { answered("""{"balance":1}""") } }, Transport { awaitCancellation() })) {
            agent(service).use { agent ->
                val start = testScheduler.currentTime
                val failure = runCatching { agent.getBalance() }.exceptionOrNull()
                assertTrue(failure is HoplineException.Unavailable, "$failure")
                assertTrue(testScheduler.currentTime - start in 300_000..305_000, "it took ${testScheduler.currentTime - start} ms")
            }
        }
    }
}
