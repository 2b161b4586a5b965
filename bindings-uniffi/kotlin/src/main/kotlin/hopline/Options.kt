package hopline

import java.math.BigDecimal
import kotlin.time.Duration
import kotlinx.serialization.json.JsonObject

/** How a client repeats, waits and reads. Omitted options keep their defaults. */
public data class Options(
    /**
     * Names the account in a store that several accounts share: each sees only its own records, also after its key has changed. Default
     * none: then each account needs a store of its own.
     */
    val account: String? = null,
    /** Allows plain http to a host that is not loopback. Default false. */
    val allowHttp: Boolean? = null,
    /** The longest body that is read, in bytes. Default 8 MiB. */
    val maxBody: Int? = null,
    /** How often a request is sent at most, the first time included. Default 4. */
    val attempts: Int? = null,
    /** From the first send, the time within which another may be made. Default 60 s. */
    val window: Duration? = null,
    /** How long one attempt may take. Default 20 s. */
    val timeout: Duration? = null,
    /** How long the first repeat waits at most; each further one up to twice as long. Default 0.5 s. */
    val backoff: Duration? = null,
    /** The same after the service asked to slow down. Default 1 s. */
    val throttledBackoff: Duration? = null,
    /** No wait before a repeat is longer than this. Default 20 s. */
    val maxBackoff: Duration? = null,
    /** How long to wait, in all, for an earlier request with the same key to end. Default 2 minutes. */
    val conflict: Duration? = null,
    /** Whether a paid operation that the service failed may be bought again with a new key. Default false. */
    val retryPaid: Boolean? = null,
)

/** All the options of a client: those that are its own, and these. What holds a password is a secret from here on. */
internal fun Options.told(vararg own: Pair<String, Any?>): Secret {
    val retry =
        mapOf(
            "attempts" to attempts, "window_ms" to window?.ms(), "timeout_ms" to timeout?.ms(), "backoff_ms" to backoff?.ms(),
            "throttled_backoff_ms" to throttledBackoff?.ms(), "max_backoff_ms" to maxBackoff?.ms(), "conflict_ms" to conflict?.ms(),
            "retry_paid" to retryPaid,
        )
    return Secret(
        encode(
            *own, "account" to account, "allow_http" to allowHttp, "max_body" to maxBody,
            "retry" to retry.filterValues { it != null },
        ),
    )
}

/** The options of one call, as a printed method collects them. */
internal class Call(
    private val intent: String? = null,
    private val idempotencyKey: String? = null,
    private val waitForIntent: Boolean? = null,
    private val retryPaid: Boolean? = null,
    private val maxUnitPrice: BigDecimal? = null,
    private val expectedChargeUsd: BigDecimal? = null,
    private val attempts: Int? = null,
    private val window: Duration? = null,
    private val timeout: Duration? = null,
    private val headers: Map<String, Secret>? = null,
    private val credentials: Boolean? = null,
    private val autoRotate: Boolean? = null,
    private val deadline: Duration? = null,
    private val ends: List<String>? = null,
    private val until: Until? = null,
) {
    fun told(): String =
        encode(
            "intent" to intent, "idempotency_key" to idempotencyKey, "wait_for_intent" to waitForIntent,
            "retry_paid" to retryPaid,
            "max_unit_price" to maxUnitPrice, "expected_charge_usd" to expectedChargeUsd, "attempts" to attempts,
            "window_ms" to window?.ms(), "timeout_ms" to timeout?.ms(), "headers" to headers, "credentials" to credentials, "auto_rotate" to autoRotate,
            "deadline_ms" to deadline?.ms(), "ends" to ends,
            "until" to until?.run { JsonObject(mapOf("at" to tree(at), "is" to tree(isOneOf)) + listOfNotNull(atLeast?.let { "at_least" to tree(it) })) },
        )
}

/** Milliseconds as the core has them. Longer than 24 days is as good as 24 days. */
private fun Duration.ms(): Long = inWholeMilliseconds.coerceAtMost(Int.MAX_VALUE.toLong())
