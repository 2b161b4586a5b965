package hopline.host

import hopline.HoplineException
import hopline.IpRange
import hopline.Method
import hopline.OrderUnit
import hopline.PagesEnd
import hopline.Phase
import hopline.Raw
import hopline.ResellerClient
import hopline.Secret
import hopline.StaticProduct
import hopline.SubUserStatus
import hopline.SubUserSwitch
import hopline.Until
import hopline.isShared
import hopline.needsProjectId
import hopline.parseIpRange
import java.math.BigDecimal
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** The operations of the reseller API over real HTTP: their types, spellings, lists and rules. */
class ResellerTest {
    private inline fun <reified T : HoplineException> fails(crossinline call: suspend () -> Any): T =
        assertThrows(T::class.java) { runBlocking { call() } }

    private fun reselling(seed: String, work: suspend (Sandbox, ResellerClient) -> Unit): Unit = runBlocking {
        Sandbox("--seed", seed, "--provisioning-ms", "0").use { sandbox -> sandbox.reseller().use { work(sandbox, it) } }
    }

    private fun word(raw: Raw, name: String): String = raw.json.members().word(name)

    @Test
    fun `answers in any spelling are read alike, and raw stays what was written`() = reselling("91") { sandbox, reseller ->
        for (spelling in listOf("{}", """{"message":"msg","code":"text","list":"list","product_type":"word"}""")) {
            sandbox.control("spelling", spelling)
            val offered = reseller.queryProducts(proxyType = listOf(103))
            val product = offered.items.first { it.productId == "static-shared-us" }
            assertTrue(isShared(product) && needsProjectId(product) && product.projectList!!.isNotEmpty(), "$product")
            assertEquals(OrderUnit.Month to "103", product.unit to product.proxyType)
            assertTrue("\"unit\":3" in offered.raw.text, "as the service wrote it")
            val range = reseller.listIpRanges(productNo = "static-us").items.single().ipRanges!!.first().ipRange!!
            assertTrue(parseIpRange(range).first != null, range)
            val refused = fails<HoplineException.Refused> { reseller.findDynamicOrder("none") }
            assertEquals("404", refused.code)
        }
    }

    @Test
    fun `a region that is not sold in is refused with those that are`() = reselling("92") { _, reseller ->
        val user = reseller.funded()
        val refused = fails<HoplineException.Refused> {
            reseller.createStaticOrder("static-us", user, BigDecimal.ZERO, BigDecimal.ZERO, BigDecimal.ONE, BigDecimal.ONE, BigDecimal.ONE, OrderUnit.Month, countryCode = "DE")
        }
        assertEquals("location_not_supported_for_product", refused.code)
        assertTrue((refused.details!!.json.members().getValue("supportedRegions") as JsonArray).isNotEmpty(), "$refused")
    }

    @Test
    fun `lists are walked from any position`() = reselling("93") { _, reseller ->
        val names = List(23) { "sub-user-%02d".format(it) }
        names.forEach { reseller.createUser(it, Secret("a-password")) }
        val walk = reseller.walkSubUsers(pageSize = 10)
        val first = walk.pages().first().items.map { it.username }
        val rest = reseller.walkSubUsers(pageSize = 10, position = walk.position).items().toList().map { it.username }
        assertEquals(10 to names, first.size to (first + rest).map { it!! }.sorted())
        val capped = reseller.walkSubUsers(pageSize = 5, maxPages = 2)
        assertEquals(10 to PagesEnd.PAGE_CAP, capped.items().toList().size to capped.end)
        for (other in listOf(reseller.walkStaticOrders(), reseller.walkDynamicOrders(), reseller.walkConsumption(pageSize = 1))) {
            other.items().toList()
            assertEquals(PagesEnd.SHORT_PAGE, other.end)
        }
        fails<HoplineException.Invalid> { reseller.walkStaticOrders(position = walk.position).items().toList() }
    }

