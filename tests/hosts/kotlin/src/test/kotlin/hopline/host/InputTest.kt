package hopline.host

import hopline.Advice
import hopline.AgentClient
import hopline.Effect
import hopline.FolderStore
import hopline.RecordKind
import hopline.IfEnded
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.Method
import hopline.Options
import hopline.Secret
import hopline.Seen
import hopline.SessionType
import hopline.Store
import hopline.Whose
import java.io.IOException
import java.math.BigDecimal
import java.nio.file.Files
import java.nio.file.Path
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

/** Bad input, misuse, failing stores, and answers that do not fit: a clear error, and nothing is lost. */
class InputTest {
    private val nobody = Scripted { error("nothing was to be sent") }

    private fun client(transport: hopline.Transport = nobody, store: Store? = null, options: Options = Options()) =
        AgentClient(Secret("canary-key"), "https://api.example/v1", transport, store, options)

    private inline fun <reified T : HoplineException> fails(part: String, crossinline work: suspend () -> Unit): T {
        val failure = assertThrows(T::class.java) { runBlocking { work() } }
        assertTrue(part in failure.message!!, "expected `$part` in: ${failure.message}")
        return failure
    }

    @Test
    fun `a client that can't be is refused by the name of what is wrong`() {
        fails<HoplineException.Invalid>("baseUrl") { AgentClient(null, null) }
        fails<HoplineException.Invalid>("must be https") { AgentClient(null, "http://api.example", nobody) }
        fails<HoplineException.Invalid>("attempts") { client(options = Options(attempts = -1)) }
        fails<HoplineException.Invalid>("timeout") { client(options = Options(timeout = (-1).milliseconds)) }
        fails<HoplineException.Invalid>("surrogate") { AgentClient(Secret("\ud800"), "https://api.example/v1", nobody) }
    }

    @Test
    fun `an error begins with the method that was called and names options as they are spelled here`() {
        client().use { agent ->
            val told = "openSession `b`: `ifEnded` can be `buy` only in a client with `dailyCapUsd`"
            val failure = fails<HoplineException.Invalid>(told) { agent.openSession(SessionType.Dynamic, "p", intent = "b", ifEnded = IfEnded.BUY) }
            assertEquals("create_session" to "ifEnded", failure.operation to failure.field)
        }
    }

    @Test
    fun `a call that can't be is refused before anything is sent`() {
        client().use { agent ->
            fails<HoplineException.Invalid>("quantity") { agent.createSession(SessionType.Dynamic, "p", quantity = BigDecimal("-1")) }
            fails<HoplineException.Invalid>("sessionType") { agent.createSession(SessionType("yearly"), "p") }
            fails<HoplineException.Invalid>("idempotencyKey") { agent.createSession(SessionType.Dynamic, "p", idempotencyKey = "a b") }
            fails<HoplineException.Invalid>("headers") { agent.getBalance(headers = mapOf("X-API-Key" to Secret("canary"))) }
            fails<HoplineException.Invalid>("intent") { agent.createSession(SessionType.Dynamic, "p", intent = "") }
            fails<HoplineException.Invalid>("surrogate") { agent.getSession("\udc00") }
            fails<HoplineException.Invalid>("surrogate") { agent.createSession(SessionType.Dynamic, "p", intent = "\ud800") }
            fails<HoplineException.Invalid>("sessionId") { agent.getSession("") }
            fails<HoplineException.Invalid>("timeout") { agent.getBalance(timeout = (-1).seconds) }
            val deep = (1..100_000).fold(JsonArray(emptyList())) { inner, _ -> JsonArray(listOf(inner)) }
            fails<HoplineException.Invalid>("100 levels") { agent.request(Method.POST, "/x", body = deep) }
            assertThrows(HoplineException::class.java) { runBlocking { agent.resume("nothing") } }
            assertNull(runBlocking { agent.observe("s-1", Seen.Captcha) })
            assertTrue(nobody.sent.isEmpty())
        }
    }

    @Test
    fun `a client that is closed says so`() {
        val agent = client()
        agent.close()
        agent.close()
        fails<HoplineException.Misuse>("closed") { agent.getBalance() }
        fails<HoplineException.Misuse>("closed") { agent.saved() }
        fails<HoplineException.Misuse>("closed") { agent.observe("s-1", Seen.Block) }
        fails<HoplineException.Misuse>("closed") { agent.resumeAll() }
    }

