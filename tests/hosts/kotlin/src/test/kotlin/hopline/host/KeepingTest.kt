package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.Event
import hopline.FolderStore
import hopline.HoplineException
import hopline.MemoryStore
import hopline.Options
import hopline.Response
import hopline.Secret
import hopline.SessionType
import hopline.Shelf
import hopline.Store
import hopline.Transport
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
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
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

/** What is kept and told of calls: results that nobody took, notes, events, records, errors. */
class KeepingTest {
    private val bought = """{"session_id":"s-1","status":"creating"}"""

    private fun client(transport: Transport, store: Store = MemoryStore(), options: Options = Options(attempts = 1)) =
        AgentClient(Secret("key"), "https://api.example/v1", transport, store, options)

    @Test
    fun `a purchase whose caller was cancelled when its answer was there is shown, and its answer is given once`(): Unit = runBlocking {
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
            assertEquals(listOf("accepted", "create_session", "s-1"), listOf(shown.holds, shown.operation, shown.sessionId))
            assertEquals(bought, agent.resume(shown.record).raw.text)
            withTimeout(30.seconds) { while (agent.saved().isNotEmpty()) delay(10) }
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

    private fun keeping(keep: () -> Unit): Store {
        val store = MemoryStore()
        return Store {
            val shelf = store.open()
            object : Shelf by shelf {
                override fun keep(record: String, data: ByteArray?) = keep().also { shelf.keep(record, data) }
            }
        }
    }

    @Test
    fun `the store is scanned once for an intent, and not again by further calls of it`(): Unit = runBlocking {
        val scans = AtomicInteger()
        val store = MemoryStore()
        val counted = Store {
            val shelf = store.open()
            object : Shelf by shelf {
                override fun scanning(look: () -> Unit) = shelf.scanning(look).also { scans.incrementAndGet() }
            }
        }
        client(Scripted { answered(bought, 202) }, counted).use { agent ->
            repeat(5) { agent.createSession(SessionType.Dynamic, "p", intent = "job-17") }
            assertEquals(1, scans.get())
            assertTrue(agent.forget(agent.saved().single().record))
            val before = scans.get()
            agent.createSession(SessionType.Dynamic, "p", intent = "job-17")
            assertEquals(before + 1, scans.get(), "another client may have had it meanwhile")
        }
    }

    @Test
    fun `a store that fails while an intent is looked for is looked at again by the next call`(): Unit = runBlocking {
        val store = MemoryStore()
        // With the service's time, without which no key is sent again after a restart.
        val date = listOf("Date" to RFC_1123_DATE_TIME.format(ZonedDateTime.now(UTC)))
        val lost = Scripted { Response(504, date, ByteArray(0)) }
        client(lost, store).use { assertThrows(HoplineException.InDoubt::class.java) { runBlocking { it.buy() } } }
        var broken = true
        val failing = Store {
            val shelf = store.open()
            object : Shelf by shelf {
                override fun claim(record: String): ByteArray? = shelf.claim(record).also { if (broken) throw IOException("read error") }
            }
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
    fun `a record that was refused is not forgotten while a living client has it`(@TempDir folder: Path): Unit = runBlocking {
        for (store in listOf(MemoryStore(), FolderStore(folder))) {
            val lost = Scripted { throw IOException("gone") }
            client(lost, store).use { assertThrows(HoplineException.InDoubt::class.java) { runBlocking { it.buy() } } }
            AgentClient(Secret("another-account"), "https://api.example/v1", lost, store).use { stranger ->
                val record = stranger.rejected().single().record
                stranger.resumeAll()
                client(lost, store).use { owner ->
                    runCatching { owner.resume(record) }
                    assertFalse(stranger.forget(record))
                    assertEquals(listOf(record), owner.saved().map { it.record })
                }
                client(lost, store).use { next -> assertEquals(listOf(record), next.saved().map { it.record }, "$store") }
                assertTrue(stranger.resumeAll().isEmpty() && stranger.forget(record))
            }
        }
    }

    @Test
    fun `what is forgotten on a busy client is waited for, and no more`(): Unit = runBlocking {
        // Each save of the others ends only when the next has begun, so there is always one.
        val others = BusySaves()
        val service = Scripted { answered(bought, 202) }
        client(service, keeping { others.save() }).use { agent ->
            agent.buy()
            val record = agent.saved().single().record
            others.overlap(true)
            val busy = List(3) { launch { while (others.overlapping) agent.createSession(SessionType.Dynamic, "p") } }
            try {
                withTimeout(60.seconds) {
                    others.awaitSome()
                    assertTrue(agent.forget(record))
                }
            } finally {
                others.overlap(false)
            }
            busy.forEach { it.join() }
        }
    }

    private class BusySaves {
        private var begun = 0

        @Volatile
        var overlapping = false
            private set

        fun overlap(on: Boolean): Unit = locked {
            overlapping = on
            changed.signalAll()
        }

        fun save(): Unit = locked {
            val mine = ++begun
            changed.signalAll()
            while (overlapping && begun == mine) changed.await()
        }

        suspend fun awaitSome() {
            while (locked { begun } < 10) delay(1)
        }

        private val lock = ReentrantLock()
        private val changed = lock.newCondition()

        private fun <T> locked(work: () -> T): T = lock.withLock(work)
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
        assertEquals("in_doubt", events.last().event, "$events")
        assertEquals(Effect.UNKNOWN, (buying.await().exceptionOrNull() as HoplineException).effect)
        assertTrue(withTimeout(30.seconds) { agent.events.toList() }.isEmpty(), "the end is told to who comes late")
    }

    @Test
    fun `an event that can't be read ends no program`() {
        // The core writes none; a library of another version might.
        val read = Class.forName("hopline.FactsKt").getDeclaredMethod("event", String::class.java)
        for (text in listOf("{", "[]", "\"x\"", "null")) assertNull(read.invoke(null, text), text)
        assertEquals("x", (read.invoke(null, """{"event":"x","members":[{}],"delay_ms":"soon"}""") as Event).event)
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
