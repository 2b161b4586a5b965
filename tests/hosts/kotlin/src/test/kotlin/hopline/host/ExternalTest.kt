package hopline.host

import hopline.AgentClient
import hopline.HoplineException
import hopline.Options
import hopline.Response
import hopline.Secret
import hopline.core.Client
import hopline.core.Header
import hopline.core.Move
import hopline.core.Step
import hopline.core.Taken
import java.io.File
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test

/** JSON texts that nobody here wrote, as answers. They lie beside the repository; where they are missing the test says so. */
class ExternalTest {
    private val suite = File(System.getenv("HOPLINE_EXTERNAL") ?: "../../../../shared/external", "json-test-suite/test_parsing")

    /** The core's result for a body, without the package: `answered`, or the kind of the failure. */
    private fun core(body: ByteArray): String =
        Client("""{"base_url":"https://api.example/v1","api_key":"key"}""", ByteArray(16)).use { core ->
            val send = core.advance(Move.Start("get_balance", "{}", """{"attempts":1}"""), direct(ByteArray(0)), 0, 0).steps.firstNotNullOf { it as? Step.Send }
            val answer = Move.Respond(send.id, 200u, listOf(Header("content-type", "application/json")), false)
            when (val taken = core.advance(answer, direct(body), 0, 0).steps.firstNotNullOf { it as? Step.Completed }.result!!) {
                is Taken.Answered -> "answered"
                is Taken.Failed -> errorOf(taken.error).word("kind")
            }
        }

    /** The package's result. */
    private fun ours(body: ByteArray): String {
        val service = Scripted { Response(200, listOf("Content-Type" to "application/json"), body) }
        return AgentClient(Secret("key"), "https://api.example/v1", service, options = Options(attempts = 1)).use { agent ->
            try {
                val raw = runBlocking { agent.getBalance().raw }
                // A body that the core took may still be too much for Kotlin's own JSON, and then says so.
                runCatching { raw.json }.exceptionOrNull()?.let { assertTrue(it is IllegalArgumentException, "$it") }
                "answered"
            } catch (failure: HoplineException) {
                failure.javaClass.simpleName.lowercase()
            }
        }
    }

    @Test
    fun `every JSON text is accepted or refused as the core does`() {
        assumeTrue(suite.isDirectory, "there is no JSON test suite beside the repository")
        val counted = HashMap<Char, Int>()
        for (file in suite.listFiles { file -> file.extension == "json" }!!.sorted()) {
            val text = file.readBytes()
            val body = """{"success":true,"data":""".toByteArray() + text + "}".toByteArray()
            val (core, ours) = core(body) to ours(body)
            assertEquals(core, ours, file.name)
            if (file.name.startsWith("y")) assertEquals("answered", ours, file.name)
            if (file.name.startsWith("n")) assertEquals("protocol", ours, file.name)
            assertEquals(listOf("protocol", "protocol"), listOf(core(text), ours(text)), file.name)
            counted.merge(file.name[0], 1, Int::plus)
        }
        println("JSON test suite: $counted")
        assertEquals(setOf('y', 'n', 'i'), counted.keys)
    }
}
