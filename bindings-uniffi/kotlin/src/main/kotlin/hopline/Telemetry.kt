package hopline

import kotlin.time.Duration
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/**
 * Builds an event for `reportSessionEvent` of what a request through a session met.
 *
 * The service does not show which members it reads, so their names are Hopline's own; any other object may be reported as well.
 *
 * @param status the HTTP status that the target answered with, 100 to 599
 * @param seen what came in place of an answer: a captcha, nothing in time, or another block
 * @param latency how long the request took
 * @param bytes how much was transferred, at least 0
 * @param target the host name of the target; of a URL only that is kept, since the rest may hold secrets
 * @param more whatever else is worth telling, by names of your own
 */
public fun sessionEvent(
    status: Int? = null,
    seen: Seen? = null,
    latency: Duration? = null,
    bytes: Long? = null,
    target: String? = null,
    more: Map<String, JsonElement> = emptyMap(),
): JsonObject {
    val facts =
        mapOf(
            "status" to status, "seen" to seen?.let(::told), "latency_ms" to latency?.inWholeMilliseconds, "bytes" to bytes,
            "target" to target,
        )
    return ask("session_event", "facts" to facts, "more" to more)
}
