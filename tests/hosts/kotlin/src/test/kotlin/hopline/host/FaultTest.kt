package hopline.host

import hopline.Effect
import hopline.FolderStore
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Phase
import hopline.SessionType
import hopline.Transport
import java.nio.file.Path
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** Faults between a program and the service, over real sockets: one session, one charge. */
class FaultTest {
    @ParameterizedTest
    @MethodSource("faults")
    fun `a purchase survives a fault and is charged once`(transport: Transport, fault: String, @TempDir folder: Path): Unit = runBlocking {
        Sandbox("--seed", "21", "--provisioning-ms", "0").use { sandbox ->
            sandbox.client(transport, FolderStore(folder), Options(timeout = 2000.milliseconds, backoff = 20.milliseconds)).use { agent ->
                sandbox.fault("create_session", fault)
                suspend fun buy() = agent.openSession(SessionType.Dynamic, "dynamic-world", intent = "job-17")
                val open =
                    try {
                        buy()
                    } catch (doubt: HoplineException.InDoubt) {
                        // A redirect is nothing that a second send would mend by itself.
                        assertTrue("302" in fault && doubt.effect == Effect.UNKNOWN, "$doubt")
                        buy()
                    }
                assertEquals(Phase.READY, open.phase)
                assertEquals(1 to 1, sandbox.counts(), fault)
            }
        }
    }

    companion object {
        private val FAULTS =
            listOf(
                """{"kind":"drop_before"}""", """{"kind":"drop_after"}""", """{"kind":"truncate"}""", """{"kind":"html","status":502}""",
                """{"kind":"html","status":200,"after":true}""", """{"kind":"html","status":302,"after":true}""", """{"kind":"huge","after":true}""",
                """{"kind":"bad_utf8","after":true}""", """{"kind":"deep","after":true}""", """{"kind":"delay","ms":3000}""", """{"kind":"duplicate"}""",
                """{"kind":"in_progress","ms":3000}""",
            )

        @JvmStatic
        fun faults(): List<Array<Any>> = listOf(OkHttpTransport(), JavaHttpTransport()).flatMap { transport -> FAULTS.map { arrayOf(transport, it) } }
    }
}
