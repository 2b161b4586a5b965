package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.Event
import hopline.EventName
import hopline.FolderStore
import hopline.RecordKind
import hopline.HoplineException
import hopline.OpenSession
import hopline.Options
import hopline.Response
import hopline.Secret
import hopline.SessionType
import hopline.Store
import hopline.Transport
import hopline.Whose
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.ObjectInputStream
import java.io.ObjectOutputStream
import java.nio.file.Path
import java.time.ZoneOffset.UTC
import java.time.ZonedDateTime
import java.time.format.DateTimeFormatter.RFC_1123_DATE_TIME
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The records and notices of calls: results that were not taken, notes, events, records, errors. */
class KeepingTest {
    private val bought = """{"session_id":"s-1","status":"creating"}"""

    private fun client(transport: Transport, store: Store? = null, options: Options = Options(attempts = 1)) =
        AgentClient(Secret("key"), "https://api.example/v1", transport, store, options)

    @Test
    fun `a purchase whose caller was cancelled when its answer was there is shown, and its answer is given until it is forgotten`(): Unit = runBlocking {
        val answer = CompletableDeferred<Unit>()
        val service = Scripted {
            answer.await()
            answered(bought, 202)
        }
        // The app's main thread, which is busy from before the answer comes until its caller is gone.
        val main = Turns()
        client(service).use { agent ->
            val buying = CoroutineScope(main).launch { agent.createSession(SessionType.Dynamic, "p") }
            assertTrue(main.next())
            answer.complete(Unit)
            withTimeout(30.seconds) { while (!main.isWanted) delay(1) }
            buying.cancel()
            withTimeout(30.seconds) { while (!buying.isCompleted) if (!main.next()) delay(1) }
            val shown = agent.saved().single()
            assertEquals(listOf(RecordKind.ACCEPTED, "create_session", "s-1"), listOf(shown.holds, shown.operation, shown.sessionId))
            assertEquals(bought, agent.resume(shown.record).raw.text)
            assertTrue(agent.forget(agent.saved().single().record) && agent.saved().isEmpty())
            assertEquals(1, service.sent.size)
        }
    }

    @Test
    fun `a cancelled read leaves nothing behind`(): Unit = runBlocking {
        val begun = CompletableDeferred<Unit>()
        client(Scripted { begun.complete(Unit).let { awaitCancellation() } }).use { agent ->
            val reading = launch { agent.getBalance() }
            begun.await()
            reading.cancel()
            reading.join()
            assertTrue(agent.saved().isEmpty())
        }
    }

    @Test
    fun `what the store said is told of the call that it failed, and of no other`(): Unit = runBlocking {
        var full = true
        val held = CompletableDeferred<Unit>()
        val store = keeping { if (full) throw IOException("No space left on device") }
        val service = Scripted { request ->
            if ("health" in request.url) held.await()
            throw IOException("gone")
        }
        client(service, store).use { agent ->
            val other = async { runCatching { agent.getSessionHealth("s-1") } }
            while (service.sent.isEmpty()) delay(1)
            val failed = assertThrows(HoplineException.Store::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }
            assertEquals(listOf("the store said: No space left on device (IOException)"), failed.notes)
            held.complete(Unit)
            val unrelated = other.await().exceptionOrNull() as HoplineException
            assertTrue(unrelated.notes.none { "store" in it }, "$unrelated")
            full = false
            val later = assertThrows(HoplineException.InDoubt::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }
            assertTrue(later.notes.none { "store" in it }, "$later")
        }
    }

