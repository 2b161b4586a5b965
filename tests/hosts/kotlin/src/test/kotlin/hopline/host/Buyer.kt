package hopline.host

import hopline.AgentClient
import hopline.FolderStore
import hopline.HoplineException
import hopline.SessionType
import java.nio.file.Path
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking

/**
 * A program of its own for the tests: `STORE all` resumes what others left, `STORE INTENT…` buys each. The program prints the
 * result of each on a line, or `busy` where another process has it.
 */
object Buyer {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val names = arguments.drop(1)
        AgentClient(store = FolderStore(Path.of(arguments[0]))).use { agent ->
            println("ready")
            runBlocking {
                if (names == listOf("all")) {
                    agent.resumeAll().forEach { println("resumed ${it.getOrNull() ?: it.exceptionOrNull()}") }
                } else {
                    names.map { async { println(buy(agent, it)) } }.awaitAll()
                }
            }
        }
    }

    private suspend fun buy(agent: AgentClient, intent: String): String =
        try {
            "bought ${agent.openSession(SessionType.Dynamic, "dynamic-world", intent = intent).sessionId}"
        } catch (_: HoplineException.Busy) {
            "busy"
        }

    fun start(sandbox: Sandbox, store: Path, vararg names: String): Process =
        sandbox.program("hopline.host.Buyer", store.toString(), *names).start()
}
