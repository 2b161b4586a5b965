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
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import okhttp3.Request

fun main(pages: Array<String>) = runBlocking(Dispatchers.IO) {
    val base = OkHttpClient() // all clients that are built from it share its threads and its pool of connections
    AgentClient(store = FolderStore(Path.of("hopline-records"))).use { agent ->
        val options =
            PoolOptions(size = 4, sessionType = SessionType.Dynamic, productNo = "dynamic-world", protocol = Protocol.Http, dailyCapUsd = BigDecimal(40))
        val pool = agent.openPool("shop", options)
        val jobs = pages.map { page ->
            launch {
                do {
                    val advice = pool.withLease(target = "shop.example", timeout = 5.minutes) { lease ->
                        // One client for each exit, whose connections the next lease of it uses again.
                        val http = lease.data.getOrPut("http") { base.newBuilder().through(lease.proxy).build() } as OkHttpClient
                        try {
                            val response = http.newCall(Request.Builder().url(page).build()).execute()
                            val status = response.use { it.body!!.string().let { _ -> it.code } }
                            lease.observe(status, response.header("Retry-After")).also { println("$page: $status, $it") }
                        } catch (error: IOException) {
                            // Tells the proxy's failures from the page's. The page was not read, whatever the advice is.
                            lease.observe(error).also { println("$page: $error, $it") }
                        }
                    }
                } while (advice == LeaseAdvice.GIVE_BACK) // another session, or this one with another exit
            }
        }
        jobs.forEach { it.join() }
        println(pool.status())
        pool.close() // its sessions live on for the next run
    }
    base.dispatcher.executorService.shutdown()
    base.connectionPool.evictAll()
}
