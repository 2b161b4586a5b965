package hopline

import kotlin.time.Duration
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/**
 * Builds an event for `reportSessionEvent` from a request through a session.
 *
 * The service does not document which members it reads, so their names are Hopline's own; any other object may be reported as well.
 *
 * @param status the HTTP status of the target's answer, 100 to 599
 * @param seen the outcome if there was no usable answer: a captcha, a timeout, or another block
 * @param latency how long the request took
 * @param bytes the transferred bytes, at least 0
 * @param target the host name of the target; of a URL only the host is kept, since the rest may hold secrets
 * @param more further members, by names of your own
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