    @Test
    fun `a store that can't be opened is said before anything is bought`(@TempDir folder: Path) {
        val file = Files.writeString(folder.resolve("file"), "x")
        for (unusable in listOf(file.resolve("below"), Path.of("/proc/self")).filter { it.parent != Path.of("/proc") || Files.isDirectory(it) }) {
            client(store = FolderStore(unusable)).use { agent ->
                val failure = fails<HoplineException.Store>("createSession") { agent.createSession(SessionType.Dynamic, "p", intent = "job-17") }
                assertEquals(Advice.RESUME to Effect.UNKNOWN, failure.advice to failure.effect)
                val unnamed = fails<HoplineException.Store>("createSession") { agent.createSession(SessionType.Dynamic, "p") }
                assertEquals(Advice.MEND_STORE to Effect.NONE, unnamed.advice to unnamed.effect)
                assertTrue("`$unusable" in failure.notes.single() || "`${unusable.parent}" in failure.notes.single(), "$failure")
                assertTrue("the store said: " in fails<HoplineException.Store>("saved") { agent.saved() }.notes.single())
                fails<HoplineException.Store>("resumeAll") { agent.resumeAll() }
            }
        }
        assertTrue(nobody.sent.isEmpty())
    }

    @Test
    fun `a store that is full keeps a purchase from being sent`() {
        val full = failing { throw IOException("No space left on device") }
        client(store = full).use { agent ->
            val failure = fails<HoplineException.Store>("createSession") { agent.createSession(SessionType.Dynamic, "p") }
            assertEquals(listOf("the store said: No space left on device (IOException)"), failure.notes)
            assertTrue("No space left" in failure.toString())
            assertTrue(nobody.sent.isEmpty())
        }
        client(store = failing { error("canary") }).use { agent ->
            val failure = fails<HoplineException.Store>("createSession") { agent.createSession(SessionType.Dynamic, "p") }
            assertTrue("IllegalStateException" in failure.notes.single() && "canary" !in failure.notes.single())
        }
    }

    private fun failing(put: () -> Nothing): Store =
        object : Store by SharedStore().client() {
            override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean = put()
        }

    @Test
    fun `one store can't have two clients`() {
        val store = SharedStore().client()
        client(store = store).use {
            fails<HoplineException.Misuse>("this store has a client already") { client(store = store) }
        }
        fails<HoplineException.Misuse>("this store has a client already") { client(store = store) }
    }

    @Test
    fun `a record that can't be read is shown, buys nothing, and is forgotten`(@TempDir folder: Path): Unit = runBlocking {
        val service = Scripted { answered("""{"session_id":"s-1","status":"creating"}""", 202) }
        client(service, FolderStore(folder)).use { it.createSession(SessionType.Dynamic, "p", intent = "job-17") }
        val file = Files.walk(folder.resolve("names")).use { all -> all.filter(Files::isRegularFile).toList().single() }
        Files.writeString(file, "{")
        client(service, FolderStore(folder)).use { agent ->
            val refused = agent.saved().single()
            assertEquals(Triple(RecordKind.REFUSED, "damaged", Whose.FREE), Triple(refused.holds, refused.reason, refused.whose))
            assertTrue(agent.resumeAll().isEmpty())
            fails<HoplineException.Store>("createSession") { agent.createSession(SessionType.Dynamic, "p", intent = "job-17") }
            assertEquals("{", Files.readString(file))
            assertEquals(1, service.sent.size)
            assertTrue(agent.forget(refused.record))
            assertTrue(agent.saved().isEmpty() && Files.notExists(file))
        }
    }

    @Test
    fun `an answer that does not fit its type is done, and its data is kept`(): Unit = runBlocking {
        val data = """{"session_id":"s-1","status":"active","proxy":{"port":"high"},"later":[1]}"""
        client(Scripted { answered(data, 202) }).use { agent ->
            val failure = fails<HoplineException.Decode>("data.proxy.port") { agent.createSession(SessionType.Dynamic, "p") }
            assertEquals(Effect.DONE to "s-1", failure.effect to failure.sessionId)
            assertEquals(data, failure.raw?.text)
        }
    }

