// Makes a sub-user with money of its own, orders a static proxy for it, reads it, renews it once and gives it back. Killed at any moment
// and started again, it makes nothing twice: the folder remembers.

import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.OrderReply
import hopline.OrderUnit
import hopline.Phase
import hopline.Protocol
import hopline.Proxy
import hopline.ResellerClient
import hopline.Secret
import hopline.needsProjectId
import java.math.BigDecimal
import java.nio.file.Path
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

val OVER = listOf("failed", "cancelled") // the statuses that end an order

fun main() = runBlocking {
    // HOPLINE_BACKEND_URL, HOPLINE_USERNAME and HOPLINE_PASSWORD, or ResellerClient(Secret(…), Secret(…), "https://host/api")
    ResellerClient(store = FolderStore(Path.of("hopline-records"))).use { reseller ->
        try {
            val user = reseller.createUser("shop-17", Secret("a long password"), balance = BigDecimal(50), intent = "user-17").id!!
            // What was begun goes on. Only where there is nothing, a product is chosen: prices and stock change.
            val placed = reseller.resumeIntent("order-17", ends = OVER) as OrderReply? ?: reseller.order(user)
            println("order ${placed.orderNo} is ${placed.phase}")

            if (placed.phase == Phase.READY) {
                // The contract does not document the items; these are the names that the sandbox uses.
                for (shown in placed.order.items.flatMap { it.json.jsonObject.getValue("instances").jsonArray }) {
                    fun member(name: String) = shown.jsonObject.getValue(name).jsonPrimitive.content
                    val (username, password) = Secret(member("username")) to Secret(member("password"))
                    val proxy = Proxy(member("ip"), member("http_port").toLong(), Protocol.Http, username, password)
                    println("a proxy at ${proxy.host}:${proxy.port}") // OkHttpClient.Builder().through(proxy)
                }

                val number = placed.orderNo
                reseller.renewStaticOrder(duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE, orderNo = number, intent = "renewal-17")
                reseller.walkConsumption(orderNo = number).items().collect { entry ->
                    println("${entry.json.jsonObject["type"]} ${entry.json.jsonObject["amount"]}")
                }
                reseller.cancelStaticOrder(number, intent = "cancel-17")
            }
        } catch (failure: HoplineException) {
            val record = failure.record
            if (failure.effect == Effect.UNKNOWN && record != null) {
                for (candidate in reseller.reconcile(record).candidates) { // what it may have become, passwords included
                    println("${candidate.read} agrees in ${candidate.matched} with ${candidate.item.text}")
                }
            }
            throw failure // its message is a sentence that says what to do next
        }
    }
}

suspend fun ResellerClient.order(user: Long): OrderReply {
    val offered = queryProducts(proxyType = listOf(103), standardCountryCode = "US").items
    val product = offered.first { it.stock?.signum() == 1 && !needsProjectId(it) }
    println("${product.productId} costs ${product.price} a ${product.unit}")
    return placeOrder(
        product.productId!!, user, unitPrice = BigDecimal.ZERO, totalAmount = BigDecimal.ZERO, // the service's own price
        ipCount = BigDecimal.ONE, duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE, intent = "order-17", ends = OVER,
    )
}
