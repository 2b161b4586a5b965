package hopline

import kotlin.time.Duration
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** What is more of a URL than its host name, which may hold secrets. */
private val BEYOND_A_HOST = Regex("[/?#@\\\\\\s]")

/** The names of the common facts. */
private val COMMON = setOf("status", "seen", "latency_ms", "bytes", "target")

/**
 * Builds an event for `reportSessionEvent` of what a request through a session met.
 *
 * The service does not show which members it reads, so their names are Hopline's own; any other object may be reported as well.
 *
 * @param status the HTTP status that the target answered with, 100 to 599
 * @param seen what came in place of an answer: a captcha, nothing in time, or another block
 * @param latency how long the request took
 * @param bytes how much was transferred, at least 0
 * @param target the host name of the target, and no more of its URL: the rest may hold secrets
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
    if (status != null && status !in 100..599) refuse("status", "must be an HTTP status, 100 to 599")
    if (seen is Seen.Status) refuse("seen", "is a status; give it as `status`")
    if (latency != null && latency.isNegative()) refuse("latency", "must not be negative")
    if (bytes != null && bytes < 0) refuse("bytes", "must not be negative")
    if (target != null && (target.isEmpty() || target.contains(BEYOND_A_HOST))) refuse("target", "must be a host name, and no more of a URL")
    val common =
        encode(
            "status" to status, "seen" to seen?.let { parse(told(it)) }, "latency_ms" to latency?.inWholeMilliseconds, "bytes" to bytes,
            "target" to target,
        )
    more.keys.firstOrNull { it in COMMON }?.let { refuse("more", "has `$it`, which is a parameter of its own") }
    return JsonObject((parse(common) as JsonObject) + more)
}

private fun refuse(field: String, rule: String): Nothing =
    throw refusal("invalid", "session_event", "`$field` $rule", field = field, advice = "change_request")
