package hopline.host

import hopline.Cheapest
import hopline.Event
import hopline.EventName
import hopline.FolderStore
import hopline.HoplineException
import hopline.Lease
import hopline.LeaseAdvice
import hopline.Level
import hopline.Pool
import hopline.PoolHoldReason
import hopline.PoolOptions
import hopline.PoolSlotState
import hopline.PoolStatus
import hopline.Protocol
import hopline.Seen
import hopline.SessionType
import hopline.level
import java.io.IOException
import java.math.BigDecimal
import java.nio.file.Path
import java.time.Instant
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.JsonArray
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource

/** Pools over real sockets: what is lent, that it is given back whatever happens, and that work goes on while nobody calls. */
class PoolTest {
    private fun shop(size: Int, keepReady: Int? = null, cap: BigDecimal? = BigDecimal(10_000), leases: Int? = null) =
        PoolOptions(
            size, SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, dailyCapUsd = cap, keepReady = keepReady, leasesPerSession = leases,
        )

    private fun living(sandbox: Sandbox): Int =
        (sandbox.state().getValue("sessions") as JsonArray).count { it.members().word("status") in setOf("creating", "active") }

    private fun exit(sandbox: Sandbox, session: String): String =
        (sandbox.state().getValue("sessions") as JsonArray).map { it.members() }.single { it.word("session_id") == session }.word("exit")

    private fun sum(status: PoolStatus): Int = status.run { ready + leased + creating + changing + resting + inDoubt + empty + withOthers + freeInStore + unknown }

    private suspend fun until(what: String, holds: suspend () -> Boolean) {
        runCatching { withTimeout(30.seconds) { while (!holds()) delay(20) } }.onFailure { throw AssertionError("not so: $what", it) }
    }

