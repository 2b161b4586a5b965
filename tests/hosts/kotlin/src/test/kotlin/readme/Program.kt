// Looks at the account, buys a session for no more than it was quoted, uses it, changes its exit when a site blocks it, and ends it.
// Killed at any moment and started again, it goes on with the same purchase: the folder remembers.

import hopline.AgentClient
import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.OkHttpTransport
import hopline.OpenSession
import hopline.Phase
import hopline.ProductFilter
import hopline.Protocol
import hopline.Seen
import hopline.SessionType
import hopline.Verdict
import hopline.quote
import hopline.through
import java.math.BigDecimal
import java.nio.file.Path
import kotlinx.coroutines.flow.filter
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient

const val JOB = "job-17" // the intent: your own name for this purchase

fun main() = runBlocking {
    val http = OkHttpClient()
    val cap = BigDecimal(50) // the most that all clients of this folder buy in a UTC day, together
    AgentClient(transport = OkHttpTransport(http), store = FolderStore(Path.of("hopline-records")), dailyCapUsd = cap).use { agent ->
        println("account ${agent.getAccount().apiKeyPrefix}, balance ${agent.getBalance().raw.text}")
        try {
            // What was begun goes on. Only where there is nothing, a product is chosen: prices and stock change.
            val session = agent.resumeIntent(JOB) as OpenSession? ?: agent.buy()
            if (session.phase != Phase.READY) return@use println("$session can't be used yet, or any more: start this program again, or look at it")
            println("${session.sessionId} is ${session.phase} at ${session.proxy.host}:${session.proxy.port} ${session.proxy.password}")
            val own = OkHttpClient.Builder().through(session.proxy).build() // for your own requests
            // Say what they met, and do as advised.
            val advice = session.observe(Seen.Status(403))
            if (advice is Verdict.Rotate) session.rotate(advice.reason)
            println("health ${agent.getSessionHealth(session.sessionId).raw.text}")
            session.terminate()
            own.dispatcher.executorService.shutdown()
        } catch (over: HoplineException.Ended) {
            println(over.message) // this job is done: a new purchase needs a new intent
        } catch (failure: HoplineException) {
            if (failure.effect != Effect.UNKNOWN) throw failure
            println(failure.message) // money may have moved: start this program again, and it goes on with the same purchase
        }
    }
    http.dispatcher.executorService.shutdown()
}

suspend fun AgentClient.buy(): OpenSession {
    val offered = walkProducts(type = ProductFilter.Dynamic).items().filter { it.available }.toList()
    val quote = quote(offered.minBy { it.price }, BigDecimal("0.5"))
    println("${quote.quantity} ${quote.unit} of ${quote.productNo} cost ${quote.total} ${quote.currency}")
    return openSession(
        SessionType.Dynamic, quote.productNo, quantity = quote.quantity, maxUnitPrice = quote.unitPrice, intent = JOB,
        protocol = Protocol.Http,
    )
}