    private fun keeping(put: () -> Unit): Store {
        val store = SharedStore().client()
        return object : Store by store {
            override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
                put()
                return store.put(name, data, new, keepFor, release)
            }
        }
    }

    @Test
    fun `a call of an intent lists nothing, whatever else the store holds`(): Unit = runBlocking {
        val lists = AtomicInteger()
        val store = SharedStore().client()
        val counted =
            object : Store by store {
                override suspend fun list(space: String, after: String?, open: Boolean) = store.list(space, after, open).also { lists.incrementAndGet() }
            }
        client(Scripted { answered(bought, 202) }, counted).use { agent ->
            repeat(5) { agent.createSession(SessionType.Dynamic, "p", intent = "job-17") }
            assertEquals(0, lists.get())
            assertTrue(agent.forget(agent.saved().single().record))
            assertEquals(1, lists.get())
        }
    }

    @Test
    fun `a store that fails while a name is claimed is asked again by the next call`(): Unit = runBlocking {
        val store = SharedStore()
        // With the service's time, without which no key is sent again after a restart.
        val date = listOf("Date" to RFC_1123_DATE_TIME.format(ZonedDateTime.now(UTC)))
        val lost = Scripted { Response(504, date, ByteArray(0)) }
        client(lost, store.client()).use { assertThrows(HoplineException.InDoubt::class.java) { runBlocking { it.buy() } } }
        var broken = true
        val own = store.client()
        val failing =
            object : Store by own {
                override suspend fun claim(names: List<String>, most: Int) = own.claim(names, most).also { if (broken) throw IOException("read error") }
            }
        val service = Scripted { answered(bought, 202).run { Response(status, headers + date, body) } }
        client(service, failing).use { agent ->
            assertThrows(HoplineException.Store::class.java) { runBlocking { agent.buy() } }
            assertTrue(service.sent.isEmpty())
            broken = false
            agent.buy()
            assertEquals(keys(lost), keys(service), "bought with another key than that of the purchase in doubt")
            assertEquals(listOf("job-17"), agent.saved().map { it.intent })
        }
    }

    @Test
    fun `an account sees only its own records of a store`(@TempDir folder: Path): Unit = runBlocking {
        val lost = Scripted { throw IOException("gone") }
        fun named(account: String) = client(lost, FolderStore(folder), Options(account = account, attempts = 1))
        named("a").use { assertThrows(HoplineException.InDoubt::class.java) { runBlocking { it.buy() } } }
        named("b").use { assertTrue(it.saved().isEmpty()) }
        named("a").use { assertEquals(1, it.saved().size) }
    }

    @Test
    fun `records of another key are used only where it is said to be the same account`(@TempDir folder: Path): Unit = runBlocking {
        val lost = Scripted { throw IOException("gone") }
        fun changed(key: String, same: Boolean) =
            AgentClient(Secret(key), "https://api.example/v1", lost, FolderStore(folder), Options(attempts = 1), sameAccount = same)
        changed("key", false).use { assertThrows(HoplineException.InDoubt::class.java) { runBlocking { it.buy() } } }
        val before = lost.sent.size
        changed("new", false).use { agent ->
            val refused = assertThrows(HoplineException.Invalid::class.java) { runBlocking { agent.buy() } }
            assertTrue("`sameAccount`" in refused.message!!, refused.message)
            assertEquals(before, lost.sent.size)
        }
        changed("new", true).use { agent ->
            assertThrows(HoplineException.InDoubt::class.java) { runBlocking { agent.buy() } }
            assertEquals(1, agent.saved().size)
        }
    }

    @Test
    fun `what another client has is shown, and is its own to settle and forget`(@TempDir folder: Path): Unit = runBlocking {
        val active = """{"session_id":"s-1","status":"active"}"""
        val owner = client(Scripted { answered(active, if (it.method == "POST") 202 else 200) }, FolderStore(folder))
        client(Scripted { answered(active) }, FolderStore(folder)).use { other ->
            owner.use {
                val open = it.openSession(SessionType.Dynamic, "p", intent = "job-17")
                val shown = other.saved().single()
                assertEquals(Triple(RecordKind.SESSION, Whose.OTHER, "s-1"), Triple(shown.holds, shown.whose, shown.sessionId))
                assertThrows(HoplineException.Busy::class.java) { runBlocking { other.forget(shown.record) } }
                val busy = assertThrows(HoplineException.Busy::class.java) { runBlocking { other.openSession(SessionType.Dynamic, "p", intent = "job-17") } }
                assertEquals("s-1", busy.sessionId)
                assertTrue(other.resumeAll().isEmpty())
                assertTrue(open.release())
                assertEquals(Whose.FREE, other.saved().single().whose)
                assertEquals("s-1", (other.resumeIntent("job-17") as OpenSession).sessionId)
            }
        }
    }

    @Test
    fun `who waits for an intent has its session once the other client lets go of it`(@TempDir folder: Path): Unit = runBlocking {
        val service = Scripted { answered("""{"session_id":"s-1","status":"active"}""", if (it.method == "POST") 202 else 200) }
        client(service, FolderStore(folder)).use { first ->
            client(service, FolderStore(folder)).use { second ->
                val open = first.openSession(SessionType.Dynamic, "p", intent = "job-17")
                val waiting = async { second.openSession(SessionType.Dynamic, "p", intent = "job-17", waitForIntent = true) }
                delay(500)
                assertFalse(waiting.isCompleted)
                open.release()
                assertEquals("s-1", withTimeout(30.seconds) { waiting.await() }.sessionId)
                assertEquals(1, service.sent.count { it.method == "POST" })
                assertEquals(Whose.OTHER, first.saved().single().whose)
            }
        }
    }

    @Test
    fun `a client that is collected lets go of its folder`(@TempDir folder: Path): Unit = runBlocking {
        val service = Scripted { answered("""{"session_id":"s-1","status":"active"}""", if (it.method == "POST") 202 else 200) }
        suspend fun leave() {
            client(service, FolderStore(folder)).openSession(SessionType.Dynamic, "p", intent = "job-17")
        }
        leave()
        client(service, FolderStore(folder)).use { next ->
            withTimeout(60.seconds) {
                while (next.saved().single().whose != Whose.FREE) {
                    System.gc()
                    delay(100)
                }
            }
            assertEquals("s-1", (next.resumeIntent("job-17") as OpenSession).sessionId)
        }
    }

    @Test
    fun `after every call a client owns what it holds, and nothing else`(): Unit = runBlocking {
        val store = SharedStore()
        var lost = false
        var sold = 0
        val service = Scripted {
            if (lost) throw IOException("gone")
            if (it.method == "POST") sold += 1
            answered("""{"session_id":"s-$sold","status":"${if (it.method == "DELETE") "terminated" else "active"}"}""", 202)
        }
        // A name that is let go of after an answer is let go of in the background.
        suspend fun owns(count: Int, what: String) = runCatching { withTimeout(20.seconds) { while (store.owned.size != count) delay(5) } }
            .onFailure { throw AssertionError("after $what it owns ${store.owned}") }
        client(service, store.client()).use { agent ->
            agent.createSession(SessionType.Dynamic, "p", intent = "created")
            owns(0, "a session was made")
            val open = agent.openSession(SessionType.Dynamic, "p", intent = "job-17")
            owns(1, "a session was opened")
            assertTrue(open.release())
            owns(0, "it was released")
            agent.updateBudget(intent = "budget")
            owns(0, "a change was accepted")
            lost = true
            assertThrows(HoplineException.InDoubt::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p", intent = "doubt") } }
            owns(0, "a doubt")
            val record = agent.saved().single { it.intent == "doubt" }.record
            assertThrows(HoplineException.Refused::class.java) { runBlocking { agent.settle(record, happened = false) } }
            owns(0, "a settlement was refused")
            assertTrue(agent.settle(record, happened = false, early = true))
            owns(0, "a doubt was settled")
            assertNull(agent.resumeIntent("nothing"))
            owns(0, "an intent that stands for nothing")
            runCatching { agent.getBalance() }
            owns(0, "a read")
        }
        assertTrue(store.owned.isEmpty())
    }

    @Test
    fun `a store that does not answer holds up the end of a client for a while only`(): Unit = runBlocking {
        val shared = SharedStore()
        val own = shared.client()
        val asked = CompletableDeferred<Unit>()
        val stuck =
            object : Store by own {
                override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean {
                    asked.complete(Unit)
                    awaitCancellation()
                }
            }
        val agent = client(Scripted { answered(bought, 202) }, stuck)
        val buying = async { runCatching { agent.buy() } }
        asked.await()
        withTimeout(60.seconds) { agent.shutdown(timeout = 200.milliseconds) }
        val failure = buying.await().exceptionOrNull() as HoplineException.Store
        assertEquals(Effect.UNKNOWN, failure.effect)
        withTimeout(30.seconds) { while (shared.owned.isNotEmpty()) delay(5) }
    }

    private fun keys(service: Scripted) = service.sent.filter { it.method == "POST" }.map { request -> request.headers.single { it.first == "idempotency-key" }.second }

    private suspend fun AgentClient.buy() = createSession(SessionType.Dynamic, "p", intent = "job-17")

    @Test
    fun `who listens hears of what closing the client left in doubt, and then of the end`(): Unit = runBlocking {
        val sent = CompletableDeferred<Unit>()
        val agent = client(Scripted { sent.complete(Unit).let { awaitCancellation() } })
        val heard = async(start = CoroutineStart.UNDISPATCHED) { agent.events.toList() }
        val buying = async { runCatching { agent.buy() } }
        sent.await()
        agent.shutdown()
        val events: List<Event> = withTimeout(30.seconds) { heard.await() }
        // The transport says only later that what it sent was broken off.
        assertEquals(EventName.IN_DOUBT, events.last { it.event != EventName.ANSWERED }.event, "$events")
        assertEquals(Effect.UNKNOWN, (buying.await().exceptionOrNull() as HoplineException).effect)
        assertTrue(withTimeout(30.seconds) { agent.events.toList() }.isEmpty(), "the end is told to who comes late")
    }

    @Test
    fun `an event that can't be read ends no program`() {
        // The core writes none; a library of another version might.
        val read = Class.forName("hopline.EventsKt").getDeclaredMethod("event", ByteArray::class.java)
        // The members that every event has: an operation, and what happened. The list of that has no such word.
        val (members, operation) = byteArrayOf(0b1010, 0, 0) to byteArrayOf(1, 'x'.code.toByte())
        for (packed in listOf(byteArrayOf(), members, members + operation, members + operation + 99)) assertNull(read.invoke(null, packed))
        assertEquals(EventName.REPEATING, (read.invoke(null, members + operation + 1) as Event).event)
    }

    @Test
    fun `an error can be written and read by Java, without the answer that it holds`(): Unit = runBlocking {
        val odd = """{"session_id":7,"canary":"secret"}"""
        client(Scripted { answered(odd, 202) }).use { agent ->
            val failure = assertThrows(HoplineException.Decode::class.java) { runBlocking { agent.createSession(SessionType.Dynamic, "p") } }
            assertEquals(odd, failure.raw?.text)
            val bytes = ByteArrayOutputStream().also { ObjectOutputStream(it).writeObject(failure) }.toByteArray()
            assertTrue("canary" !in bytes.toString(Charsets.ISO_8859_1))
            val read = ObjectInputStream(ByteArrayInputStream(bytes)).readObject() as HoplineException.Decode
            assertEquals(listOf(failure.message, failure.operation, failure.effect, failure.notes), listOf(read.message, read.operation, read.effect, read.notes))
            assertNull(read.raw)
        }
    }

    @Test
    fun `a client can be closed from a coroutine, twice, and keeps its token`(): Unit = runBlocking {
        val agent = client(Scripted { awaitCancellation() })
        val calls = List(20) { async { runCatching { agent.getBalance(timeout = 30_000.milliseconds) } } }
        delay(50)
        List(2) { launch { agent.shutdown() } }.forEach { it.join() }
        agent.close()
        calls.forEach { call -> assertTrue(call.await().exceptionOrNull() is HoplineException) }
    }
}
