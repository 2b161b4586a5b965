package hopline

import kotlin.time.Duration

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
            "attempts" to attempts, "window_ms" to window, "timeout_ms" to timeout, "backoff_ms" to backoff,
            "throttled_backoff_ms" to throttledBackoff, "max_backoff_ms" to maxBackoff, "conflict_ms" to conflict, "retry_paid" to retryPaid,
        )
    return Secret(encode(*own, "account" to account, "allow_http" to allowHttp, "max_body" to maxBody, "retry" to retry))
}
