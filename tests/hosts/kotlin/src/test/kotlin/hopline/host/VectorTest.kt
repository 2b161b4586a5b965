package hopline.host

import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory

/** The required behaviour of Hopline, as data, through the class of the package. */
class VectorTest {
    private val folder = File(System.getenv("HOPLINE_VECTORS") ?: "../../vectors")

    @TestFactory
    fun `a case goes as it is written`(): List<DynamicTest> = cases(folder).map { case -> dynamicTest(case.name) { run(case.members) } }

    @Test
    fun `every case of every file is run`() {
        val read = cases(folder)
        println("vectors: ${read.size} cases")
        assertEquals(read.size, read.map { it.name }.toSet().size, "two cases have one name")
        assertEquals(folder.walk().filter { it.name.endsWith(".json") }.sumOf(::count), read.size)
    }

    @Test
    fun `what the runner does not understand it refuses`() {
        for (step in listOf("""{"sned":1}""", """{"put":"r1","anwser":"done"}""", """{"put":"r1","answer":"counted"}""", """{"put":"r1","delete":"r1"}""", """{"resume":"r1"}""", WALK)) {
            assertThrows(Failure::class.java, { readStep(Json.parseToJsonElement(step).members()) }, step)
        }
    }

    @Test
    fun `a walk, a verdict and an answer that go otherwise do not pass`() {
        val product = """{"product_no":"p","name":"n","type":"dynamic","sharing":"shared","available":true,"price":1,"currency":"USD","unit":"GB"}"""
        val page = """{"send":"GET /products","answer":{"ok":{"items":[$product],"next_cursor":null}}}"""
        val walk = """"walk":"w","operation":"list_products""""
        fun script(step: String) = Json.parseToJsonElement("""{"name":"n","script":[{$step}]}""").members()
        run(script("""$walk,"pages":[$page],"items":[$product],"end":"last_page""""))
        run(script("""$ASK,"ok":{"status":200}"""))
        for (step in listOf(
            """$walk,"pages":[$page]""", """$walk,"pages":[$page],"end":"page_cap"""", """$walk,"pages":[$page,$page],"end":"last_page"""",
            """$walk,"pages":[$page],"items":[2],"end":"last_page"""", """$walk,"from":"v"""", """$walk,"error":{}""", """$walk,"position_text":"x"""",
            """"observe":"s","seen":"block","verdict":"rotate","reason":"block"""", """"observe":"s","seen":"block","as":"r"""",
            ASK, """$ASK,"ok":{}""", """$ASK,"ok":{"status":201}""", """$ASK,"error":{}""", """"ask":"session_event","given":{},"ok":{}""",
        )) {
            assertThrows(Failure::class.java, { run(script(step)) }, step)
        }
    }

    private companion object {
        const val ASK = """"ask":"session_event","given":{"facts":{"status":200}}"""
        const val WALK = """{"walk":"w","operation":"list_products","pages":[{"sned":1}]}"""
    }

    private fun count(file: File): Int =
        (Json.parseToJsonElement(file.readText()).members().getValue("cases") as JsonArray).size
}
