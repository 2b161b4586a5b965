package hopline.host

import hopline.AgentClient
import hopline.FolderStore
import hopline.OkHttpTransport
import hopline.Phase
import hopline.ProductFilter
import hopline.Protocol
import hopline.Seen
import hopline.SessionType
import hopline.Verdict
import java.math.BigDecimal
import java.math.RoundingMode
import java.nio.file.Files
import java.util.Locale
import kotlin.io.path.ExperimentalPathApi
import kotlin.io.path.deleteRecursively
import kotlin.system.exitProcess
import kotlin.time.DurationUnit
import kotlin.time.TimeSource
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray

private class Row(val name: String, val seconds: Double, val cost: BigDecimal, val balance: BigDecimal)

private fun row(label: String, text: String) = println("  ${label.padEnd(11)}$text")

private fun usd(amount: BigDecimal): String = amount.setScale(2, RoundingMode.HALF_UP).toPlainString()

/** A session's whole life through the installed jar: `cargo xtask demo --host kotlin [--seed N]`. */
object Demo {
    @OptIn(ExperimentalPathApi::class)
    @JvmStatic
    fun main(arguments: Array<String>) {
        val seed = if (arguments.isEmpty()) "7" else arguments.takeIf { it.size == 2 && it[0] == "--seed" }?.get(1)
        if (seed == null) {
            System.err.println("the demo takes `--seed N` and nothing else")
            exitProcess(1)
        }
        val folder = Files.createTempDirectory("hopline-demo-")
        try {
            Sandbox("--seed", seed).use { sandbox ->
                val transport = OkHttpTransport()
                sandbox.client(transport, FolderStore(folder)).use { agent -> runBlocking { life(sandbox, agent) } }
            }
        } finally {
            folder.deleteRecursively()
        }
        // OkHttp's idle threads would keep the program for a minute.
        exitProcess(0)
    }

    private suspend fun life(sandbox: Sandbox, agent: AgentClient): Unit = coroutineScope {
        println("\nhopline for kotlin: a session's whole life\n")
        val before = agent.balance()
        var balance = before
        val steps = ArrayList<Row>()
        sandbox.control("target", """{"block_first_exit":true}""")
        row("balance", "${usd(balance)} USD")

        suspend fun <T> step(name: String, work: suspend () -> T): T {
            val began = TimeSource.Monotonic.markNow()
            val done = work()
            val seconds = began.elapsedNow().toDouble(DurationUnit.SECONDS)
            val left = agent.balance()
            steps += Row(name, seconds, balance - left, left)
            balance = left
            return done
        }

        val events = launch {
            agent.events.collect { event ->
                if (event.event == "accepted") row("accepted", "${event.sessionId}, for ${usd(event.estimatedChargeUsd ?: BigDecimal.ZERO)} USD")
                if (event.event == "status") row(event.status.orEmpty(), event.sessionId.orEmpty())
            }
        }
        val offered = agent.listProducts(type = ProductFilter.Dynamic, limit = 100).items.filter { it.available }
        val cheapest = offered.minBy { it.price }
        row("cheapest", "${cheapest.productNo} at ${usd(cheapest.price)} USD a ${cheapest.unit}, of ${offered.size} dynamic products")
        val open =
            step("buy 1 GB") {
                agent.openSession(
                    SessionType.Dynamic, cheapest.productNo, quantity = BigDecimal.ONE, protocol = Protocol.Http, intent = "demo", credentials = true,
                )
            }
        check(open.phase == Phase.READY)
        row("proxy", "HTTP at ${open.proxy.host}:${open.proxy.port}, with a username and a password; OkHttp speaks it")

        // By a name that only the proxy is to look up.
        val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
        val first = step("fetch") { visit(site, open.proxy) }
        row("fetch", "the site answers ${first.first} to exit ${exit(first)}")
        val advice = open.observe(Seen.Status(first.first)) as Verdict.Rotate
        row("observe", "a block: rotate, with the reason ${advice.reason}")
        val rotated = step("rotate") { open.rotate(advice.reason, includeCredentials = true) }
        row("rotate", "the session has another exit and another password")
        val second = step("fetch") { visit(site, rotated.proxy!!) }
        row("fetch", "the site answers ${second.first} to exit ${exit(second)}")
        step("terminate") { open.terminate() }
        check(visit(site, rotated.proxy!!).first == 407) { "the proxy of an ended session was to refuse" }
        row("terminate", "the session is over, and its proxy refuses the password")
        events.cancel()

        println("\n  ${"step".padEnd(11)}${"time".padStart(8)}${"cost USD".padStart(12)}${"balance USD".padStart(14)}")
        for (done in steps) {
            val time = String.format(Locale.ROOT, "%.2f s", done.seconds)
            println("  ${done.name.padEnd(11)}${time.padStart(8)}${usd(done.cost).padStart(12)}${usd(done.balance).padStart(14)}")
        }
        val state = sandbox.state()
        val charge = (state.getValue("charges") as JsonArray).single().members()
        check(charge.word("session_id") == open.sessionId && charge.word("amount").toBigDecimal().compareTo(cheapest.price) == 0)
        val session = (state.getValue("sessions") as JsonArray).single().members()
        check(session.word("status") == "terminated" && session.word("rotations") == "1" && session.word("exit") == exit(second))
        check((before - balance).compareTo(cheapest.price) == 0 && first.first == 403 && second.first == 200 && exit(first) != exit(second))
        println()
        row("checked", "one session, one charge, two exits; the service's own books say the same\n")
    }

    private fun exit(visited: Pair<Int, String>): String = Json.parseToJsonElement(visited.second).members().word("address")
}
