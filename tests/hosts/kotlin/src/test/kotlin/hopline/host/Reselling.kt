package hopline.host

import hopline.OrderReply
import hopline.OrderUnit
import hopline.Protocol
import hopline.Proxy
import hopline.ResellerClient
import hopline.Secret
import java.math.BigDecimal
import kotlin.time.Duration
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject

/** A sub-user that can buy something. */
suspend fun ResellerClient.funded(name: String = "sub-user"): Long {
    val user = createUser(name, Secret("a-password")).id!!
    adjustSubUserBalance(user, BigDecimal(50), "to begin with")
    return user
}

/** Places an order of one address for a month, at the service's price. */
suspend fun ResellerClient.place(user: Long, intent: String? = null, deadline: Duration? = null): OrderReply =
    placeOrder(
        "static-us", user, unitPrice = BigDecimal.ZERO, totalAmount = BigDecimal.ZERO, ipCount = BigDecimal.ONE, cycleTimes = BigDecimal.ONE, duration = BigDecimal.ONE,
        unit = OrderUnit.Month, intent = intent, deadline = deadline,
    )

/** The proxies of an order, as this service writes them: its contract does not document their fields. */
fun instances(order: OrderReply): List<JsonObject> =
    order.order.items.flatMap { it.json.members().getValue("instances") as JsonArray }.map { it.members() }

fun proxy(instance: JsonObject): Proxy =
    Proxy(
        host = instance.word("ip"), port = instance.word("http_port").toLong(), protocol = Protocol.Http,
        username = Secret(instance.word("username")), password = Secret(instance.word("password")),
    )

/** The orders that were paid for, in the service's own books. */
fun Sandbox.purchases(): List<String> =
    (backend().getValue("entries") as JsonArray).map { it.members() }.filter { it.word("type") == "purchase" }.map { it.word("order_no") }
