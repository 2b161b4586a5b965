package hopline.host

import java.math.BigDecimal
import java.math.RoundingMode
import java.util.Locale
import kotlin.time.DurationUnit
import kotlin.time.TimeSource
import kotlinx.serialization.json.Json

// The demos' output on the terminal.

fun row(label: String, text: String) = println("  ${label.padEnd(11)}$text")

fun usd(amount: BigDecimal): String = amount.setScale(2, RoundingMode.HALF_UP).toPlainString()

/** The address that a site saw. */
fun exit(visited: Pair<Int, String>): String = Json.parseToJsonElement(visited.second).members().word("address")

/** The steps of a demo: how long each took, and what it took from a balance. */
class Steps(private val balance: suspend () -> BigDecimal) {
    private class Row(val name: String, val seconds: Double, val cost: BigDecimal, val balance: BigDecimal)

    private val rows = ArrayList<Row>()
    private var left = BigDecimal.ZERO

    /** The balance, read anew: what comes from now on is compared with it. */
    suspend fun begin(): BigDecimal = balance().also { left = it }

    suspend fun <T> step(name: String, work: suspend () -> T): T {
        val began = TimeSource.Monotonic.markNow()
        val done = work()
        val seconds = began.elapsedNow().toDouble(DurationUnit.SECONDS)
        val before = left
        rows += Row(name, seconds, before - begin(), left)
        return done
    }

    fun print() {
        println("\n  ${"step".padEnd(11)}${"time".padStart(8)}${"cost USD".padStart(12)}${"balance USD".padStart(14)}")
        for (done in rows) {
            val time = String.format(Locale.ROOT, "%.2f s", done.seconds)
            println("  ${done.name.padEnd(11)}${time.padStart(8)}${usd(done.cost).padStart(12)}${usd(done.balance).padStart(14)}")
        }
        println()
    }
}
