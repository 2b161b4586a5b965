package hopline

import com.sun.jna.internal.Cleaner
import java.util.logging.Logger

// A client without references is closed, so that its pools buy nothing more. The engine, which timers, requests and the store keep alive,
// holds no client as long as no caller waits for an answer.

/** Closes the engine once its client was garbage-collected, and logs a warning. Called in the client's constructor. */
internal fun watch(client: HoplineClient<*>, engine: Engine) {
    val place = callersPlace()
    Cleaner.getCleaner().register(client) { engine.forget { Logger.getLogger("hopline").warning("a Hopline client that was made at $place was not closed") } }
}

/** The place of the caller, such as `Shop.kt:17`. */
private fun callersPlace(): String {
    val own = HoplineClient::class.java.name.substringBeforeLast('.')
    val caller = Throwable().stackTrace.firstOrNull { it.className.substringBeforeLast('.', "") != own } ?: return "a place that is not known"
    return "${caller.fileName ?: caller.className}:${caller.lineNumber}"
}
