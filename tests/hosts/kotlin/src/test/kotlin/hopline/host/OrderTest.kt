package hopline.host

import hopline.Advice
import hopline.Effect
import hopline.EventName
import hopline.FolderStore
import hopline.RecordKind
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.OrderReply
import hopline.OrderUnit
import hopline.Phase
import hopline.StaticOrderStatus
import hopline.Transport
import hopline.needsProjectId
import java.math.BigDecimal
import java.nio.file.Files
import java.nio.file.Path
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** Static orders: placed once, watched, in doubt, resumed, given up. */
class OrderTest {
    private inline fun <reified T : HoplineException> fails(crossinline call: suspend () -> Any): T =
        assertThrows(T::class.java) { runBlocking { call() } }

    @ParameterizedTest
    @MethodSource("transports")
    fun `an order lives from its placing to its end, for two charges`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "81", "--provisioning-ms", "300").use { sandbox ->
            sandbox.reseller(transport).use { reseller ->
                val events = async { reseller.events.toList() }
                yield()
                val user = reseller.funded()
                val offered = reseller.queryProducts(proxyType = listOf(103)).items
                val product = offered.first { it.productId == "static-us" }
                assertEquals(OrderUnit.Month, product.unit)
                assertTrue(!needsProjectId(product) && offered.any(::needsProjectId))

                val placed = reseller.place(user, intent = "order-1")
                assertEquals(Triple(Phase.READY, StaticOrderStatus.Active, placed.orderNo), Triple(placed.phase, placed.order.status, placed.order.orderNo))
                assertEquals(placed.orderNo, reseller.saved().single().orderNo)
                val instance = instances(placed).single()
                assertTrue(instance.word("exit_ip") in visit(sandbox.targetUrl.replace("127.0.0.1", "localhost"), proxy(instance)).second)

                reseller.renewStaticOrder(duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE, orderNo = placed.orderNo)
                val renewed = instances(reseller.waitOrder(placed.orderNo)).single()
                assertTrue(renewed.word("expires_at") > instance.word("expires_at"), "$renewed")
                reseller.cancelStaticOrder(placed.orderNo)
                val ended = reseller.waitOrder(placed.orderNo, ends = listOf("cancelled"), deadline = 10.seconds)
                assertEquals(Phase.ENDED to "cancelled", ended.phase to ended.order.status?.word)
                val spent = reseller.walkConsumption(orderNo = placed.orderNo, pageSize = 1).items().toList().map { it.json.members().word("type") }
                assertEquals(listOf("purchase", "renewal"), spent.sorted())
                assertEquals(listOf(placed.orderNo), sandbox.purchases())
                reseller.close()
                val told = events.await()
                assertEquals(listOf(placed.orderNo), told.filter { it.event == EventName.ORDERED }.map { it.orderNo })
                val statuses = told.filter { it.event == EventName.ORDER_STATUS }.map { it.status to it.phase }
                assertTrue(statuses.containsAll(listOf("active" to Phase.READY, "cancelled" to Phase.ENDED)), "$told")
            }
        }
    }

    @Test
    fun `an order whose answer was lost is looked up, settled and never placed again`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "82", "--provisioning-ms", "0").use { sandbox ->
            val record = sandbox.reseller(store = FolderStore(folder), options = Options(attempts = 5)).use { reseller ->
                val user = reseller.funded()
                sandbox.fault("create_static_order", """{"kind":"drop_after"}""")
                val doubt = fails<HoplineException.InDoubt> { reseller.place(user, intent = "order-1") }
                assertEquals(Effect.UNKNOWN to Advice.RECONCILE, doubt.effect to doubt.advice)
                doubt.record!!
            }
            // As another program would, later.
            sandbox.reseller(store = FolderStore(folder)).use { reseller ->
                assertEquals(listOf(record to RecordKind.IN_DOUBT_FOR_GOOD), reseller.saved().map { it.record to it.holds })
                val found = reseller.reconcile(record)
                val candidate = found.candidates.single()
                assertEquals(Triple("create_static_order", true, "list_static_orders"), Triple(found.operation, found.complete, candidate.read))
                assertTrue("userId" in candidate.matched, "$found")
                val number = candidate.item.json.members().word("order_no")
                val empty = fails<HoplineException.Invalid> { reseller.settle(record, happened = true, became = "") }
                assertTrue("settle: `became` must not be empty" in empty.message!!, empty.message)
                assertTrue(fails<HoplineException.Invalid> { reseller.settle(record, happened = false, became = number) }.field == "became")
                assertTrue(reseller.settle(record, happened = true, became = number))
                assertTrue("has changed since" in fails<HoplineException.Refused> { reseller.settle(record, happened = true) }.message!!)
                val placed = reseller.place(reseller.listSubUsers().items.single().id!!, intent = "order-1")
                assertEquals(number to Phase.READY, placed.orderNo to placed.phase)
            }
            assertEquals(1 to 1, sandbox.times("create_static_order") to sandbox.purchases().size)
        }
    }

    @Test
    fun `an order that never arrived has no candidate and may be placed anew`(): Unit = runBlocking {
        Sandbox("--seed", "83", "--provisioning-ms", "0").use { sandbox ->
            sandbox.reseller().use { reseller ->
                val user = reseller.funded()
                sandbox.fault("create_static_order", """{"kind":"drop_before"}""")
                val record = fails<HoplineException.InDoubt> { reseller.place(user, intent = "order-1") }.record!!
                assertEquals(0, reseller.reconcile(record).candidates.size)
                assertTrue(reseller.settle(record, happened = false, early = true))
                assertEquals(Phase.READY, reseller.place(user, intent = "order-1").phase)
                val misuse = fails<HoplineException.Misuse> { reseller.reconcile("none") }
                assertTrue("not the name of a record" in misuse.message!!, misuse.message)
            }
            assertEquals(1, sandbox.purchases().size)
        }
    }

    @Test
    fun `no write is repeated by itself`(): Unit = runBlocking {
        Sandbox("--seed", "84").use { sandbox ->
            sandbox.reseller(options = Options(attempts = 5)).use { reseller ->
                val user = reseller.funded()
                for (fault in listOf("""{"kind":"drop_after"}""", """{"kind":"truncate"}""", """{"kind":"html","status":502,"after":true}""")) {
                    sandbox.fault("adjust_sub_user_balance", fault)
                    val doubt = fails<HoplineException.InDoubt> { reseller.adjustSubUserBalance(user, BigDecimal.ONE, "again: $fault") }
                    assertTrue(reseller.reconcile(doubt.record!!).candidates.any { "remark" in it.matched }, fault)
                }
            }
            assertEquals(4, sandbox.times("adjust_sub_user_balance"))
        }
    }

    @Test
    fun `an order outlives the coroutine that waits for it, and its client`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "85", "--provisioning-ms", "1500").use { sandbox ->
            val user = sandbox.reseller().use { it.funded() }
            sandbox.reseller(store = FolderStore(folder)).use { reseller ->
                val ordered = async { reseller.events.first { it.event == EventName.ORDERED } }
                yield()
                val placing = async { reseller.place(user, intent = "order-1") }
                ordered.await()
                placing.cancel()
                assertThrows(CancellationException::class.java) { runBlocking { placing.await() } }
                assertEquals(listOf(ordered.await().orderNo), reseller.saved().map { it.orderNo })
            }
            sandbox.reseller(store = FolderStore(folder)).use { reseller ->
                val placed = reseller.place(user, intent = "order-1")
                assertEquals(Phase.READY to sandbox.purchases(), placed.phase to listOf(placed.orderNo))
                assertTrue(reseller.forget(reseller.saved().single().record))
            }
        }
    }

    @Test
    fun `a deadline ends the waiting and not the order`(): Unit = runBlocking {
        Sandbox("--seed", "86", "--provisioning-ms", "60000").use { sandbox ->
            sandbox.reseller().use { reseller ->
                val placed = reseller.place(reseller.funded(), deadline = 200.milliseconds)
                assertEquals(Phase.PENDING to StaticOrderStatus.Processing, placed.phase to placed.order.status)
                sandbox.control("order", """{"order_no":"${placed.orderNo}","outcome":"failed"}""")
                assertEquals(Phase.ENDED, reseller.waitOrder(placed.orderNo, ends = listOf("failed"), deadline = 5.seconds).phase)
                assertEquals(Phase.UNKNOWN, reseller.waitOrder(placed.orderNo, deadline = Duration.ZERO).phase)
            }
        }
    }

    @Test
    fun `a program that is killed while it waits leaves its order to the next`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "87", "--provisioning-ms", "60000").use { sandbox ->
            val user = sandbox.reseller().use { it.funded() }
            val program = Placer.start(sandbox, folder, user)
            val number = generateSequence { program.inputReader().readLine() }.first { it.startsWith("ordered ") }.removePrefix("ordered ")
            // Its number is told before its record is on the disk.
            withTimeout(20.seconds) { while (kept(folder, listOf("names")).none { number in it }) delay(10) }
            program.destroyForcibly().waitFor()
            sandbox.control("order", """{"order_no":"$number","outcome":"active"}""")
            sandbox.reseller(store = FolderStore(folder)).use { reseller ->
                assertEquals(listOf(RecordKind.ORDER to number), reseller.saved().map { it.holds to it.orderNo })
                assertTrue(reseller.resumeAll().isEmpty(), "who starts its intent asks for it")
                val resumed = reseller.resumeIntent("order-1") as OrderReply
                assertEquals(number to Phase.READY, resumed.orderNo to resumed.phase)
            }
            assertEquals(listOf(number), sandbox.purchases())
        }
    }

    @Test
    fun `a program that is killed before its order was answered leaves a doubt that can be looked up`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "88", "--provisioning-ms", "0").use { sandbox ->
            val user = sandbox.reseller().use { it.funded() }
            sandbox.fault("create_static_order", """{"kind":"delay","ms":60000}""")
            val program = Placer.start(sandbox, folder, user)
            while (sandbox.purchases().isEmpty()) Thread.sleep(20)
            program.destroyForcibly().waitFor()
            sandbox.reseller(store = FolderStore(folder)).use { reseller ->
                val saved = reseller.saved().single()
                assertEquals(RecordKind.IN_DOUBT_FOR_GOOD to "order-1", saved.holds to saved.intent)
                fails<HoplineException.InDoubt> { reseller.place(user, intent = "order-1") }
                val candidate = reseller.reconcile(saved.record).candidates.single()
                assertEquals(sandbox.purchases(), listOf(candidate.item.json.jsonObject.word("order_no")))
                assertTrue(reseller.settle(saved.record, happened = true))
            }
            assertEquals(1, sandbox.times("create_static_order"))
        }
    }

    companion object {
        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}
