package hopline.host

import hopline.EventName
import hopline.OrderReply
import hopline.OrderUnit
import hopline.Phase
import hopline.ResellerClient
import hopline.Secret
import hopline.StaticProduct
import hopline.needsProjectId
import hopline.parseIpRange
import java.math.BigDecimal
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.yield
import kotlinx.serialization.json.JsonArray

private val FUNDS = BigDecimal(40)

/** A reseller's order. */
object Resale {
    suspend fun tell(sandbox: Sandbox, reseller: ResellerClient): Unit = coroutineScope {
        println("\nhopline for kotlin: a reseller's order\n")
        val own = reseller.getCurrentBalance().raw.json.members().word("balance").toBigDecimal()
        row("login", "once, by itself; the reseller has ${usd(own)} USD")
        val telling = launch {
            reseller.events.collect { event ->
                if (event.event == EventName.ORDERED) row("ordered", event.orderNo.orEmpty())
                if (event.event == EventName.ORDER_STATUS) row(event.status.orEmpty(), event.orderNo.orEmpty())
            }
        }
        yield()

        val user = reseller.createUser("shop-17", Secret("a-long-password"), remark = "the demo", intent = "demo-user").id!!
        val steps = Steps { reseller.walkSubUsers().items().first { it.id == user }.balance!! }
        row("sub-user", "shop-17, number $user, with ${usd(steps.begin())} USD")
        steps.step("fund") { reseller.adjustSubUserBalance(user, FUNDS, "for the demo", intent = "demo-funds") }
        row("fund", "${usd(FUNDS)} USD go from the reseller to shop-17")

        val product = choose(reseller)
        val price = product.price!!
        val placed =
            steps.step("order 2") {
                reseller.placeOrder(
                    product.productId!!, user, unitPrice = price, totalAmount = price * BigDecimal(2), ipCount = BigDecimal(2), cycleTimes = BigDecimal.ONE, duration = BigDecimal.ONE,
                    unit = OrderUnit.Month, intent = "demo-order",
                )
            }
        check(placed.phase == Phase.READY)
        val proxies = instances(placed)
        row("proxies", "${proxies.size}, with a username and a password each; OkHttp speaks them")
        // By a name that only the proxy is to look up.
        val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
        val seen = steps.step("fetch") { proxies.map { visit(site, proxy(it)) } }
        for (page in seen) row("fetch", "the site answers ${page.first} to exit ${exit(page)}")

        val renewed =
            steps.step("renew") {
                reseller.renewStaticOrder(duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE, orderNo = placed.orderNo, intent = "demo-renewal")
                reseller.waitOrder(placed.orderNo)
            }
        row("renew", "from ${end(placed)} to ${end(renewed)}")
        steps.step("cancel") { reseller.cancelStaticOrder(placed.orderNo, intent = "demo-end") }
        check(visit(site, proxy(proxies[0])).first == 407) { "the proxy of a cancelled order was to refuse" }
        row("cancel", "the order is over, and its proxies refuse their passwords")

        for (record in reseller.walkConsumption(orderNo = placed.orderNo, pageSize = 1).items().toList().map { it.json.members() }) {
            val amount = usd(record.word("amount").toBigDecimal())
            row("record", "${record.word("created_at").take(10)}  ${record.word("type").padEnd(9)}${amount.padStart(9)} USD of ${record.word("username")}")
        }
        telling.cancel()
        steps.print()
        check(end(placed) < end(renewed) && seen.map(::exit) == proxies.map { it.word("exit_ip") } && seen.all { it.first == 200 })
        checkBooks(sandbox, user, placed.orderNo, price * BigDecimal(2), own, steps.begin())
    }

    /** The cheapest product with stock that needs no project, and where its addresses are. */
    private suspend fun choose(reseller: ResellerClient): StaticProduct {
        val offered = reseller.queryProducts(proxyType = listOf(103)).items.filter { (it.stock ?: BigDecimal.ZERO) >= BigDecimal(2) }
        val product = offered.filterNot(::needsProjectId).minBy { it.price!! }
        row("product", "${product.productId}, ${product.stock} in stock, at ${usd(product.price!!)} USD a ${product.unit}, of ${offered.size}")
        for (found in reseller.listIpRanges(productNo = product.productId).items) {
            for (range in found.ipRanges.orEmpty().map { parseIpRange(it.ipRange.orEmpty()) }) {
                row("addresses", "${range.first} to ${range.last}, in ${found.cityName}, ${found.countryName}")
            }
        }
        return product
    }

    /** The told amounts must be those of the service's own books. */
    private fun checkBooks(sandbox: Sandbox, user: Long, orderNo: String, total: BigDecimal, own: BigDecimal, left: BigDecimal) {
        val backend = sandbox.backend()
        fun of(list: String) = (backend.getValue(list) as JsonArray).map { it.members() }.filter { it.word("user_id") == "$user" }
        val order = of("static_orders").single()
        check(order.word("order_no") == orderNo && order.word("status") == "cancelled" && order.word("traffic_bytes").toLong() > 0)
        val entries = of("entries").map { Triple(it.word("type"), it.maybe("order_no"), it.word("amount").toBigDecimal().stripTrailingZeros()) }
        val spent = total.negate().stripTrailingZeros()
        val told = listOf(Triple("adjustment", null, FUNDS.stripTrailingZeros()), Triple("purchase", orderNo, spent), Triple("renewal", orderNo, spent))
        check(entries == told) { "the service has other entries: $entries" }
        check(left.compareTo(FUNDS - total * BigDecimal(2)) == 0 && sandbox.times("login") == 1)
        check(sandbox.state().word("balance").toBigDecimal().compareTo(own - FUNDS) == 0)
        row("checked", "one login, one order, two charges, two exits; the service's own books say the same\n")
    }

    private fun end(order: OrderReply): String = instances(order).first().word("expires_at").take(10)
}
