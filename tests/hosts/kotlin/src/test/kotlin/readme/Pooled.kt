import hopline.AgentClient
import hopline.FolderStore
import hopline.LeaseAdvice
import hopline.PoolOptions
import hopline.Protocol
import hopline.SessionType
import hopline.through
import java.io.IOException
import java.math.BigDecimal
import java.nio.file.Path
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import okhttp3.Request

fun main(pages: Array<String>) = runBlocking(Dispatchers.IO) {
    AgentClient(store = FolderStore(Path.of("hopline-records"))).use { agent ->
        val options =
            PoolOptions(size = 4, sessionType = SessionType.Dynamic, productNo = "dynamic-world", protocol = Protocol.Http, dailyCapUsd = BigDecimal(40))
        val pool = agent.openPool("shop", options)
        val jobs = pages.map { page ->
            launch {
                do {
                    val advice = pool.withLease(target = "shop.example") { lease ->
                        val http = OkHttpClient.Builder().through(lease.proxy).build()
                        try {
                            val status = http.newCall(Request.Builder().url(page).build()).execute().use { it.code }
                            lease.observe(status).also { println("$page: $status, $it") }
                        } catch (error: IOException) {
                            lease.observe(error) // tells the proxy's failures from the page's
                        }
                    }
                } while (advice == LeaseAdvice.GIVE_BACK) // another session, or this one with another exit
            }
        }
        jobs.forEach { it.join() }
        println(pool.status())
        pool.close() // its sessions live on for the next run
    }
}
