// Buys a session through an app's own backend. The app has a token of its user; the API key is the backend's alone.

import hopline.AgentClient
import hopline.FolderStore
import hopline.HoplineException
import hopline.OkHttpTransport
import hopline.OpenSession
import hopline.Options
import hopline.SessionType
import java.io.File
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient

class Proxies(noBackupFilesDir: File, backend: String, user: String, token: suspend () -> String) {
    private val http = OkHttpClient()

    // One for the app. Make it anywhere: the store is opened, and all work is done, off the main thread.
    val agent =
        AgentClient(
            apiKey = null,
            baseUrl = backend,
            transport = OkHttpTransport(http),
            store = FolderStore.android(noBackupFilesDir), // context.noBackupFilesDir
            options = Options(account = user), // users of the app don't see each other's records
            headers = { mapOf("Authorization" to "Bearer ${token()}") }, // asked for before each send
        )

    // Called again, after the app was killed too, it goes on with the same purchase.
    suspend fun buy(order: String): OpenSession =
        agent.resumeIntent(order) as OpenSession?
            ?: agent.openSession(SessionType.Dynamic, "dynamic-world", intent = order)

    suspend fun close() {
        agent.shutdown()
        http.dispatcher.executorService.shutdown()
    }
}

fun main() = runBlocking {
    val proxies = Proxies(File("no_backup"), System.getenv("APP_BACKEND"), "user-17") { System.getenv("APP_TOKEN") }
    try {
        println("${proxies.buy("order-17").sessionId} is yours")
    } catch (failure: HoplineException) {
        println(failure.message) // a sentence: what happened, whether money may have moved, what to do next
    }
    proxies.close()
}
