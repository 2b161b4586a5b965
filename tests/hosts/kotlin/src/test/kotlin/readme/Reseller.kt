// Makes a sub-user with money, orders static proxies for it and renews them. Killed at any moment and started again, it makes
// nothing twice: the folder remembers.

import hopline.FolderStore
import hopline.HoplineException
import hopline.OrderUnit
import hopline.ResellerClient
import hopline.Secret
import hopline.needsProjectId
import java.math.BigDecimal
import java.nio.file.Path
import kotlinx.coroutines.flow.firstOrNull
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking

fun main() = runBlocking {
    // HOPLINE_BACKEND_URL, HOPLINE_USERNAME and HOPLINE_PASSWORD, or ResellerClient(Secret(…), Secret(…), "https://host/api")
    ResellerClient(store = FolderStore(Path.of("hopline-records"))).use { reseller ->
        try {
            val known = reseller.walkSubUsers(search = "shop-17").firstOrNull()
            val user = (known ?: reseller.createUser("shop-17", Secret("a long password"), intent = "user-17")).id!!
            reseller.adjustSubUserBalance(user, BigDecimal(50), remark = "for May", intent = "money-17")
            val offered = reseller.queryProducts(proxyType = listOf(103)).items.filter { it.stock?.signum() == 1 && !needsProjectId(it) }
            val product = offered.minBy { it.price!! }
            println("${product.productId} costs ${product.price} a ${product.unit}")
            val placed =
                reseller.placeOrder(
                    product.productId!!, user, unitPrice = BigDecimal.ZERO, totalAmount = BigDecimal.ZERO, // the service's own price
                    ipCount = 2, cycleTimes = 1, duration = 1, unit = OrderUnit.Month, intent = "order-17",
                )
            println("${placed.orderNo} is ${placed.phase}")
            reseller.renewStaticOrder(duration = 1, unit = OrderUnit.Month, cycleTimes = 1, orderNo = placed.orderNo, intent = "renewal-17")
            println("${reseller.walkConsumption(orderNo = placed.orderNo).toList().size} charges")
        } catch (doubt: HoplineException.InDoubt) {
            // Nothing is sent again by itself. Look at what it may have become, then say so: settle(record, happened = …).
            for (candidate in reseller.reconcile(doubt.record!!).candidates) println("${candidate.read} shows ${candidate.matched}")
        }
    }
}