    @Test
    fun `a pool takes the cheapest product for each purchase, and the next one where that is sold out`(): Unit = runBlocking {
        Sandbox("--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val choice = Cheapest(SessionType.Dynamic, maxUnitPrice = BigDecimal(5))
                val pool = agent.openPool("shop", PoolOptions(1, product = choice, dailyCapUsd = BigDecimal(100)))
                sandbox.fault("create_session", """{"kind":"error","code":"PRODUCT_OUT_OF_STOCK","stored":true}""")
                pool.withLease { lease ->
                    val bought = (sandbox.state().getValue("sessions") as JsonArray).map { it.members() }
                    assertEquals(listOf("dynamic-us" to lease.sessionId), bought.map { it.word("product_no") to it.word("session_id") })
                }
                pool.close()
            }
        }
    }

    @Test
    fun `what is lent is used, observed and rotated, and a drained pool leaves no session`(): Unit = runBlocking {
        Sandbox("--seed", "121", "--provisioning-ms", "0").use { sandbox ->
            val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
            sandbox.client().use { agent ->
                val pool = agent.openPool("shop", shop(2))
                lateinit var first: Lease
                pool.withLease(target = "shop.example") { lease ->
                    first = lease
                    val (status, seen) = visit(site, lease.proxy)
                    assertEquals(200 to exit(sandbox, lease.sessionId), status to exit(status to seen))
                    assertEquals(LeaseAdvice.KEEP, lease.observe(status))
                    assertTrue(lease.valid && lease.target == "shop.example" && lease.proxy.password!!.reveal() !in "$lease")
                    lease.data["cookie"] = "a"
                    sandbox.control("target", """{"block":"${exit(sandbox, lease.sessionId)}"}""")
                    assertEquals(LeaseAdvice.GIVE_BACK, lease.observe(visit(site, lease.proxy).first))
                    assertTrue(lease.valid && sandbox.times("rotate_session") == 0, "an exit never changes under a lease")
                }
                assertFalse(first.valid)
                assertEquals(LeaseAdvice.GIVE_BACK, first.observe(200), "it was given back")
                until("it has rotated") { sandbox.times("rotate_session") == 1 && pool.status().ready == 1 }
                pool.withLease(target = "shop.example") { one ->
                    pool.withLease(target = "shop.example") { other ->
                        val again = listOf(one, other).single { it.sessionId == first.sessionId }
                        assertTrue(again.generation > first.generation && again.data.isEmpty())
                        assertEquals(200, visit(site, again.proxy).first)
                        val status = pool.status()
                        assertEquals(2 to 2, status.leased to sum(status))
                        assertEquals(setOf(PoolSlotState.LEASED), status.slots.map { it.state }.toSet())
                        val none = assertThrows(HoplineException.Unavailable::class.java) {
                            runBlocking { pool.withLease(timeout = 200.milliseconds) { error("there is none") } }
                        }
                        assertEquals("acquire", none.operation)
                    }
                }
                pool.pause()
                assertEquals(PoolHoldReason.PAUSED, pool.status().hold?.reason)
                pool.resume()
                assertEquals(null, pool.status().hold)
                pool.drain()
                assertThrows(HoplineException.Misuse::class.java) { runBlocking { pool.withLease { } } }
                assertEquals(0 to 2, living(sandbox) to sandbox.counts().second)
            }
        }
    }

    @Test
    fun `opening a pool buys nothing, and what can't be is refused by its field`(): Unit = runBlocking {
        Sandbox("--seed", "122").use { sandbox ->
            sandbox.client().use { agent ->
                val pool = agent.openPool("shop", shop(50))
                delay(2000)
                assertEquals(0 to 50, sandbox.counts().second to sum(pool.status()))
                fun refused(name: String, options: PoolOptions) =
                    assertThrows(HoplineException.Invalid::class.java) { runBlocking { agent.openPool(name, options) } }.field
                assertEquals("dailyCapUsd" to "name", refused("other", shop(1, cap = null)) to refused("shop", shop(50)))
                pool.close()
                pool.close()
            }
        }
    }

    @Test
    fun `a program that never calls finds its sessions ready, and what is bought and sent is told`(): Unit = runBlocking {
        Sandbox("--seed", "123", "--provisioning-ms", "0-300").use { sandbox ->
            val events = ArrayList<Event>()
            sandbox.client().use { agent ->
                // At once, so that it hears of all.
                val listening = launch(Dispatchers.Default, CoroutineStart.UNDISPATCHED) { agent.events.toList(events) }
                val pool = agent.openPool("shop", shop(4, keepReady = 4))
                until("four are bought") { living(sandbox) == 4 }
                assertEquals(4, pool.waitReady(4, 20.seconds).ready)
                agent.shutdown()
                listening.join()
            }
            assertEquals(4, events.count { it.event == EventName.ANSWERED && it.method == "POST" && it.httpStatus == 202 }, "$events")
            assertTrue(events.filter { it.event == EventName.ACCEPTED }.let { all -> all.size == 4 && all.all { it.level == Level.INFO } })
            assertTrue(events.filter { it.event == EventName.SENT }.all { it.level == Level.DEBUG && it.path!!.startsWith("/v1/") })
            assertTrue(events.none { sandbox.apiKey in "$it" } && events.filter { it.event == EventName.ANSWERED }.all { it.duration!!.isPositive() })
        }
    }

    @Test
    fun `a lease goes back when its block throws, is cancelled, or is cancelled before it began`(): Unit = runBlocking {
        Sandbox("--seed", "124", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val pool = agent.openPool("shop", shop(1))
                assertThrows(IOException::class.java) { runBlocking { pool.withLease { throw IOException("broken") } } }
                val entered = CompletableDeferred<Unit>()
                val working = launch(Dispatchers.Default) { pool.withLease { entered.complete(Unit).let { awaitCancellation() } } }
                entered.await()
                val waiting = launch(Dispatchers.Default) { pool.withLease { error("it was cancelled") } }
                until("it waits") { pool.status().waiting == 1 }
                waiting.cancelAndJoin()
                assertEquals(0 to 1, pool.status().let { it.waiting to it.leased })
                working.cancelAndJoin()
                assertEquals("again", pool.withLease(timeout = 5.seconds) { "again" })
                assertEquals(0 to 1, pool.status().leased to sandbox.counts().second)
            }
        }
    }

    @Test
    fun `ten thousand cancelled leases under load lose none`(): Unit = runBlocking {
        Sandbox("--seed", "125", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client().use { agent ->
                val pool = agent.openPool("shop", shop(4, keepReady = 4))
                pool.waitReady(4, 20.seconds)
                val entered = AtomicInteger()
                val random = Random(125)
                coroutineScope {
                    repeat(100) {
                        val wave =
                            List(100) { number ->
                                val (before, inside) = random.nextLong(8) to random.nextLong(4)
                                val job = launch(Dispatchers.Default) { pool.withLease { entered.incrementAndGet().let { delay(inside) } } }
                                // One of each hundred is not cancelled.
                                if (number == 0) job else launch(Dispatchers.Default) { delay(before).let { job.cancelAndJoin() } }
                            }
                        wave.joinAll()
                    }
                }
                assertTrue(entered.get() in 100..9_999, "one of each hundred had one, and some were cancelled before: ${entered.get()}")
                val status = pool.status()
                assertEquals(listOf(0, 0, 4), listOf(status.leased, status.waiting, sum(status)), "$status")
                // All of them can be had at once, and are the ones that were bought.
                val sessions = all(pool, 4)
                assertEquals(4 to 4, sessions.size to sandbox.counts().second)
            }
        }
    }

    /** As many leases at once, and whose. */
    private suspend fun all(pool: Pool, count: Int): Set<String> = coroutineScope {
        val (inside, done) = AtomicInteger() to CompletableDeferred<Unit>()
        List(count) {
            async(Dispatchers.Default) {
                pool.withLease(timeout = 20.seconds) { lease ->
                    if (inside.incrementAndGet() == count) done.complete(Unit)
                    withTimeout(20.seconds) { done.await() }
                    lease.sessionId
                }
            }
        }.awaitAll().toSet()
    }

    @Test
    fun `a closed pool and a closed client release their sessions, which the next client lends`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "126", "--provisioning-ms", "0").use { sandbox ->
            suspend fun lent(close: suspend (Pool) -> Unit): Set<String> =
                sandbox.client(store = FolderStore(folder)).use { agent -> agent.openPool("shop", shop(2)).let { pool -> all(pool, 2).also { close(pool) } } }
            val bought = lent { it.close() }
            assertEquals(bought, lent { })
            assertEquals(bought, lent { it.drain() })
            assertEquals(0 to 2, living(sandbox) to sandbox.counts().second)
        }
    }

    @Test
    fun `two clients of a folder share the slots of a pool`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "127", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(store = FolderStore(folder)).use { one ->
                sandbox.client(store = FolderStore(folder)).use { other ->
                    val pools = listOf(one, other).map { it.openPool("shop", shop(3)) }
                    val lent = pools[0].withLease { first -> pools[1].withLease { second -> setOf(first.sessionId, second.sessionId) } }
                    assertEquals(2, lent.size)
                    assertTrue(living(sandbox) <= 3)
                    assertEquals(3, sum(pools[1].status(everywhere = true)))
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = [false, true])
    fun `draining everywhere ends what other clients lend, what they keep idle, and what is nobody's`(closes: Boolean, @TempDir folder: Path) {
        runBlocking(Dispatchers.Default) {
            Sandbox("--seed", "128", "--provisioning-ms", "0").use { sandbox ->
                sandbox.client(store = FolderStore(folder)).use { one ->
                    sandbox.client(store = FolderStore(folder)).use { other ->
                        // Four sessions are there, of which nobody has any.
                        other.openPool("shop", shop(4)).let { before -> all(before, 4).also { before.close() } }
                        // This client takes three of them: one is lent by the time that the pool is drained, and two are idle.
                        val here = one.openPool("shop", shop(4))
                        all(here, 3)
                        val gate = CompletableDeferred<Unit>()
                        val holder = launch { here.withLease(key = "a") { gate.await() } }
                        until("one is lent") { here.status().leased == 1 }

                        val there = other.joinPool("shop")
                        assertEquals(listOf("shop"), other.listPools().map { it.name })
                        there.drain(everywhere = true)
                        assertEquals(3, living(sandbox), "what was nobody's is over")
                        // The client hears of it when it closes the pool, or reads the pool's record: within a minute, and before it buys for
                        // whoever waits.
                        if (closes) {
                            val closing = launch { here.close() }
                            gate.complete(Unit)
                            closing.join()
                        } else {
                            val others = List(2) { launch { here.withLease { gate.await() } } }
                            until("all are lent") { here.status().leased == 3 }
                            // A read of the record is good for purchases for a second.
                            delay(1500)
                            assertThrows(HoplineException.Cancelled::class.java) { runBlocking { here.withLease { } } }
                            gate.complete(Unit)
                            others.joinAll()
                        }
                        holder.join()
                        until("no session lives") { living(sandbox) == 0 }
                        for (pool in listOf(here, there)) {
                            until("it is closed") { runCatching { pool.status() }.exceptionOrNull() is HoplineException.Misuse }
                        }
                        assertEquals(4, sandbox.counts().second)
                    }
                }
            }
        }
    }

    @Test
    fun `data outlive their client, a discarded session is not lent again, and a lease that is over is of no use`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "129", "--provisioning-ms", "0").use { sandbox ->
            suspend fun <T> opened(use: suspend (Pool) -> T): T =
                sandbox.client(store = FolderStore(folder)).use { agent -> use(agent.openPool("data", shop(2))) }
            val lasting = mapOf("cookies" to mapOf("a" to listOf("1")), "visits" to 2L, "mixed" to listOf(true, -7L, BigDecimal("0.5"), null))
            val first = opened { pool ->
                val first = pool.withLease { lease ->
                    assertTrue(lease.data.isEmpty())
                    lease.data.putAll(lasting + mapOf("client" to Any(), "half" to "\ud800", "endless" to Double.POSITIVE_INFINITY))
                    lease
                }
                pool.withLease { assertEquals(first.sessionId to 6, it.sessionId to it.data.size) }
                first
            }
            for (use in listOf<(Lease) -> Unit>({ it.proxy }, { it.data }, { it.discard() })) {
                val over = assertThrows(HoplineException.Misuse::class.java) { use(first) }
                assertTrue("given back" in over.message!!)
            }
            assertEquals(null, first.retryAt)
            opened { pool ->
                pool.withLease { lease ->
                    assertEquals(first.sessionId to lasting, lease.sessionId to lease.data)
                    lease.data["long"] = "x".repeat(5000)
                }
                pool.withLease { assertTrue("long" in it.data, "what is too long stays here") }
            }
            opened { pool ->
                pool.withLease { lease ->
                    assertEquals(first.sessionId to lasting, lease.sessionId to lease.data)
                    lease.discard()
                }
                until("it is over") { pool.status().slots.none { it.sessionId == first.sessionId } }
                val blocked = pool.withLease(target = "shop.example") { lease ->
                    assertEquals(null, lease.retryAt)
                    assertEquals(LeaseAdvice.GIVE_BACK, lease.observe(Seen.Block))
                    assertTrue(lease.retryAt!! > Instant.now())
                    lease
                }
                val (other, retryAt) = blocked.sessionId to blocked.retryAt
                assertEquals(LeaseAdvice.GIVE_BACK to retryAt, blocked.observe(200) to blocked.retryAt, "it stays after the lease")
                assertTrue(other != first.sessionId)
                assertTrue(pool.withLease(avoid = other) { it.sessionId } !in setOf(other, first.sessionId))
            }
        }
    }

    @Test
    fun `data that another client has changed meanwhile are found by the first`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "130", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(store = FolderStore(folder)).use { one ->
                sandbox.client(store = FolderStore(folder)).use { other ->
                    val options = PoolOptions(
                        1, SessionType.Dynamic, "dynamic-world", protocol = Protocol.Http, dailyCapUsd = BigDecimal(100), idleRelease = 0.seconds,
                    )
                    val pools = listOf(one, other).map { it.openPool("shop", options) }
                    val http = Any()
                    pools[0].withLease { it.data.putAll(mapOf("cookie" to "old", "client" to http)) }
                    pools[0].withLease { it.data["long"] = "x".repeat(5000) }
                    pools[1].withLease { lease -> assertEquals("old", lease.data.put("cookie", "new")) }
                    pools[0].withLease { lease -> assertEquals(mapOf("cookie" to "new", "client" to http), lease.data) }
                }
            }
        }
    }
}
