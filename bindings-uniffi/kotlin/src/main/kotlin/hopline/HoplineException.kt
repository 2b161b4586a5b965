package hopline

import java.time.Instant
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject

/** Whether an operation had its effect. */
public enum class Effect {
    /** It had none and will have none. */
    NONE,

    /** Nobody knows yet. */
    UNKNOWN,

    /** It was done. */
    DONE,
}

/**
 * What an operation ended with other than its answer, with all that is needed to decide what to do next. It holds no
 * secret, unless [raw] does.
 *
 * It prints as one sentence: what happened to which operation, whether money may have moved, what to do next.
 */
public sealed class HoplineException(told: JsonObject) :
    Exception(told.text("message"), (told["cause"] as? JsonObject)?.let(::exception)) {
    /** What it knows, for Java's serialization, which is to write no answer of the service. */
    private val kept = JsonObject(told - "raw").toString()

    @Transient
    private var read: JsonObject? = told
    private val told: JsonObject get() = read ?: (parse(kept) as JsonObject).also { read = it }

    /** Whether the operation took effect, and so whether money moved. */
    public val effect: Effect
        get() = told.text("effect").let { word -> Effect.entries.firstOrNull { it.name.lowercase() == word } } ?: Effect.UNKNOWN

    /** Which operation. */
    public val operation: String get() = told.text("operation").orEmpty()

    /** What happened, as the middle of a sentence. */
    public val what: String get() = told.text("what").orEmpty()

    /** What to do next, as a word such as `resume`, `reconcile`, `wait_order` or `recharge`. */
    public val advice: String get() = told.text("advice") ?: "nothing"

    /**
     * Of a [Refused]: whether this client refused it, and not the service. That is so for the daily cap, the price limit, an account that is
     * not ready, a `settle` that came too early, a `forget` of a session that the client has, a record that has changed, and a `reconcile`
     * that has nothing to look up.
     */
    public val isRefusedByUs: Boolean get() = told.text("refused_by_us") == "true"

    /** The field that was refused; of `decode`, where in the answer it does not fit, such as `data.items[3].price`. */
    public val field: String? get() = told.text("field")

    /** The service's code, as it came. */
    public val code: String? get() = told.text("code")

    /** The HTTP status. */
    public val status: Int? get() = told.number("status")?.toInt()

    /** The service's own text, whose beginning is part of the message, or the beginning of a body that is not in the API's format. */
    public val text: String? get() = told.text("text")

    /** The content type of such a body. */
    public val contentType: String? get() = told.text("content_type")

    /** The service's details, as they came. */
    public val details: JsonElement? get() = told["details"]?.takeUnless { it is JsonNull }

    /** To quote when reporting a problem. */
    public val requestId: String? get() = told.text("request_id")

    /** The idempotency key of the last send. */
    public val idempotencyKey: String? get() = told.text("idempotency_key")

    /** Your own name for the operation. */
    public val intent: String? get() = told.text("intent")

    /** The session it was about, where that is known. */
    public val sessionId: String? get() = told.text("session_id")

    /** The order it was about, where that is known. */
    public val orderNo: String? get() = told.text("order_no")

    /** The record to resume, reconcile or settle it by. */
    public val record: String? get() = told.text("record")

    /** Not before this time. */
    public val retryAt: Instant? get() = told.number("retry_at")?.let(Instant::ofEpochMilli)

    /** How often it was sent. */
    public val attempts: Int get() = told.number("attempts")?.toInt() ?: 0

    /** `data` of a success that does not fit its type. */
    public val raw: Raw? get() = told["raw"]?.takeUnless { it is JsonNull }?.let { Raw(it.toString()) }

    /** What the store or the transport said about it. */
    public var notes: List<String> = emptyList()
        internal set

    override fun toString(): String = (listOf("${javaClass.simpleName}: $message") + notes).joinToString("; ")

    /** Refused here, before anything was sent. */
    public class Invalid internal constructor(told: JsonObject) : HoplineException(told)

    /**
     * Refused by the service, or, if [isRefusedByUs], by this client. The operation was not done, unless [effect] is `DONE`: then a read that
     * follows it was refused.
     */
    public class Refused internal constructor(told: JsonObject) : HoplineException(told)

    /**
     * The service could not be reached or could not do it. The operation was not done, unless [effect] is `DONE`: then a read that follows it
     * failed.
     */
    public class Unavailable internal constructor(told: JsonObject) : HoplineException(told)

    /** It may have been done: nobody knows yet. Do as its [advice] says, by its [record]. */
    public class InDoubt internal constructor(told: JsonObject) : HoplineException(told)

    /** The response was not in the API's format; it may be a gateway's error page. */
    public class Protocol internal constructor(told: JsonObject) : HoplineException(told)

    /** It was done, but the answer does not fit its type; [raw] keeps it. */
    public class Decode internal constructor(told: JsonObject) : HoplineException(told)

    /** The session of this intent has ended. Nothing was bought: choose a new intent, such as one with the date, or forget this one. */
    public class Ended internal constructor(told: JsonObject) : HoplineException(told)

    /** Another call or another client has the session, the intent or the key. */
    public class Busy internal constructor(told: JsonObject) : HoplineException(told)

    /** Closing the client cancelled it. A coroutine that is cancelled gets its `CancellationException` instead. */
    public class Cancelled internal constructor(told: JsonObject) : HoplineException(told)

    /** The store could not do what the operation needs. */
    public class Store internal constructor(told: JsonObject) : HoplineException(told)

    /** The library was called in a way that has no meaning. */
    public class Misuse internal constructor(told: JsonObject) : HoplineException(told)
}

/** The exception of an error that the core gave. */
internal fun exception(told: JsonObject): HoplineException =
    when (told.text("kind")) {
        "invalid" -> HoplineException.Invalid(told)
        "refused" -> HoplineException.Refused(told)
        "unavailable" -> HoplineException.Unavailable(told)
        "in_doubt" -> HoplineException.InDoubt(told)
        "protocol" -> HoplineException.Protocol(told)
        "decode" -> HoplineException.Decode(told)
        "ended" -> HoplineException.Ended(told)
        "busy" -> HoplineException.Busy(told)
        "cancelled" -> HoplineException.Cancelled(told)
        "store" -> HoplineException.Store(told)
        else -> HoplineException.Misuse(told)
    }

internal fun exception(text: String): HoplineException = exception(parse(text) as JsonObject)

/** An error of this package's own: nothing was sent. */
internal fun refusal(
    kind: String,
    operation: String,
    what: String,
    then: String = "",
    field: String? = null,
    intent: String? = null,
    advice: String = "nothing",
): HoplineException {
    val subject = if (intent == null) operation else "$operation `$intent`"
    val told =
        encode(
            "kind" to kind, "effect" to "none", "operation" to operation, "what" to what, "advice" to advice, "field" to field,
            "intent" to intent, "message" to "$subject: $what; nothing was changed$then",
        )
    return exception(told)
}

/** The error of a call that was not answered when its client was closed, because the store did not answer. */
internal fun unheard(operation: String): HoplineException {
    val what = "has no answer, because the store did not answer while the client was closed"
    return exception(
        encode(
            "kind" to "store", "effect" to "unknown", "operation" to operation, "what" to what, "advice" to "mend_store",
            "message" to "$operation: $what; nobody knows whether it was done; mend the store, and look at what it holds",
        ),
    )
}
