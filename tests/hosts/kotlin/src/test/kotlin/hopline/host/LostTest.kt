package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.OpenSession
import hopline.Seen
import hopline.SessionType
import hopline.Secret
import hopline.Store
import hopline.Whose
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** Stores whose claims can end while their owner lives, as in a database. */
class LostTest {
    private val active = """{"session_id":"s-1","status":"active"}"""
    private val service = Scripted { answered(active, if (it.method == "POST") 202 else 200) }

    private fun client(store: Store, headers: (suspend () -> Map<String, String>)? = null) =
        AgentClient(Secret("key"), "https://api.example/v1", service, store, headers = headers)

    private suspend fun AgentClient.open() = openSession(SessionType.Dynamic, "p", intent = "job-17")

    private suspend fun until(what: String, holds: suspend () -> Boolean) {
        runCatching { withTimeout(30.seconds) { while (!holds()) delay(5) } }.onFailure { throw AssertionError("never: $what", it) }
    }

    @Test
    fun `a session whose claim has ended is taken back`(): Unit = runBlocking {
        val shared = SharedStore()
        val store = Leased(shared)
        client(store).use { agent ->
            agent.open()
            val owned = shared.owned
            assertEquals(1, owned.size)
            for (lost in listOf(null, owned.toList())) {
                store.release(null)
                store.tell(lost)
                until("it is taken back") { shared.owned == owned }
                // The client has heard of it: who starts the intent waits for that.
                assertEquals("s-1", agent.open().sessionId)
            }
            assertEquals(Whose.MINE, agent.saved().single().whose)
            assertNotNull(agent.observe("s-1", Seen.Status(200)))
        }
    }

    @Test
    fun `a session that another client has taken meanwhile is given up`(): Unit = runBlocking {
        val shared = SharedStore()
        val store = Leased(shared)
        client(store).use { agent ->
            agent.open()
            client(shared.client()).use { other ->
                store.release(null)
                assertEquals("s-1", (other.resumeIntent("job-17") as OpenSession).sessionId)
                store.tell(null)
                until("it is followed no more") { agent.observe("s-1", Seen.Status(200)) == null }
                assertEquals(Whose.OTHER, agent.saved().single().whose)
            }
        }
    }

    @Test
    fun `a purchase whose claim ends before it is sent is not sent`(): Unit = runBlocking {
        val (shared, asked, given) = Triple(SharedStore(), CompletableDeferred<Unit>(), CompletableDeferred<Unit>())
        val store = Leased(shared)
        val headers = suspend {
            asked.complete(Unit)
            given.await()
            emptyMap<String, String>()
        }
        client(store, headers).use { agent ->
            val buying = async { runCatching { agent.open() } }
            asked.await()
            store.release(null)
            store.tell(null)
            given.complete(Unit)
            val busy = withTimeout(30.seconds) { buying.await() }.exceptionOrNull() as HoplineException.Busy
            assertEquals(Effect.NONE, busy.effect)
            assertTrue(service.sent.isEmpty())
        }
    }

    @Test
    fun `nothing is sent before the store vouches for its claims, and the record is stored again first`(): Unit = runBlocking {
        val store = Leased(SharedStore(), vouches = listOf(false, true))
        client(store).use { agent ->
            agent.createSession(SessionType.Dynamic, "p", intent = "job-17")
            assertEquals(listOf("put", "vouches", "put", "vouches"), store.calls.take(4))
            assertEquals(1, service.sent.size)
        }
    }

    @Test
    fun `a store that does not vouch for its claims is told of, and nothing is sent`(): Unit = runBlocking {
        for ((vouches, note) in listOf(false to "the store did not vouch for its claims", null to "`vouches` threw IllegalStateException")) {
            client(Leased(SharedStore(), vouches = listOf(vouches))).use { agent ->
                val failure = assertThrows(HoplineException::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }
                assertEquals(Effect.NONE, failure.effect)
                assertTrue(note in failure.notes.single(), "$failure")
                assertTrue(service.sent.isEmpty() && agent.saved().isEmpty())
            }
        }
    }

    @Test
    fun `the end of a session is sent whatever the store says of its claims`(): Unit = runBlocking {
        for (vouches in listOf(false, null)) {
            val before = service.sent.size
            client(Leased(SharedStore(), vouches = listOf(vouches))).use { it.terminateSession("s-1") }
            assertEquals(before + 1, service.sent.size)
        }
    }
    @Test
    fun `a call waits for its store for half a minute, and no other call of the store comes before the one that is late`(): Unit = runBlocking {
        for (recovers in listOf(true, false)) launch {
            val shared = SharedStore()
            val gate = CompletableDeferred<Unit>()
            val calls = CopyOnWriteArrayList<String>()
            val own = shared.client()
            val store =
                object : Store by own {
                    override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
                        gate.await()
                        calls += "put"
                        return own.put(name, data, new, keepFor, release)
                    }

                    override suspend fun delete(name: String): Boolean = own.delete(name).also { calls += "delete" }
                }
            val agent = AgentClient(Secret("key"), "https://api.example/v1", Scripted { error("it was sent") }, store)
            val buying = async { runCatching { agent.createSession(SessionType.Dynamic, "p") }.exceptionOrNull() }
            if (recovers) {
                delay(35.seconds)
                assertTrue(calls.isEmpty(), "the deletion waits for what it deletes")
                gate.complete(Unit)
            }
            val failed = withTimeout(120.seconds) { buying.await() } as HoplineException.Store
            gate.complete(Unit)
            if (recovers) assertEquals(Effect.NONE to listOf("put", "delete"), failed.effect to calls.toList()) else assertEquals(Effect.UNKNOWN, failed.effect)
            until("the late record is there") { runCatching { agent.saved().size }.getOrNull() == if (recovers) 0 else 1 }
            agent.shutdown()
        }
    }
}

/** A store whose claims end when a test says so. The store vouches for them as it is told, the last time for good; null throws. */
private class Leased(shared: SharedStore, private val vouches: List<Boolean?> = listOf(true), private val own: Store = shared.client()) : Store by own {
    private val asked = AtomicInteger()
    val calls: MutableList<String> = CopyOnWriteArrayList()
    lateinit var tell: (List<String>?) -> Unit

    override fun onLost(lost: (names: List<String>?) -> Unit) {
        tell = lost
    }

    override suspend fun vouches(): Boolean {
        calls += "vouches"
        return checkNotNull(vouches[asked.getAndIncrement().coerceAtMost(vouches.lastIndex)])
    }

    override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
        calls += "put"
        return own.put(name, data, new, keepFor, release)
    }
}
