package hopline.host

import java.io.File
import java.nio.file.Path
import java.util.concurrent.TimeUnit
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The programs of the README are those in `readme/`, which were compiled with the tests, and run here. */
class ReadmeTest {
    private val readme = File(System.getenv("HOPLINE_README") ?: "../../../bindings-uniffi/kotlin/README.md").readText()

    private fun run(main: String, folder: Path, sandbox: Sandbox): String {
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val program = ProcessBuilder(File(System.getProperty("java.home"), "bin/java").path, "-cp", path, main).directory(folder.toFile())
        program.environment() += mapOf("HOPLINE_BASE_URL" to sandbox.agentUrl, "HOPLINE_API_KEY" to sandbox.apiKey)
        val process = program.redirectErrorStream(true).start()
        val text = process.inputReader().readText()
        check(process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0) { text }
        return text
    }

    @Test
    fun `every program of the readme is one that is run`() {
        val shown = Regex("```kotlin\n(.*?)```", RegexOption.DOT_MATCHES_ALL).findAll(readme).map { it.groupValues[1] }.toList()
        val kept = listOf("First.kt", "Program.kt").map { File("src/test/kotlin/readme/$it").readText() }
        assertEquals(kept, shown)
    }

    @Test
    fun `the programs of the readme do what they say`(@TempDir folder: Path) {
        Sandbox("--seed", "71", "--provisioning-ms", "0").use { sandbox ->
            assertTrue("dynamic-world: " in run("FirstKt", folder, sandbox))
            val told = run("ProgramKt", folder, sandbox)
            assertTrue("is READY at" in told && "[redacted]" in told, told)
            assertEquals(1 to 1, sandbox.counts())
        }
    }
}
