package hopline.host

import hopline.Advice
import hopline.AgentClient
import hopline.Effect
import hopline.EventName
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.OpenSession
import hopline.Phase
import hopline.ProductFilter
import hopline.Protocol
import hopline.Proxy
import hopline.RotateReason
import hopline.Seen
import hopline.SessionStatus
import hopline.SessionType
import hopline.Transport
import hopline.Verdict
import hopline.through
import java.math.BigDecimal
import kotlin.time.Duration
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** Fetches a site through a session's HTTP proxy, as any program with OkHttp would. */
fun visit(site: String, proxy: Proxy): Pair<Int, String> {
    val client = OkHttpClient.Builder().through(proxy).build()
    return client.newCall(Request.Builder().url(site).build()).execute().use { it.code to it.body!!.string() }
}

suspend fun AgentClient.balance(): BigDecimal = getBalance().raw.json.jsonObject.getValue("balance").jsonPrimitive.content.toBigDecimal()

class LifeTest {
    @ParameterizedTest
    @MethodSource("transports")
    fun `a session is bought, used, rotated and ended, for one charge`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "11", "--provisioning-ms", "0-300").use { sandbox ->
            sandbox.control("target", """{"block_first_exit":true}""")
            sandbox.client(transport).use { agent ->
                val events = async { agent.events.toList() }
                val before = agent.balance()
                val products = agent.listProducts(type = ProductFilter.Dynamic, limit = 100)
                val cheapest = products.items.filter { it.available }.minBy { it.price }
                val open =
                    agent.openSession(
                        SessionType.Dynamic, cheapest.productNo, quantity = BigDecimal.ONE, protocol = Protocol.Http, intent = "job-17", credentials = true,
                    )
                assertEquals(Phase.READY, open.phase)
                assertEquals(SessionStatus.Active, open.session.status)
                val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
                val first = visit(site, open.proxy)
                assertEquals(403, first.first)
                assertEquals(Verdict.Rotate(RotateReason.Http403), open.observe(Seen.Status(403)))
                val rotated = open.rotate(RotateReason.Http403, includeCredentials = true)
                val second = visit(site, rotated.proxy!!)
                assertEquals(200, second.first)
                assertNotEquals(first.second, second.second)
                assertEquals(before - cheapest.price, agent.balance())
                // The same intent is the same session.
                val again = agent.openSession(SessionType.Dynamic, cheapest.productNo, quantity = BigDecimal.ONE, protocol = Protocol.Http, intent = "job-17")
                assertEquals(open.sessionId, again.sessionId)
                open.terminate()
                assertEquals(407, visit(site, rotated.proxy!!).first)
                assertEquals(1 to 1, sandbox.counts())
                agent.close()
                val seen = events.await()
                assertTrue(seen.any { it.event == EventName.ACCEPTED && it.sessionId == open.sessionId && it.estimatedChargeUsd?.compareTo(cheapest.price) == 0 }, "$seen")
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a block gives a session that rotates by itself a new exit without a further call`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "13", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(transport).use { agent ->
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, credentials = true, autoRotate = true)
                assertEquals(Verdict.Keep, open.observe(Seen.Status(200)))
                val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
                val before = visit(site, open.proxy)
                // A caller that comes once it has rotated is told so, and these are to come before.
                sandbox.fault("rotate_session", """{"kind":"delay","ms":1000}""")
                val seen = List(20) { async { open.observe(Seen.Status(403)) } }.awaitAll().map { it as Verdict.Rotated }
                assertEquals(setOf(RotateReason.Http403), seen.map { it.reason }.toSet())
                assertNotEquals(before.second, visit(site, seen.first().session.proxy!!).second)
                val session = (sandbox.state().getValue("sessions") as JsonArray).single().jsonObject
                assertEquals("1", session.getValue("rotations").jsonPrimitive.content)
                val again = open.observe(Seen.Block) as Verdict.Unsure
                assertTrue("a moment ago" in again.why, again.why)
            }
        }
    }

    @Test
    fun `a session that is not usable at its deadline is an exception that leads to it`(): Unit = runBlocking {
        Sandbox("--seed", "14", "--provisioning-ms", "3600000").use { sandbox ->
            sandbox.client(OkHttpTransport()).use { agent ->
                val opens: suspend () -> OpenSession = {
                    agent.openSession(SessionType.Dynamic, "dynamic-world", intent = "job-17", deadline = Duration.ZERO)
                }
                val late = assertThrows(HoplineException.NotReady::class.java) { runBlocking { opens() } }
                assertEquals(Effect.DONE to Advice.WAIT_SESSION, late.effect to late.advice)
                val session = late.session!!
                assertEquals(listOf(late.sessionId, Phase.PENDING, SessionStatus.Creating), listOf(session.sessionId, session.phase, session.session.status))
                val waited = assertThrows(HoplineException.NotReady::class.java) {
                    runBlocking { agent.waitSession(session.sessionId, deadline = Duration.ZERO) }
                }
                assertEquals(Effect.NONE, waited.effect)
                val pending = agent.openSession(SessionType.Dynamic, "dynamic-world", deadline = Duration.ZERO, allowPending = true)
                assertEquals(Phase.PENDING, pending.phase)
                sandbox.control("clock", """{"advance_ms":3600000}""")
                assertEquals(Phase.READY, opens().phase)
            }
        }
    }

    @Test
    fun `what keeps a session from rotating is thrown where it was seen`(): Unit = runBlocking {
        Sandbox("--seed", "14", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(OkHttpTransport()).use { agent ->
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world", autoRotate = true)
                open.terminate()
                assertNull(open.observe(Seen.Block))
                val other = agent.openSession(SessionType.Dynamic, "dynamic-world", autoRotate = true)
                sandbox.control("faults", """{"operation":"rotate_session","times":1,"fault":{"kind":"error","code":"SESSION_EXPIRED"}}""")
                val failed = assertThrows(HoplineException::class.java) { runBlocking { other.observe(Seen.Captcha) } }
                assertEquals("rotate_session" to "SESSION_EXPIRED", failed.operation to failed.code)
                val refused = assertThrows(HoplineException.Invalid::class.java) {
                    runBlocking { agent.openSession(SessionType.Static, "static-us", autoRotate = true) }
                }
                assertTrue("`autoRotate`" in refused.message!!, refused.message)
            }
        }
    }

    @ParameterizedTest
    @MethodSource("transports")
    fun `a static session is renewed, and what its state does not allow is refused`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "12", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(transport).use { agent ->
                val product = agent.listProducts(type = ProductFilter.Static).items.first { it.available && it.sharing.word == "exclusive" }
                val open = agent.openSession(SessionType.Static, product.productNo, protocol = Protocol.Socks5, credentials = false)
                assertNull(open.proxy.password)
                open.renew(duration = 1)
                val refused = assertThrows(HoplineException::class.java) { runBlocking { open.rotate() } }
                assertEquals(hopline.Effect.NONE, refused.effect)
                assertEquals(2, (sandbox.state().getValue("charges") as JsonArray).size)
            }
        }
    }

    companion object {
        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}
