package hopline

import java.time.Instant

/**
 * The failure of an operation, with everything that is needed to decide what to do next. An exception holds no secret, except in [raw].
 *
 * The message is one sentence: what happened to which operation, whether money may have moved, what to do next.
 */
public sealed class HoplineException private constructor(fields: ErrorFields) : Exception(fields.message, fields.cause) {
    /** Serialized by Java, so it holds no answer of the service. */
    private val fields = fields.copy(details = null, raw = null)
    private val detailsText = fields.details?.text

    /** The kind of failure, as a word. Each has a subclass. */
    public val kind: Kind get() = fields.kind

    /** The effect of the operation, and so whether money moved. */
    public val effect: Effect get() = fields.effect

    /** The operation by the contract's name, for programs: `create_session` for a purchase by `openSession`, with which the message begins. */
    public val operation: String get() = fields.operation

    /** The failure, as the middle of a sentence. */
    public val what: String get() = fields.what

    /** The next step. */
    public val advice: Advice get() = fields.advice

    /**
     * Of a [Refused]: true if this client refused the operation, and not the service: for the daily cap, the price limit, an account that
     * is not ready, a `settle` that came too early, a `forget` of a session of this client, a record that has changed, a `resume` of an
     * operation that an app's own backend refused, and a `reconcile` that has nothing to look up.
     */
    public val isRefusedByUs: Boolean get() = fields.refusedByUs

    /** The field that was refused; of `decode`, the place in the answer that does not fit, such as `data.items[3].price`. */
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

    /** The request id, to quote when reporting a problem. */
    public val requestId: String? get() = fields.requestId

    /** Of an [Unavailable] from a pool: the reason. */
    public val reason: PoolReason? get() = fields.reason

    /** The idempotency key of the last send. */
    public val idempotencyKey: String? get() = fields.idempotencyKey

    /** Your own name for the operation. */
    public val intent: String? get() = fields.intent

    /** The session of the operation, where it is known. */
    public val sessionId: String? get() = fields.sessionId

    /** The order of the operation, where its number is known. */
    public val orderNo: String? get() = fields.orderNo

    /** The record to resume, reconcile or settle the operation by. */
    public val record: String? get() = fields.record

    /** The earliest time to try again. */
    public val retryAt: Instant? get() = fields.retryAt

    /** The number of sends. */
    public val attempts: Int get() = fields.attempts

    /** `data` of a success that does not fit its type. */
    @Transient
    public val raw: Raw? = fields.raw

    /** Messages of the store or the transport about the failure. */
    public var notes: List<String> = emptyList()
        internal set

    override fun toString(): String = (listOf("${javaClass.simpleName}: $message") + notes).joinToString("; ")

    public companion object {
        /** An exception as a client throws it, for tests of code that handles it. Its class is that of its [kind]. */
        public fun of(
            kind: Kind,
            effect: Effect = Effect.NONE,
            advice: Advice = Advice.STOP,
            operation: String = "test",
            what: String = "failed",
            code: String? = null,
            sessionId: String? = null,
            record: String? = null,
            retryAt: Instant? = null,
        ): HoplineException =
            exception(
                ErrorFields(
                    "$operation: $what", false, kind, effect, operation, what, advice, code = code, sessionId = sessionId, record = record,
                    retryAt = retryAt, attempts = 1,
                )
            )
    }

    /** Refused by this client before anything was sent. */
    public class Invalid internal constructor(fields: ErrorFields) : HoplineException(fields)

    /**
     * Refused by the service, or, if [isRefusedByUs], by this client. The operation did not take effect, unless [effect] is `DONE`: then a
     * read that follows it was refused.
     */
    public class Refused internal constructor(fields: ErrorFields) : HoplineException(fields)

    /**
     * The service could not be reached or failed. The operation did not take effect, unless [effect] is `DONE`: then a read that follows it
     * failed.
     */
    public class Unavailable internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The operation may have taken effect; nothing has decided it yet. Follow its [advice], by its [record]. */
    public class InDoubt internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The response was not in the API's format; it may be a gateway's error page. */
    public class Protocol internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The operation took effect, but the answer does not fit its type; [raw] keeps it. */
    public class Decode internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The session of this intent has ended. Nothing was bought: choose a new intent, such as one with the date, or forget this one. */
    public class Ended internal constructor(fields: ErrorFields) : HoplineException(fields)

    /**
     * The session was not usable at the deadline. The session goes on: wait for it by its [session], end it, or start its intent again. If
     * the session was bought, [effect] is `DONE`.
     */
    public class NotReady internal constructor(fields: ErrorFields) : HoplineException(fields) {
        /** The handle of the session; null after the exception was serialized. */
        @Transient
        public var session: OpenSession? = null
            internal set
    }

    /** Another call or another client owns the session, the intent or the key. */
    public class Busy internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** Closing the client cancelled it. A coroutine that is cancelled gets its `CancellationException` instead. */
    public class Cancelled internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The store could not do what the operation needs. */
    public class Store internal constructor(fields: ErrorFields) : HoplineException(fields)

    /** The library was used in a way that is not allowed. */
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
        Kind.NOT_READY -> HoplineException.NotReady(fields)
        Kind.BUSY -> HoplineException.Busy(fields)
        Kind.CANCELLED -> HoplineException.Cancelled(fields)
        Kind.STORE -> HoplineException.Store(fields)
        Kind.MISUSE -> HoplineException.Misuse(fields)
    }

internal fun exception(packed: ByteArray): HoplineException = Packed(packed).exception()

/** The error for an invalid argument of a client. */
internal fun unfit(field: String, what: String): HoplineException =
    own(Kind.INVALID, Effect.NONE, "client", what, Advice.CHANGE_REQUEST, "nothing was changed", field)

/** The error for the use of a lease that was given back. */
internal fun over(): HoplineException =
    own(Kind.MISUSE, Effect.NONE, "lease", "the lease was given back", Advice.CHANGE_REQUEST, "acquire another one")

/** The error of a call without an answer whose client was closed, if the core does not report more. */
internal fun unheard(operation: String): HoplineException {
    val what = "has no answer, because its client was closed meanwhile"
    val then = "it may have taken effect; check the account's resources and charges, and settle its record if it has one"
    return own(Kind.MISUSE, Effect.UNKNOWN, operation, what, Advice.CHECK_ACCOUNT, then)
}

/** An error of this package's own. */
private fun own(kind: Kind, effect: Effect, operation: String, what: String, advice: Advice, then: String, field: String? = null) =
    exception(ErrorFields("$operation: $what; $then", false, kind, effect, operation, what, advice, field, attempts = 0))
