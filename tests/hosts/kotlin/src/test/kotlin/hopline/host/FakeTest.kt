package hopline.host

import hopline.Agent
import hopline.AgentClient
import hopline.Clock
import hopline.Effect
import hopline.HoplineException
import hopline.Kind
import hopline.OpenSession
import hopline.Options
import hopline.Pages
import hopline.Phase
import hopline.Product
import hopline.ProductFilter
import hopline.ProductList
import hopline.Proxy
import hopline.RawReply
import hopline.Reseller
import hopline.ResellerClient
import hopline.RotateReason
import hopline.Secret
import hopline.Session
import hopline.SessionStatus
import hopline.SessionType
import hopline.Transport
import hopline.Until
import java.math.BigDecimal
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

/** The screen of an app that buys a session. */
private class Shop(private val agent: Agent) {
    var shown = ""
        private set

    suspend fun show() {
        shown = agent.walkProducts(type = ProductFilter.Dynamic).items().toList().joinToString { it.name }
    }

    suspend fun open(id: String): OpenSession? =
        try {
            agent.waitSession(id, deadline = 1.minutes).also { shown = "${it.sessionId} at ${it.proxy.host}" }
        } catch (failure: HoplineException.Busy) {
            shown = "another device has it: ${failure.sessionId}"
            null
        }
}

/** The service of a test, of which another screen than the shop's needs nothing. */
private open class Fake : Agent {
    override fun walkProducts(
        type: ProductFilter?,
        country: String?,
        inStock: Boolean?,
        limit: Long?,
        attempts: Int?,
        window: Duration?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
        position: String?,
        maxPages: Int?,
    ): Pages<Product, ProductList> =
        Pages.of(listOf(listOf("one", "two"), listOf("three")).map { names -> ProductList(names.map(::product)) }, ProductList::items)

    override suspend fun waitSession(
        sessionId: String,
        attempts: Int?,
        window: Duration?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
        credentials: Boolean?,
        allowPending: Boolean?,
        autoRotate: Boolean?,
        deadline: Duration?,
        ends: List<String>?,
    ): OpenSession {
        if (sessionId == "s-2") throw HoplineException.of(Kind.BUSY, sessionId = sessionId)
        return OpenSession(this, session("one.example"))
    }

    override suspend fun rotateSession(
        sessionId: String,
        includeCredentials: Boolean?,
        reason: RotateReason?,
        intent: String?,
        idempotencyKey: String?,
        waitForIntent: Boolean?,
        attempts: Int?,
        window: Duration?,
        timeout: Duration?,
        headers: Map<String, Secret>?,
    ): Session = session("two.example")
}

private fun product(name: String) =
    Product("p-$name", name, SessionType.Dynamic, hopline.Sharing("dedicated"), true, BigDecimal.ONE, "USD", "GB")

private fun session(host: String) = Session("s-1", status = SessionStatus("active"), proxy = Proxy(host = host, port = 8000))

@OptIn(ExperimentalCoroutinesApi::class)
class FakeTest {
    @Test
    fun `a screen takes a fake of the client, which answers what it implements`(): Unit = runBlocking {
        val shop = Shop(Fake())
        shop.show()
        assertEquals("one, two, three", shop.shown)
        val open = checkNotNull(shop.open("s-1"))
        assertEquals("s-1 at one.example", shop.shown)
        open.rotate(RotateReason.Manual)
        assertEquals(listOf("two.example", 1, Phase.READY), listOf(open.proxy.host, open.generation, open.phase))
        assertNull(shop.open("s-2"))
        assertEquals("another device has it: s-2", shop.shown)
    }

    @Test
    fun `what a fake does not implement is named, and it is closed as a client is`() {
        val missing = assertThrows(NotImplementedError::class.java) { runBlocking { Fake().getBalance() } }
        assertTrue("getBalance" in missing.message.orEmpty(), missing.message)
        assertThrows(NotImplementedError::class.java) { runBlocking { Fake().saved() } }
        assertThrows(NotImplementedError::class.java) { runBlocking { object : Reseller {}.listSubUsers() } }
        Fake().use { fake -> runBlocking { assertEquals(0, fake.events.toList().size) } }
        runBlocking { Fake().shutdown() }
    }

    @Test
    fun `both clients are what a screen takes, and one that wraps another sees its calls`(): Unit = runBlocking {
        val service = Transport { answered("""{"balance":1}""") }
        val calls = ArrayList<String>()
        AgentClient(Secret("key"), "https://api.example/v1", service).use { client ->
            val told = object : Agent by client {
                override suspend fun getBalance(
                    attempts: Int?,
                    window: Duration?,
                    timeout: Duration?,
                    headers: Map<String, Secret>?,
                    until: Until?,
                    deadline: Duration?,
                ): RawReply = client.getBalance(timeout = timeout).also { calls += "getBalance" }
            }
            assertEquals("""{"balance":1}""", told.getBalance().raw.text)
        }
        assertEquals(listOf("getBalance"), calls)
        val reseller: Reseller = ResellerClient(baseUrl = "https://api.example/api", token = Secret("t"), transport = service)
        reseller.close()
    }

    @Test
    fun `a failure of a fake is the class of its kind`() {
        assertEquals(Kind.entries.toSet(), Kind.entries.map { HoplineException.of(it).kind }.toSet())
        val failure = HoplineException.of(Kind.IN_DOUBT, Effect.UNKNOWN, record = "r-1")
        assertEquals(listOf(true, Effect.UNKNOWN, "r-1"), listOf(failure is HoplineException.InDoubt, failure.effect, failure.record))
    }

    @Test
    @Timeout(60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    fun `a wait of minutes takes none by a test's clock`(): Unit = runTest {
        var reads = 0
        val service = Transport {
            val status = if (reads++ < 20) "creating" else "active"
            answered("""{"session_id":"s-1","status":"$status","proxy":{"host":"one.example","port":8000,"protocol":"http"}}""")
        }
        val clock = Clock.of { testScheduler.currentTime }
        AgentClient(Secret("key"), "https://api.example/v1", service, options = Options(), clock = clock, dispatcher = StandardTestDispatcher(testScheduler)).use { agent ->
            assertEquals(Phase.READY, agent.waitSession("s-1", credentials = false).phase)
        }
        assertTrue(testScheduler.currentTime >= 20_000, "it waited for ${testScheduler.currentTime} ms")
    }
}
