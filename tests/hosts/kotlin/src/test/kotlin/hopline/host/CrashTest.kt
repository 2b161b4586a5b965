package hopline.host

import hopline.FolderStore
import hopline.Whose
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Programs that are killed, and programs that share a folder. */
class CrashTest {
    private fun Process.lines(): List<String> = inputReader().readLines().also { check(waitFor(60, TimeUnit.SECONDS)) { "it does not end" } }

    private fun Process.kill() {
        destroyForcibly()
        waitFor()
    }

    private fun until(what: String, holds: () -> Boolean) {
        repeat(6000) { if (holds()) return else Thread.sleep(20) }
        error("it never came to this: $what")
    }

    @Test
    fun `a program that is killed while it waits for the answer goes on with the same purchase`(@TempDir folder: Path) {
        Sandbox("--seed", "41", "--provisioning-ms", "0").use { sandbox ->
            sandbox.fault("create_session", """{"kind":"delay","ms":60000}""")
            val first = Buyer.start(sandbox, folder, "job-17")
            until("a charge") { sandbox.counts().second == 1 }
            first.kill()
            val told = Buyer.start(sandbox, folder, "job-17").lines()
            assertTrue(told.any { it.startsWith("bought ") }, "$told")
            assertEquals(1 to 1, sandbox.counts())
        }
    }

    @Test
    fun `a program that is killed at any moment buys once`(@TempDir folder: Path) {
        Sandbox("--seed", "42", "--provisioning-ms", "200").use { sandbox ->
            // The answer is held back, so that a kill falls between the send and the answer.
            sandbox.fault("create_session", """{"kind":"in_progress","ms":600000}""")
            for (moment in listOf(0L, 40, 80, 160, 320)) {
                val program = Buyer.start(sandbox, folder, "job-17")
                check(program.inputReader().readLine() == "ready")
                Thread.sleep(moment)
                program.kill()
            }
            val program = Buyer.start(sandbox, folder, "job-17")
            until("a purchase in progress") { sandbox.inProgress() == 1 }
            program.kill()
            assertEquals(1 to (0 to 0), sandbox.inProgress() to sandbox.counts())
            sandbox.control("clock", """{"advance_ms":600000}""")
            val told = Buyer.start(sandbox, folder, "job-17").lines()
            assertTrue(told.any { it.startsWith("bought ") }, "$told")
            assertEquals(1 to 1, sandbox.counts())
        }
    }

    @Test
    fun `four programs with one intent buy it once`(@TempDir folder: Path) {
        Sandbox("--seed", "43", "--provisioning-ms", "1500").use { sandbox ->
            val told = List(4) { Buyer.start(sandbox, folder, "job-17") }.map { it.lines() }.map { it.last() }
            assertEquals(1 to 1, sandbox.counts(), "$told")
            assertTrue(told.any { it.startsWith("bought ") } && told.all { it == "busy" || it.startsWith("bought ") }, "$told")
            assertEquals(1, told.filter { it != "busy" }.toSet().size, "$told")
        }
    }

    @Test
    fun `two programs that are started again do not buy what the other left`(@TempDir folder: Path) {
        Sandbox("--seed", "44", "--provisioning-ms", "0").use { sandbox ->
            sandbox.fault("create_session", """{"kind":"delay","ms":60000}""", times = 4)
            val first = listOf(Buyer.start(sandbox, folder, "a-1", "a-2"), Buyer.start(sandbox, folder, "b-1", "b-2"))
            until("four charges") { sandbox.counts().second == 4 }
            first.forEach { it.kill() }
            // Each resumes what it finds, and then both want the same.
            List(2) { Buyer.start(sandbox, folder, "all") }.forEach { it.lines() }
            val told = List(2) { Buyer.start(sandbox, folder, "a-1", "a-2", "b-1", "b-2") }.flatMap { it.lines() }
            assertEquals(4 to 4, sandbox.counts())
            assertEquals(4, told.filter { it.startsWith("bought ") }.toSet().size, "$told")
        }
    }

    @Test
    fun `a client of this process keeps a program from its intents until it is closed`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "45", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(store = FolderStore(folder)).use { agent ->
                agent.openSession(hopline.SessionType.Dynamic, "dynamic-world", intent = "job-17")
                assertEquals("busy", Buyer.start(sandbox, folder, "job-17").lines().last())
                // Another client that comes and goes in this process lets go of nothing of it.
                sandbox.client(store = FolderStore(folder)).use { assertEquals(listOf(Whose.OTHER), it.saved().map { saved -> saved.whose }) }
                assertEquals("busy", Buyer.start(sandbox, folder, "job-17").lines().last())
            }
            assertTrue(Buyer.start(sandbox, folder, "job-17").lines().last().startsWith("bought "))
            assertEquals(1 to 1, sandbox.counts())
            assertEquals(0L, Files.list(folder.resolve("drafts")).use { it.count() })
        }
    }
}