    @Test
    fun `traffic is bought and used, and a sub-user is changed and deleted`() = reselling("94") { _, reseller ->
        val user = reseller.createUser("sub-user", Secret("a-password"), email = Secret("a@mail.example"), phone = "13800000000", balance = BigDecimal("40.50"))
        assertEquals("a@mail.example" to 0, user.email?.reveal() to user.balance?.compareTo(BigDecimal("40.50")))
        val id = user.id!!
        val order =
            reseller.createDynamicOrder(
                poolId = "dynamic-world", trafficAmount = BigDecimal("0.5"), userId = id, unitPrice = BigDecimal.ZERO, totalAmount = BigDecimal.ZERO,
            )
        val number = word(order.raw, "order_no")
        assertEquals(number, word(reseller.findDynamicOrder(number).raw, "order_no"))
        assertEquals("0.5", word(reseller.getRemainingFlow(id, "dynamic-world").raw, "remaining_gb"))
        assertTrue("exit_ip" in reseller.extractDynamicProxies("dynamic-world", BigDecimal(104)).raw.text)
        assertEquals("disabled", word(reseller.setSubUserStatus(id, SubUserSwitch.Disabled).raw, "status"))
        assertEquals("another-name", word(reseller.editSubUserAccount(id, username = "another-name").raw, "username"))
        reseller.deleteSubUser(id)
        val deleted = reseller.listSubUsers(includeDeleted = true).items.single()
        assertEquals("another-name" to SubUserStatus.Deleted, deleted.username to deleted.status)
    }

    @Test
    fun `a top-up is watched until the transfer is found`() = reselling("95") { sandbox, reseller ->
        val order = reseller.createUsdtOrder(JsonObject(mapOf("amount" to JsonPrimitive(25))))
        val asked = JsonObject(mapOf("order_no" to JsonPrimitive(word(order.raw, "order_no"))))
        val paid = Until("/status", listOf("paid"))
        assertEquals(Phase.PENDING, reseller.checkUsdtOrder(asked, until = paid, deadline = Duration.ZERO).phase)
        sandbox.control("pay", """{"order_id":${asked["order_no"]}}""")
        assertEquals(Phase.READY, reseller.checkUsdtOrder(asked, until = paid, deadline = 10.seconds).phase)
        assertTrue(reseller.request(Method.GET, "/usdt/orders").raw.text.isNotEmpty())
    }

    @Test
    fun `what breaks a rule is refused by its field before anything is sent`() = reselling("96") { sandbox, reseller ->
        val wrong =
            mapOf<String, suspend () -> Any>(
                "password" to { reseller.createUser("sub-user", Secret("short")) },
                "phone" to { reseller.createUser("sub-user", Secret("a-password"), phone = "123") },
                "startDate" to { reseller.listConsumption(startDate = "1.5.2025") },
                "orderNo" to { reseller.renewStaticOrder(duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE) },
                "username" to { reseller.editSubUserAccount(7) },
            )
        for ((field, call) in wrong) assertEquals(field, fails<HoplineException.Invalid> { call() }.field)
        assertEquals(0, sandbox.times("login"))
    }

    @Test
    fun `a range is read where it can be, and stays its text where it can't`() {
        assertEquals(IpRange("192.0.2.0/30", "192.0.2.0", "192.0.2.3"), parseIpRange("192.0.2.0/30"))
        assertEquals(IpRange("2001:db8::/127", "2001:db8::", "2001:db8::1"), parseIpRange("2001:db8::/127"))
        assertEquals(IpRange("any", null, null), parseIpRange("any"))
        assertThrows(HoplineException.Invalid::class.java) { parseIpRange("\uD800") }
    }

    @Test
    fun `a product is shared by its type or its projects`() {
        assertTrue(isShared(StaticProduct(productType = "2")) && isShared(StaticProduct(projectList = listOf(Raw("{\"id\":1}")))))
        assertTrue(!needsProjectId(StaticProduct(productType = "exclusive", projectList = emptyList())) && !isShared(StaticProduct()))
    }
}
