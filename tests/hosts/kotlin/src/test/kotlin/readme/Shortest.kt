import hopline.*
import okhttp3.OkHttpClient

suspend fun main(arguments: Array<String>) {
    val request = okhttp3.Request.Builder().url(arguments[0]).build()
    AgentClient(store = FolderStore("hopline-records"), dailyCapUsd = 20.toBigDecimal()).use { agent ->
        val cheapest = Cheapest(SessionType.Dynamic, maxUnitPrice = 5.toBigDecimal())
        val session = agent.openSession(product = cheapest, quantity = "0.5".toBigDecimal(), intent = "prices", ifEnded = IfEnded.BUY, useWith = UseWith.OKHTTP)
        OkHttpClient.Builder().through(session.proxy).build().newCall(request).execute().use { println("${it.code} for ${session.chargedUsd} USD") }
        session.terminate()
    }
}
