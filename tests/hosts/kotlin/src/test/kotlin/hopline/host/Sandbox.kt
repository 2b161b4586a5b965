package hopline.host

import hopline.AgentClient
import hopline.JavaHttpTransport
import hopline.Options
import hopline.ResellerClient
import hopline.Secret
import hopline.Store
import hopline.Transport
import java.io.File
import java.math.BigDecimal
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject

/** A port where nobody listens: no system gives it to a program that asks for any port. */
const val CLOSED_PORT = 3

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

    /** Where every connection is reset before the request is read. */
    val resetUrl: String get() = ready.word("reset_url")

    val backendUrl: String get() = ready.word("backend_url")
    val username: String get() = ready.word("username")
    val password: String get() = ready.word("password")

    /** The base URL with that certificate, or the `ca` to trust, of a sandbox that is over TLS too. */
    fun tls(what: String): String = ready.word("tls_$what")

    /** The environment of separate programs. */
    val environment: Map<String, String>
        get() =
            mapOf(
                "HOPLINE_BASE_URL" to agentUrl, "HOPLINE_API_KEY" to apiKey, "HOPLINE_BACKEND_URL" to backendUrl, "HOPLINE_USERNAME" to username,
                "HOPLINE_PASSWORD" to password,
            )

    fun client(
        transport: Transport = JavaHttpTransport(),
        store: Store? = null,
        options: Options = Options(),
        dailyCapUsd: BigDecimal? = null,
        backendReady: Boolean? = null,
    ): AgentClient = AgentClient(Secret(apiKey), agentUrl, transport, store, options, dailyCapUsd = dailyCapUsd, backendReady = backendReady)

    fun reseller(
        transport: Transport = JavaHttpTransport(),
        store: Store? = null,
        options: Options = Options(),
        password: String = this.password,
        tokenCodes: List<String>? = null,
    ): ResellerClient =
        ResellerClient(Secret(username), Secret(password), backendUrl, tokenCodes = tokenCodes, transport = transport, store = store, options = options)

    fun control(path: String, body: String): JsonObject =
        ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/$path")).POST(BodyPublishers.ofString(body)))

    /** A fault of an operation, or of any. */
    fun fault(operation: String?, fault: String, times: Int = 1): JsonObject =
        control("faults", """{"operation":${operation?.let { "\"$it\"" }},"times":$times,"fault":$fault}""")

    /** Forgets the faults that nothing has met. */
    fun clearFaults(): JsonObject = ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/faults")).DELETE())

    /** Every request that came, whatever a fault made of it. */
    fun requests(): List<JsonObject> =
        (ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/requests")).GET()).getValue("requests") as JsonArray).map { it.members() }

    fun state(): JsonObject = ask(HttpRequest.newBuilder(URI("${ready.word("control_url")}/state")).GET())

    /** How many requests are in progress. */
    fun inProgress(): Int = state().word("in_progress").toInt()

    /** How many sessions there are, and how many charges for them. */
    fun counts(): Pair<Int, Int> =
        state().let { (it.getValue("sessions") as JsonArray).size to (it.getValue("charges") as JsonArray).size }

    /** The state of the reseller backend. */
    fun backend(): JsonObject = state().getValue("backend").members()

    /** How often the service has done an operation. */
    fun times(operation: String): Int = state().getValue("executions").members().maybe(operation)?.toInt() ?: 0

    /** A program of the tests, in a process of its own with this service in its environment. */
    fun program(main: String, vararg arguments: String): ProcessBuilder {
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val java = File(System.getProperty("java.home"), "bin/java").path
        val program = ProcessBuilder(java, "-cp", path, main, *arguments).redirectError(ProcessBuilder.Redirect.INHERIT)
        program.environment() += environment
        return program
    }

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
