// Buys a session, uses it, changes its exit when a site blocks it, and ends it. Killed at any moment and started again, it
// goes on with the same purchase: the folder remembers.

import hopline.AgentClient
import hopline.FolderStore
import hopline.HoplineException
import hopline.OkHttpTransport
import hopline.ProductFilter
import hopline.Seen
import hopline.SessionType
import hopline.Verdict
import java.nio.file.Path
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient

fun main() = runBlocking {
    val http = OkHttpClient()
    AgentClient(transport = OkHttpTransport(http), store = FolderStore(Path.of("hopline-records"))).use { agent ->
        val cheapest = agent.listProducts(type = ProductFilter.Dynamic).items.filter { it.available }.minBy { it.price }
        try {
            // The intent is your own name for this purchase: whoever starts it again gets the same session.
            val session = agent.openSession(SessionType.Dynamic, cheapest.productNo, intent = "job-17", credentials = true)
            println("${session.sessionId} is ${session.phase} at ${session.proxy.host}:${session.proxy.port} ${session.proxy.password}")
            session.proxy.fullUrl?.let { url -> val forYourHttpClient = url.reveal(); check(forYourHttpClient.isNotEmpty()) }
            // Tell what your own requests through it meet, and do as advised.
            val advice = session.observe(Seen.Status(403))
            if (advice is Verdict.Rotate) session.rotate(advice.reason)
            session.terminate()
        } catch (failure: HoplineException.InDoubt) {
            // Money may have moved. Start the same intent again, or resume(failure.record!!); never make a new purchase of it.
            println(failure.message)
        }
    }
    http.dispatcher.executorService.shutdown()
}
