package hopline

import java.time.Instant

/**
 * What an operation ended with other than its answer, with all that is needed to decide what to do next. It holds no
 * secret, unless [raw] does.
 *
 * It prints as one sentence: what happened to which operation, whether money may have moved, what to do next.
 */
public sealed class HoplineException private constructor(fields: ErrorFields) : Exception(fields.message, fields.cause) {
    /** Java's serialization writes it, and so no answer of the service is in it. */
    private val fields = fields.copy(details = null, raw = null)
    private val detailsText = fields.details?.text

    /** What kind of failure, as a word. Each has a subclass. */
    public val kind: Kind get() = fields.kind

    /** Whether the operation took effect, and so whether money moved. */
    public val effect: Effect get() = fields.effect

    /** Which operation. */
    public val operation: String get() = fields.operation

    /** What happened, as the middle of a sentence. */
    public val what: String get() = fields.what

    /** What to do next. */
    public val advice: Advice get() = fields.advice

    /**
     * Of a [Refused]: whether this client refused it, and not the service. That is so for the daily cap, the price limit, an account that is
     * not ready, a `settle` that came too early, a `forget` of a session that the client has, a record that has changed, a `resume`
     * of what an app's own backend refused, and a `reconcile` that has nothing to look up.
     */
    public val isRefusedByUs: Boolean get() = fields.refusedByUs

    /** The field that was refused; of `decode`, where in the answer it does not fit, such as `data.items[3].price`. */
    public val field: String? get() = fields.field

    /** The service's code, as it came. */
    public val code: String? get() = fields.code

    /** The HTTP status. */
    public val status: Int? get() = fields.status

    /** The service's own text, whose beginning is part of the message, or the beginning of a body that is not in the API's format. */
    public val text: String? get() = fields.text

    /** The content type of such a body. */
    public val contentType: String? get() = fields.contentType

    /** The service's details, as they came. */
    public val details: Raw? get() = detailsText?.let(::Raw)

    /** To quote when reporting a problem. */
    public val requestId: String? get() = fields.requestId

    /** The idempotency key of the last send. */
    public val idempotencyKey: String? get() = fields.idempotencyKey

    /** Your own name for the operation. */
    public val intent: String? get() = fields.intent

    /** The session it was about, where that is known. */
    public val sessionId: String? get() = fields.sessionId

    /** The order it was about, where that is known. */
    public val orderNo: String? get() = fields.orderNo

    /** The record to resume, reconcile or settle it by. */
    public val record: String? get() = fields.record

    /** Not before this time. */
    public val retryAt: Instant? get() = fields.retryAt

    /** How often it was sent. */
    public val attempts: Int get() = fields.attempts

    /** `data` of a success that does not fit its type. */
    @Transient
    public val raw: Raw? = fields.raw

    /** What the store or the transport said about it. */
    public var notes: List<String> = emptyList()
        internal set

    override fun toString(): String = (listOf("${javaClass.simpleName}: $message") + notes).joinToString("; ")

    /** Refused here, before anything was sent. */
    public class Invalid internal constructor(fields: ErrorFields) : HoplineException(fields)

    /**
     * Refused by the service, or, if [isRefusedByUs], by this client. The operation was not done, unless [effect] is `DONE`: then a read that
     * follows it was refused.
     */
    public class Refused internal constructor(fields: ErrorFields) : HoplineException(fields)

    /**
     * The service could not be reached or could not do it. The operation was not done, unless [effect] is `DONE`: then a read that follows it
     * failed.
     */
    public class Unavailable internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** It may have been done: nobody knows yet. Do as its [advice] says, by its [record]. */
    public class InDoubt internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The response was not in the API's format; it may be a gateway's error page. */
    public class Protocol internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** It was done, but the answer does not fit its type; [raw] keeps it. */
    public class Decode internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The session of this intent has ended. Nothing was bought: choose a new intent, such as one with the date, or forget this one. */
    public class Ended internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** Another call or another client has the session, the intent or the key. */
    public class Busy internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** Closing the client cancelled it. A coroutine that is cancelled gets its `CancellationException` instead. */
    public class Cancelled internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The store could not do what the operation needs. */
    public class Store internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The library was called in a way that has no meaning. */
    public class Misuse internal constructor(fields: ErrorFields) : HoplineException(fields)
}

/** The exception of an error. */
internal fun exception(fields: ErrorFields): HoplineException =
    when (fields.kind) {
        Kind.INVALID -> HoplineException.Invalid(fields)
        Kind.REFUSED -> HoplineException.Refused(fields)
        Kind.UNAVAILABLE -> HoplineException.Unavailable(fields)
        Kind.IN_DOUBT -> HoplineException.InDoubt(fields)
        Kind.PROTOCOL -> HoplineException.Protocol(fields)
        Kind.DECODE -> HoplineException.Decode(fields)
        Kind.ENDED -> HoplineException.Ended(fields)
        Kind.BUSY -> HoplineException.Busy(fields)
        Kind.CANCELLED -> HoplineException.Cancelled(fields)
        Kind.STORE -> HoplineException.Store(fields)
        Kind.MISUSE -> HoplineException.Misuse(fields)
    }

internal fun exception(packed: ByteArray): HoplineException = Packed(packed).exception()

/** An argument of a client that does not fit. */
internal fun unfit(field: String, what: String): HoplineException =
    own(Kind.INVALID, Effect.NONE, "client", what, Advice.CHANGE_REQUEST, "nothing was changed", field)

/** The error of a call that has no answer although its client was closed, and of which the core does not say more. */
internal fun unheard(operation: String): HoplineException {
    val what = "has no answer, because its client was closed meanwhile"
    val then = "it may have taken effect; check the account's resources and charges, and settle its record if it has one"
    return own(Kind.MISUSE, Effect.UNKNOWN, operation, what, Advice.CHECK_ACCOUNT, then)
}

/** An error of this package's own. */
private fun own(kind: Kind, effect: Effect, operation: String, what: String, advice: Advice, then: String, field: String? = null) =
    exception(ErrorFields("$operation: $what; $then", false, kind, effect, operation, what, advice, field, attempts = 0))