    @Test
    fun `numbers keep their digits, and words that nobody knows are kept`(): Unit = runBlocking {
        val price = "12345678901234567890.12345678"
        val item = """{"product_no":"p","name":"n","type":"hourly","sharing":"shared","available":true,"price":$price,"currency":"USD","unit":"GB"}"""
        client(Scripted { answered("""{"items":[$item],"total":1,"later":{"a":1.10}}""") }).use { agent ->
            val list = agent.listProducts()
            assertEquals(BigDecimal(price), list.items.single().price)
            assertEquals("hourly", list.items.single().type.word)
            assertTrue(""""a":1.10""" in list.raw.text)
        }
        val huge = "9".repeat(1_000_000)
        for ((number, rounded) in listOf("12345678901234567890.12345678901234567890" to "12345678901234567890.12345679", "\"4.1\"" to "4.1")) {
            client(Scripted { answered("""{"items":[${item.replace(price, number)}]}""") }).use { agent ->
                assertEquals(0, BigDecimal(rounded).compareTo(agent.listProducts().items.single().price))
            }
        }
        for (number in listOf(huge, "1e999999999", "true")) {
            client(Scripted { answered("""{"items":[${item.replace(price, number)}]}""") }).use { agent ->
                fails<HoplineException.Decode>("data.items[0].price") { agent.listProducts() }
            }
        }
        client(Scripted { answered("""{"session_id":"s","status":"active","status":"expired"}""") }).use { agent ->
            fails<HoplineException.Decode>("data.status") { agent.getSession("s") }
        }
    }

    @Test
    fun `an answer that is nested too deep is no answer`(): Unit = runBlocking {
        val deep = "[".repeat(100_000) + "]".repeat(100_000)
        client(Scripted { answered(deep) }).use { agent -> fails<HoplineException.Protocol>("getBalance") { agent.getBalance() } }
        val allowed = "[".repeat(90) + "]".repeat(90)
        client(Scripted { answered(allowed) }).use { agent -> assertEquals(allowed, agent.getBalance().raw.json.toString()) }
    }

    @Test
    fun `a transport that breaks its word is an error like any other`(): Unit = runBlocking {
        client(Scripted { throw OutOfMemoryError("no room for Bearer canary") }, options = Options(attempts = 1)).use { agent ->
            val failure = fails<HoplineException.InDoubt>("createSession") { agent.createSession(SessionType.Dynamic, "p") }
            val note = Regex("OutOfMemoryError at InputTest\\.kt:\\d+: no room for \\[redacted]$")
            assertTrue(note.containsMatchIn(failure.notes.single()) && "canary" !in failure.toString(), "${failure.notes}")
        }
        client(Scripted { hopline.Response(99_999, emptyList(), ByteArray(0)) }, options = Options(attempts = 1)).use { agent ->
            fails<HoplineException>("createSession") { agent.createSession(SessionType.Dynamic, "p") }
        }
    }

    @Test
    @Timeout(300)
    fun `an error of a transport that quotes a long body shows none of it, and is told soon`(): Unit = runBlocking {
        // Every part of the one is in it once, and that of the other everywhere.
        for (note in listOf(List(4_000) { "canary-$it" }.joinToString(" "), "a".repeat(60_000))) {
            val quoting = Scripted { request -> error("can't send " + request.body!!.decodeToString().drop(100).take(10_000)) }
            client(quoting, options = Options(attempts = 1)).use { agent ->
                val failure = fails<HoplineException>("request") { agent.request(Method.POST, "/x", body = JsonObject(mapOf("note" to JsonPrimitive(note)))) }
                assertTrue("can't send [redacted]" in failure.notes.single() && "canary-" !in "$failure ${failure.notes}", "${failure.notes}".take(1000))
            }
        }
    }

    @Test
    fun `an intent is bought anew once it was forgotten, and a doubt can be settled`(): Unit = runBlocking {
        var number = 0
        val service = Scripted { if (it.method == "POST") answered("""{"session_id":"s-${number++}","status":"creating"}""", 202) else error("gone") }
        client(service, options = Options(attempts = 1)).use { agent ->
            suspend fun buy() = agent.createSession(SessionType.Dynamic, "p", intent = "job-17").sessionId
            assertEquals(listOf("s-0", "s-0"), listOf(buy(), buy()))
            assertTrue(agent.forget(agent.saved().single().record))
            assertEquals("s-1", buy())
        }
        client(Scripted { error("lost") }, options = Options(attempts = 1)).use { agent ->
            val failure = fails<HoplineException.InDoubt>("job-18") { agent.createSession(SessionType.Dynamic, "p", intent = "job-18") }
            val soon = fails<HoplineException.Refused>("under way") { agent.settle(failure.record!!, happened = false) }
            // Told by two clocks, which do not agree to the millisecond.
            assertTrue(java.time.Duration.between(agent.saved().single().settleFrom!!, soon.retryAt!!).abs().seconds < 60)
            assertTrue(agent.settle(failure.record!!, happened = false, early = true))
            assertTrue(agent.saved().isEmpty())
            assertTrue(!agent.settle(failure.record!!, happened = false))
        }
    }

    @Test
    fun `java net http is what a client has by itself`() {
        AgentClient(null, "https://api.example/v1").close()
        JavaHttpTransport()
    }
}
