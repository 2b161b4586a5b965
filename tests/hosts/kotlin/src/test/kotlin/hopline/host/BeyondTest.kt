package hopline.host

import hopline.AgentClient
import hopline.HoplineException
import hopline.Method
import hopline.Phase
import hopline.Product
import hopline.Safety
import hopline.Secret
import hopline.Seen
import hopline.SessionType
import hopline.Sharing
import hopline.Until
import hopline.quote
import hopline.sessionEvent
import java.math.BigDecimal
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** The calls beyond the table: exact prices, events of telemetry, and requests of the caller's own. */
class BeyondTest {
    private fun product(price: String = "4.10", type: SessionType = SessionType.Dynamic) =
        Product("p-1", "P", type, Sharing.Shared, true, BigDecimal(price), "USD", "GB")

    private fun total(price: String, quantity: String) = quote(product(price), BigDecimal(quantity)).total.toPlainString()

    private fun sound(body: String = "{}") = Scripted { answered(body) }

    private fun client(transport: hopline.Transport) = AgentClient(Secret("key"), "https://api.example/v1", transport)

    @Test
    fun `a quote is what the service charges`(): Unit = runBlocking {
        Sandbox("--seed", "101", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val offered = agent.walkProducts().items().first { it.productNo == "dynamic-world" }
                val told = quote(offered, BigDecimal("0.3"))
                assertEquals(listOf(offered.productNo, offered.price, "USD", offered.unit), listOf(told.productNo, told.unitPrice, told.currency, told.unit))
                val bought = agent.createSession(SessionType.Dynamic, told.productNo, quantity = told.quantity)
                assertEquals(0, bought.estimatedChargeUsd!!.compareTo(told.total))
            }
        }
    }

    @Test
    fun `a quote is exact or refused`() {
        assertEquals("1.23", total("4.10", "0.3"))
        assertEquals("0.3", total("0.1", "3"))
        assertEquals("0.000001000000000001", total("0.000000000001", "1000000.000001"))
        // The last digit that a decimal has is rounded up.
        assertEquals("0.0000000000000000000000000001", total("0.00000000000001", "0.000000000000000001"))
        for (wrong in listOf("0", "-1", "1e-500")) {
            val refused = assertThrows<HoplineException.Invalid>(wrong) { quote(product("0.00000000000001"), BigDecimal(wrong)) }
            assertEquals("quote" to "quantity", refused.operation to refused.field)
        }
        assertThrows<HoplineException.Invalid> { quote(product(type = SessionType.Static), BigDecimal("1.5")) }
    }

    @Test
    fun `events are told, and show in the health of a session`(): Unit = runBlocking {
        Sandbox("--seed", "102", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world")
                val more = mapOf("attempt" to JsonPrimitive(1), "note" to Json.parseToJsonElement("""{"page":2}"""))
                val event = sessionEvent(status = 403, latency = 120.milliseconds, bytes = 2048, target = "shop.example", more = more)
                val said = """{"attempt":1,"note":{"page":2},"status":403,"latency_ms":120,"bytes":2048,"target":"shop.example"}"""
                assertEquals(Json.parseToJsonElement(said), event)
                repeat(3) { agent.reportSessionEvent(open.sessionId, event) }
                val health = agent.getSessionHealth(open.sessionId).raw.json.jsonObject
                assertEquals("3", health.getValue("metrics").members().word("bad_events"))
                assertEquals("http_403", health.getValue("rotation").members().word("reason"))
                agent.reportSessionEvent(open.sessionId, Json.parseToJsonElement("""{"anything":["else"]}"""))
            }
        }
        assertEquals("""{"seen":"captcha"}""", sessionEvent(seen = Seen.Captcha).toString())
        for (target in listOf("https://shop.example/?token=canary", "user:canary@shop.example")) {
            assertEquals("""{"target":"shop.example"}""", sessionEvent(target = target).toString())
        }
    }

    @Test
    fun `an event that is none is refused and not repeated`() {
        val wrong: List<Pair<String, () -> JsonObject>> =
            listOf(
                "status" to { sessionEvent(status = 99) }, "status" to { sessionEvent(status = 600) }, "seen" to { sessionEvent(seen = Seen.Status(403)) },
                "latency" to { sessionEvent(latency = (-1).milliseconds) }, "bytes" to { sessionEvent(bytes = -1) }, "target" to { sessionEvent(target = "") },
                "target" to { sessionEvent(target = "canary:canary") }, "facts" to { sessionEvent() },
                "more" to { sessionEvent(status = 200, more = mapOf("status" to JsonPrimitive("canary"))) },
            )
        for ((field, make) in wrong) {
            val refused = assertThrows<HoplineException.Invalid>(field) { make() }
            assertTrue(refused.field == field && "canary" !in refused.toString(), "$refused")
        }
    }

    @Test
    fun `a request of the caller's own reaches what has no method`(): Unit = runBlocking {
        Sandbox("--seed", "103").use { sandbox ->
            sandbox.client().use { agent ->
                assertEquals(agent.getBalance().raw, agent.request(Method.GET, "/billing/balance").raw)
                val listed = agent.request(Method.GET, "/products", query = mapOf("type" to "static", "limit" to "2"))
                assertEquals(2, (listed.raw.json.jsonObject.getValue("items") as JsonArray).size)
                assertTrue(listed.requestId != null)
                val body = Json.parseToJsonElement("""{"amount_usd":10.50}""")
                suspend fun topUp() = agent.request(Method.POST, "/billing/recharge", body = body, safety = Safety.KEYED, intent = "top-up").raw.json.members()
                val order = topUp()
                assertEquals(order.word("order_id"), topUp().word("order_id"))
                assertEquals(0, order.word("amount_usd").toBigDecimal().compareTo(BigDecimal("10.5")))
                assertEquals(Phase.READY, agent.request(Method.GET, "/billing/balance", until = Until("/balance", atLeast = BigDecimal.ONE)).phase)
                val refused = assertThrows<HoplineException.Refused> { runBlocking { agent.request(Method.GET, "/nothing/here") } }
                assertEquals(404 to "request", refused.status to refused.operation)
            }
        }
    }

    @Test
    fun `a write whose safety is not said is never sent twice`(): Unit = runBlocking {
        Sandbox("--seed", "104").use { sandbox ->
            sandbox.client().use { agent ->
                sandbox.fault("create_recharge", """{"kind":"drop_after"}""")
                val body = Json.parseToJsonElement("""{"amount_usd":10}""")
                val doubt = assertThrows<HoplineException.InDoubt> { runBlocking { agent.request(Method.POST, "/billing/recharge", body = body) } }
                assertEquals(1, doubt.attempts)
                assertEquals(1, (sandbox.state().getValue("orders") as JsonArray).size)
            }
        }
    }

    @Test
    fun `the numbers of a free body are sent as they were written`(): Unit = runBlocking {
        val service = sound()
        val text = """{"numbers":[0.1234567890123456789012345678901234567890,1E+2,0.1,1000000000000000000000000000000,"1.5",null]}"""
        client(service).use { agent ->
            agent.request(Method.POST, "/x", body = Json.parseToJsonElement(text))
            agent.reportSessionEvent("s", sessionEvent(more = mapOf("cost" to Json.parseToJsonElement("0.10"))))
        }
        assertEquals(listOf(text, """{"cost":0.10}"""), service.sent.map { it.body!!.decodeToString() })
    }

    @Test
    fun `a request that can't be is refused before anything is sent`() {
        val nobody = Scripted { error("nothing was to be sent") }
        client(nobody).use { agent ->
            for (path in listOf("x", "/../x", "/x?y=1", "//host/x", "/\ud800")) {
                val refused = assertThrows<HoplineException.Invalid>(path) { runBlocking { agent.request(Method.GET, path) } }
                assertEquals("request", refused.operation)
            }
            assertThrows<HoplineException.Invalid> { runBlocking { agent.request(Method.GET, "/x", headers = mapOf("x-api-key" to Secret("k"))) } }
            assertThrows<HoplineException.Invalid> { runBlocking { agent.request(Method.POST, "/x", until = Until("/x", listOf("y"))) } }
        }
        assertTrue(nobody.sent.isEmpty())
    }
}
