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

/** What Hopline must do, as data, through the class of the package. */
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
        for (step in listOf("""{"sned":1}""", """{"save":"r1","anwser":"saved"}""", """{"save":"r1","delete":"r1"}""", """{"resume":"r1"}""")) {
            assertThrows(Failure::class.java, { readStep(Json.parseToJsonElement(step).members()) }, step)
        }
    }

    private fun count(file: File): Int =
        (Json.parseToJsonElement(file.readText()).members().getValue("cases") as JsonArray).size
}
