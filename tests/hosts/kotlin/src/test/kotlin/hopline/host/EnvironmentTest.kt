package hopline.host

import hopline.AgentClient
import hopline.HoplineException
import hopline.ResellerClient
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** Options that a program takes from its environment. */
class EnvironmentTest {
    @Test
    fun `a blank variable is refused by its option and its name`() {
        Sandbox().use { sandbox ->
            for ((variable, field) in FIELDS) {
                // Space may be a password.
                val told = ask(sandbox, variable to if (field == "password") "\r\n" else " \r\n")
                assertEquals(listOf("Invalid $field NONE $variable"), told - setOf("agent", "reseller"))
                assertEquals(2, told.size, "$told")
            }
        }
    }

    @Test
    fun `a variable that is not set is no blank one and the line break of a file is left out`() {
        Sandbox().use { sandbox ->
            assertEquals(listOf("agent", "reseller"), ask(sandbox))
            for (variable in FIELDS.keys) assertEquals(listOf("agent", "reseller"), ask(sandbox, variable to "${sandbox.environment[variable]}\r\n"), variable)
        }
    }

    private fun ask(sandbox: Sandbox, vararg changed: Pair<String, String>): List<String> {
        val program = sandbox.program("hopline.host.Environment", *changed.map { it.first }.toTypedArray())
        program.environment() += changed
        val process = program.start()
        return process.inputReader().readLines().also { assertEquals(0, process.waitFor()) }
    }
}

private val FIELDS =
    mapOf(
        "HOPLINE_API_KEY" to "apiKey", "HOPLINE_BASE_URL" to "baseUrl", "HOPLINE_BACKEND_URL" to "baseUrl", "HOPLINE_USERNAME" to "username",
        "HOPLINE_PASSWORD" to "password",
    )

/** A program whose clients take everything from the environment. Prints a line for each that reads its account, or why it does not. */
object Environment {
    @JvmStatic
    fun main(variables: Array<String>): Unit = runBlocking {
        tell(variables) { AgentClient().use { it.getBalance() }.let { "agent" } }
        tell(variables) { ResellerClient().use { it.getCurrentBalance() }.let { "reseller" } }
    }

    private suspend fun tell(variables: Array<String>, work: suspend () -> String) =
        try {
            println(work())
        } catch (error: HoplineException) {
            println("${error::class.simpleName} ${error.field} ${error.effect} ${variables.filter { it in error.message!! }.joinToString()}")
        }
}
