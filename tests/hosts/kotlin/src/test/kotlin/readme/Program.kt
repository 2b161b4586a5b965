// Looks at the account, sets its limits, buys a session for no more than it was quoted, uses it, changes its exit when a site
// blocks it, ends it, and tops the account up. Killed at any moment and started again, it goes on with the same purchase and the
// same top-up: the folder remembers. Only the watch of the balance begins anew, from what the balance is then.

import hopline.AgentClient
import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.OkHttpTransport
import hopline.Patch
import hopline.ProductFilter
import hopline.Protocol
import hopline.Seen
import hopline.SessionType
import hopline.Until
import hopline.Verdict
import hopline.quote
import hopline.sessionEvent
import hopline.through
import java.math.BigDecimal
import java.nio.file.Path
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.flow.filter
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.jsonObject
import okhttp3.OkHttpClient

fun main() = runBlocking {
    val http = OkHttpClient()
    val cap = BigDecimal(50) // this client buys for no more than that in a UTC day
    AgentClient(transport = OkHttpTransport(http), store = FolderStore(Path.of("hopline-records")), dailyCapUsd = cap).use { agent ->
        println("account ${agent.getAccount().apiKeyPrefix} with the budget ${agent.getBudget().raw.text}")
        // What is left out stays as it is, a value is set, Null is sent as null.
        agent.updateBudget(dailyLimitUsd = Patch.Set(BigDecimal(100)), keyLimitUsd = Patch.Null)

        val offered = agent.walkProducts(type = ProductFilter.Dynamic).filter { it.available }.toList()
        val quote = quote(offered.minBy { it.price }, BigDecimal("0.5"))
        println("${quote.quantity} ${quote.unit} of ${quote.productNo} cost ${quote.total} ${quote.currency}")
        try {
            // The intent is your own name for this purchase: whoever starts it again gets the same session.
            val session =
                agent.openSession(
                    SessionType.Dynamic, quote.productNo, quantity = quote.quantity, maxUnitPrice = quote.unitPrice, intent = "job-17",
                    protocol = Protocol.Http, credentials = true,
                )
            println("${session.sessionId} is ${session.phase} at ${session.proxy.host}:${session.proxy.port} ${session.proxy.password}")
            val own = OkHttpClient.Builder().through(session.proxy).build() // for your own requests
            // Tell what they meet, and do as advised.
            agent.reportSessionEvent(session.sessionId, sessionEvent(status = 403, latency = 120.milliseconds, target = "shop.example"))
            val advice = session.observe(Seen.Status(403))
            if (advice is Verdict.Rotate) session.rotate(advice.reason)
            println("health ${agent.getSessionHealth(session.sessionId).raw.text}")
            session.terminate()
            own.dispatcher.executorService.shutdown()
        } catch (failure: HoplineException) {
            if (failure.effect != Effect.UNKNOWN) throw failure
            println(failure.message) // money may have moved: start the same intent again, and never make a new purchase of it
        }

        val before = BigDecimal(agent.getBalance().raw.json.jsonObject.getValue("balance").toString())
        val order = agent.createRecharge(amountUsd = BigDecimal(20), intent = "top-up-17")
        println("pay ${order.amountUsdt} USDT on ${order.network} to ${order.walletAddress}")
        val toppedUp = Until(at = "/balance", atLeast = before + BigDecimal(20))
        println("the top-up is ${agent.getBalance(until = toppedUp, deadline = 10.minutes).phase}")
        println("transactions ${agent.listTransactions().raw.text}")
    }
    http.dispatcher.executorService.shutdown()
}
