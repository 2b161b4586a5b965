package hopline.host

import hopline.Advice
import hopline.AgentClient
import hopline.Effect
import hopline.Event
import hopline.EventName
import hopline.FolderStore
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Phase
import hopline.PoolOptions
import hopline.Secret
import hopline.SessionType
import hopline.Until
import java.math.BigDecimal
import java.nio.file.Path
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir

/** Limits on the price of a purchase, and the repetition of a read. */
class LimitTest {
    private suspend fun AgentClient.buy(quantity: Int? = null, most: BigDecimal? = null, expected: BigDecimal? = null, intent: String? = null) =
        createSession(
            SessionType.Dynamic, "dynamic-world", quantity = quantity?.toBigDecimal(), maxUnitPrice = most, expectedChargeUsd = expected, intent = intent,
        )

    private suspend fun AgentClient.price(): BigDecimal = walkProducts().items().first { it.productNo == "dynamic-world" }.price

    private suspend inline fun <reified T : HoplineException> fails(part: String, crossinline work: suspend () -> Unit): T {
        val failure = assertThrows<T> { runBlocking { work() } }
        assertTrue(part in failure.message!!, "expected `$part` in: ${failure.message}")
        return failure
    }

    @Test
    fun `a client buys no more than its cap a day, also after a restart`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "81", "--provisioning-ms", "0").use { sandbox ->
            val price = sandbox.client().use { it.price() }
            val cap = price * BigDecimal(2)
            sandbox.client(store = FolderStore(folder), dailyCapUsd = cap).use { agent ->
                agent.buy()
                val refused = fails<HoplineException.Refused>("of the daily cap of") { agent.buy(quantity = 2) }
                assertEquals(Effect.NONE, refused.effect)
                fails<HoplineException.Refused>("of the daily cap of") { agent.buy(expected = price * BigDecimal(2)) }
            }
            // A client without a cap leaves what was spent to others.
            sandbox.client(store = FolderStore(folder)).use { uncapped ->
                assertTrue(uncapped.resumeAll().isEmpty())
                sandbox.client(store = FolderStore(folder), dailyCapUsd = cap).use { agent ->
                    assertEquals(0, agent.buy().estimatedChargeUsd!!.compareTo(price))
                    fails<HoplineException.Refused>("of the daily cap of") { agent.buy() }
                }
            }
            sandbox.client(store = FolderStore(folder), dailyCapUsd = cap).use { agent ->
                fails<HoplineException.Refused>("of the daily cap of") { agent.buy(intent = "job-17") }
            }
            assertEquals(2 to 2, sandbox.counts())
        }
    }

    @Test
    fun `purchases at once stay under one cap, in memory too`(): Unit = runBlocking {
        Sandbox("--seed", "82", "--provisioning-ms", "0").use { sandbox ->
            val price = sandbox.client().use { it.price() }
            val (store, cap) = SharedStore() to price * BigDecimal(3)
            sandbox.client(store = store.client(), dailyCapUsd = cap).use { agent ->
                val ended = (1..8).map { n -> async { runCatching { agent.buy(intent = "job-$n") } } }.awaitAll()
                assertEquals(3, ended.count { it.isSuccess })
                assertTrue(ended.filter { it.isFailure }.all { (it.exceptionOrNull() as HoplineException.Refused).advice == Advice.RAISE_BUDGET })
            }
            sandbox.client(store = store.client(), dailyCapUsd = cap).use { agent -> fails<HoplineException.Refused>("of the daily cap of") { agent.buy() } }
            assertEquals(3 to 3, sandbox.counts())
        }
    }

    @Test
    fun `nothing is bought above the highest price, and the price is told`(): Unit = runBlocking {
        Sandbox("--seed", "83", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(OkHttpTransport()).use { agent ->
                val events = CopyOnWriteArrayList<Event>()
                val told = launch { agent.events.collect { events += it } }
                yield()
                val price = agent.price()
                val refused = fails<HoplineException.Refused>("createSession") { agent.buy(most = price - BigDecimal("0.01")) }
                assertEquals(Effect.NONE to (0 to 0), refused.effect to sandbox.counts())
                agent.buy(most = price)
                val open = agent.openSession(SessionType.Dynamic, "dynamic-world", maxUnitPrice = price, expectedChargeUsd = price)
                assertEquals(Phase.READY to (2 to 2), open.phase to sandbox.counts())
                agent.close()
                told.join()
                assertTrue(events.any { it.event == EventName.PRICED && it.unitPrice?.compareTo(price) == 0 }, "$events")
            }
        }
    }

    @Test
    fun `an account that is known not to be ready buys nothing`(): Unit = runBlocking {
        Sandbox("--seed", "84").use { sandbox ->
            sandbox.client(backendReady = false).use { agent ->
                assertEquals(Effect.NONE, fails<HoplineException>("createSession") { agent.buy() }.effect)
            }
            assertEquals(0 to 0, sandbox.counts())
        }
    }

    @Test
    fun `a renewal under a cap says what it is to cost`(): Unit = runBlocking {
        Sandbox("--seed", "85", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(dailyCapUsd = BigDecimal(1000)).use { agent ->
                val bought = agent.openSession(SessionType.Static, "static-us", duration = 1, expectedChargeUsd = BigDecimal.TEN)
                fails<HoplineException.Invalid>("expectedChargeUsd") { bought.renew(duration = 1) }
                bought.renew(duration = 1, expectedChargeUsd = BigDecimal("5.50"))
                fails<HoplineException.Refused>("of the daily cap of") { bought.renew(duration = 1, expectedChargeUsd = BigDecimal(10_000)) }
            }
            assertEquals(1 to 2, sandbox.counts())
        }
    }

    @Test
    fun `a balance is watched until it has grown`(): Unit = runBlocking {
        Sandbox("--seed", "86", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val events = CopyOnWriteArrayList<Event>()
                val told = launch { agent.events.collect { events += it } }
                yield()
                val grown = Until(at = "/balance", atLeast = agent.balance() + BigDecimal("12.50"))
                val order = agent.createRecharge(amountUsd = BigDecimal("12.50"), intent = "top-up")
                assertEquals(Phase.PENDING, agent.getBalance(until = grown, deadline = 200.milliseconds).phase)
                sandbox.control("pay", """{"order_id":"${order.orderId}"}""")
                assertEquals(Phase.READY, agent.getBalance(until = grown, deadline = 30.seconds).phase)
                assertNull(agent.getBalance().phase)
                // Any read can be watched, for words too.
                val session = agent.buy()
                val read = agent.getSession(session.sessionId, until = Until("/status", listOf("active")), deadline = 30.seconds)
                assertEquals(Phase.READY to "active", read.phase to read.status.word)
                agent.close()
                told.join()
                assertTrue(events.any { it.event == EventName.WATCHED && it.value?.toBigDecimalOrNull() != null }, "$events")
            }
        }
    }

    @Test
    fun `conditions and caps that can't be are refused before anything is sent`(): Unit = runBlocking {
        val nobody = Scripted { error("nothing was to be sent") }
        val url = "https://api.example/v1"
        fails<HoplineException.Invalid>("dailyCapUsd") { AgentClient(Secret("k"), url, nobody, dailyCapUsd = BigDecimal(-1)) }
        AgentClient(Secret("k"), url, nobody).use { agent ->
            fails<HoplineException.Invalid>("until") { agent.getBalance(until = Until("balance", atLeast = BigDecimal.ONE)) }
            fails<HoplineException.Invalid>("until") { agent.getBalance(until = Until("/balance")) }
            fails<HoplineException.Invalid>("maxUnitPrice") { agent.buy(most = BigDecimal(-1)) }
            fails<HoplineException.Invalid>("expectedChargeUsd") { agent.buy(expected = BigDecimal(-1)) }
        }
        assertTrue(nobody.sent.isEmpty())
        AgentClient(Secret("k"), url, JavaHttpTransport(), dailyCapUsd = BigDecimal.ZERO).close()
    }

    @Test
    fun `no limit is switched off by a number that is none`(): Unit = runBlocking {
        val nobody = Scripted { error("nothing was to be sent") }
        val url = "https://api.example/v1"
        val (less, never) = BigDecimal(-1) to (-1).seconds
        val options =
            listOf(
                Options(maxInFlight = -1), Options(maxInFlight = 0), Options(maxBody = -1), Options(attempts = -1), Options(attempts = 0), Options(window = never),
                Options(timeout = never), Options(backoff = never), Options(throttledBackoff = never), Options(maxBackoff = never), Options(conflict = never),
            )
        for (given in options) assertNotNull(fails<HoplineException.Invalid>("client: ") { AgentClient(Secret("k"), url, nobody, options = given) }.field, "$given")
        val shop = PoolOptions(2, SessionType.Dynamic, "p", dailyCapUsd = BigDecimal.TEN)
        val pools =
            listOf(
                shop.copy(size = -1), shop.copy(size = 0), shop.copy(dailyCapUsd = less), shop.copy(maxUnitPrice = less), shop.copy(expectedChargeUsd = less),
                shop.copy(keepReady = -1), shop.copy(keepReady = 3), shop.copy(maxWaiters = -1), shop.copy(leasesPerSession = -1),
                shop.copy(rotateAfterUses = -1), shop.copy(rotateAfter = never), shop.copy(idleRelease = never), shop.copy(maxLease = never), shop.copy(quantity = less),
            )
        AgentClient(Secret("k"), url, nobody).use { agent ->
            for (given in pools) assertNotNull(fails<HoplineException.Invalid>("openPool: ") { agent.openPool("shop", given) }.field, "$given")
            val pool = agent.openPool("shop", shop)
            val calls: List<suspend () -> Any?> =
                listOf(
                    { agent.getBalance(timeout = never) }, { agent.getBalance(until = Until("/x", listOf("y")), deadline = never) }, { agent.resumeAll(deadline = never) },
                    { agent.openSession(SessionType.Dynamic, "p", deadline = never) }, { agent.walkProducts(maxPages = -1).items().toList() },
                    { agent.walkProducts(maxPages = 0).items().toList() }, { pool.withLease(timeout = never) { } }, { pool.waitReady(-1) }, { pool.waitReady(timeout = never) },
                    { pool.drain(never) },
                )
            for ((number, call) in calls.withIndex()) assertNotNull(fails<HoplineException.Invalid>("") { call() }.field, "call $number")
        }
        assertTrue(nobody.sent.isEmpty(), "${nobody.sent}")
    }
}
