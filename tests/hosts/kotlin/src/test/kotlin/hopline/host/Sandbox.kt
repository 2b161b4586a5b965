package hopline.host

import hopline.AgentClient
import hopline.JavaHttpTransport
import hopline.MemoryStore
import hopline.Options
import hopline.Secret
import hopline.Store
import hopline.Transport
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject

/** The service on loopback, for one test. */
class Sandbox(vararg options: String) : AutoCloseable {
    private val program = System.getenv("HOPLINE_SANDBOX") ?: error("HOPLINE_SANDBOX must name the sandbox; `cargo xtask test kotlin` does")
    private val process =
        ProcessBuilder(program, "--with-parent", *options).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val ready: JsonObject = Json.parseToJsonElement(process.inputReader().readLine()).members()
    private val http = HttpClient.newHttpClient()

    val agentUrl: String get() = ready.word("agent_url")
    val apiKey: String get() = ready.word("api_key")
    val targetUrl: String get() = ready.word("target_url")

    fun client(transport: Transport = JavaHttpTransport(), store: Store = MemoryStore(), options: Options = Options()): AgentClient =
        AgentClient(Secret(apiKey), agentUrl, transport, store, options)

    fun control(path: String, body: String): JsonObject =
        ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/$path")).POST(BodyPublishers.ofString(body)))

    fun fault(operation: String, fault: String, times: Int = 1): JsonObject =
        control("faults", """{"operation":"$operation","times":$times,"fault":$fault}""")

    fun state(): JsonObject = ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/state")).GET())

    /** How many sessions there are, and how many charges for them. */
    fun counts(): Pair<Int, Int> =
        state().let { (it.getValue("sessions") as JsonArray).size to (it.getValue("charges") as JsonArray).size }

    override fun close() {
        process.destroy()
        process.waitFor()
    }

    private fun ask(request: HttpRequest.Builder): JsonObject {
        val answer = http.send(request.build(), BodyHandlers.ofString())
        check(answer.statusCode() == 200) { "the sandbox answered ${answer.body()}" }
        return Json.parseToJsonElement(answer.body()).let { it as? JsonObject ?: JsonObject(emptyMap()) }
    }
}
