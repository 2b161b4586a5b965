package hopline.host

import java.io.File
import java.nio.file.Path
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlinx.serialization.json.JsonArray
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The programs of the README are those in `readme/`, which were compiled with the tests, and run here. */
class ReadmeTest {
    private val readme = File(System.getenv("HOPLINE_README") ?: "../../../bindings-uniffi/kotlin/README.md").readText()

    private fun run(main: String, folder: Path, sandbox: Sandbox): String {
        val process = sandbox.program(main).directory(folder.toFile()).redirectErrorStream(true).start()
        val text = process.inputReader().readText()
        check(process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0) { text }
        return text
    }

    /** Somebody who pays each order to top up, once it is there. */
    private fun paying(sandbox: Sandbox, work: () -> String): String {
        val over = CountDownLatch(1)
        val payer = thread {
            while (!over.await(100, TimeUnit.MILLISECONDS)) {
                val orders = (sandbox.state().getValue("orders") as JsonArray).map { it.members() }
                for (order in orders.filter { it.word("status") == "pending" }) sandbox.control("pay", """{"order_id":"${order.word("order_id")}"}""")
            }
        }
        return try {
            work()
        } finally {
            over.countDown()
            payer.join()
        }
    }

    @Test
    fun `every program of the readme is one that is run`() {
        val shown = Regex("```kotlin\n(.*?)```", RegexOption.DOT_MATCHES_ALL).findAll(readme).map { it.groupValues[1] }.toList()
        val kept = listOf("First.kt", "Program.kt", "Reseller.kt").map { File("src/test/kotlin/readme/$it").readText() }
        assertEquals(kept, shown)
    }

    @Test
    fun `the programs of the readme do what they say`(@TempDir folder: Path) {
        Sandbox("--seed", "71", "--provisioning-ms", "0").use { sandbox ->
            assertTrue("dynamic-world: " in run("FirstKt", folder, sandbox))
            val told = paying(sandbox) { run("ProgramKt", folder, sandbox) }
            assertTrue("is READY at" in told && "[redacted]" in told && "the top-up is READY" in told, told)
            assertTrue("\"bad_events\":1" in told && "\"status\":\"terminated\"" in "${sandbox.state()["sessions"]}", told)
            assertEquals(1 to 1, sandbox.counts())
            val sold = run("ResellerKt", folder, sandbox)
            assertTrue("is READY\na proxy at 127." in sold && "purchase" in sold && "renewal" in sold, sold)
            // Run again it finds the order that it has cancelled.
            assertTrue("is ENDED" in run("ResellerKt", folder, sandbox))
            assertEquals(listOf(1, 1, 1), listOf("create", "renew", "cancel").map { sandbox.times("${it}_static_order") })
        }
    }
}
