package hopline.host

import hopline.AgentClient
import hopline.EventName
import hopline.Phase
import hopline.ProductFilter
import hopline.Protocol
import hopline.Seen
import hopline.SessionType
import hopline.Verdict
import java.math.BigDecimal
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonArray

/** A session's whole life. */
object Life {
    suspend fun tell(sandbox: Sandbox, agent: AgentClient): Unit = coroutineScope {
        println("\nhopline for kotlin: a session's whole life\n")
        val steps = Steps { agent.balance() }
        val before = steps.begin()
        sandbox.control("target", """{"block_first_exit":true}""")
        row("balance", "${usd(before)} USD")

        val events = launch {
            agent.events.collect { event ->
                if (event.event == EventName.ACCEPTED) row("accepted", "${event.sessionId}, for ${usd(event.estimatedChargeUsd ?: BigDecimal.ZERO)} USD")
                if (event.event == EventName.STATUS) row(event.status.orEmpty(), event.sessionId.orEmpty())
            }
        }
        val offered = agent.listProducts(type = ProductFilter.Dynamic, limit = 100).items.filter { it.available }
        val cheapest = offered.minBy { it.price }
        row("cheapest", "${cheapest.productNo} at ${usd(cheapest.price)} USD a ${cheapest.unit}, of ${offered.size} dynamic products")
        val open =
            steps.step("buy 1 GB") {
                agent.openSession(
                    SessionType.Dynamic, cheapest.productNo, quantity = BigDecimal.ONE, protocol = Protocol.Http, intent = "demo", credentials = true,
                )
            }
        check(open.phase == Phase.READY)
        row("proxy", "HTTP at ${open.proxy.host}:${open.proxy.port}, with a username and a password; OkHttp speaks it")

        // By a name that only the proxy is to look up.
        val site = sandbox.targetUrl.replace("127.0.0.1", "localhost")
        val first = steps.step("fetch") { visit(site, open.proxy) }
        row("fetch", "the site answers ${first.first} to exit ${exit(first)}")
        val advice = open.observe(Seen.Status(first.first)) as Verdict.Rotate
        row("observe", "a block: rotate, with the reason ${advice.reason}")
        val rotated = steps.step("rotate") { open.rotate(advice.reason, includeCredentials = true) }
        row("rotate", "the session has another exit and another password")
        val second = steps.step("fetch") { visit(site, rotated.proxy!!) }
        row("fetch", "the site answers ${second.first} to exit ${exit(second)}")
        steps.step("terminate") { open.terminate() }
        check(visit(site, rotated.proxy!!).first == 407) { "the proxy of an ended session was to refuse" }
        row("terminate", "the session is over, and its proxy refuses the password")
        events.cancel()

        steps.print()
        val state = sandbox.state()
        val charge = (state.getValue("charges") as JsonArray).single().members()
        check(charge.word("session_id") == open.sessionId && charge.word("amount").toBigDecimal().compareTo(cheapest.price) == 0)
        val session = (state.getValue("sessions") as JsonArray).single().members()
        check(session.word("status") == "terminated" && session.word("rotations") == "1" && session.word("exit") == exit(second))
        check((before - steps.begin()).compareTo(cheapest.price) == 0 && first.first == 403 && second.first == 200 && exit(first) != exit(second))
        row("checked", "one session, one charge, two exits; the service's own books say the same\n")
    }
}
