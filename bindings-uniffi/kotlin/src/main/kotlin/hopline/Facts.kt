package hopline

import java.math.BigDecimal
import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** Where a session or an order is. */
public enum class Phase {
    /** Not usable yet. */
    PENDING,

    /** Usable. */
    READY,

    /** Over. */
    ENDED,

    /** In a status that the contract does not name. */
    UNKNOWN,
}

internal fun phase(word: String?): Phase = Phase.entries.firstOrNull { it.name.lowercase() == word } ?: Phase.UNKNOWN

/** Progress of a command, for people and metrics. Nothing depends on it. */
public data class Event(
    /**
     * What happened: `repeating` (it will be sent again), `asking_time` (the service is asked for its time), `accepted` (a
     * purchase), `status` (of a session, when it was read), `ordered`, `order_status` (of an order, when it was read), `differing`
     * (members of an answer came in two spellings with two values), `priced` (what is to be bought), `watched` (what a read is repeated
     * for is not as it was), `in_doubt`, or `store_failed` (of a record that nothing waits for).
     */
    val event: String,
    /** Which operation. */
    val operation: String,
    /** Your own name for it. */
    val intent: String?,
    /** Of `repeating`: sends so far. */
    val attempts: Int?,
    /** Of `repeating`: the time until the next. */
    val delay: Duration?,
    /** Of `repeating`: what came of the last send. */
    val because: HoplineException?,
    /** Of `accepted` and `status`: the session. */
    val sessionId: String?,
    /** Of `ordered` and `order_status`: the order's number. */
    val orderNo: String?,
    /** Of `accepted`: USD. */
    val estimatedChargeUsd: BigDecimal?,
    /** Of `status` and `order_status`: as it came. */
    val status: String?,
    /** Of `status` and `order_status`: what it means for waiting. */
    val phase: Phase?,
    /** Of `priced`: USD for one unit. */
    val unitPrice: BigDecimal?,
    /** Of `watched`: what is there now, where it is a word or a number. */
    val value: String?,
    /** Of `differing`: where. The first spelling counts, and `raw` has both. */
    val members: List<String>?,
    /** Of `in_doubt` and `store_failed`: the record. */
    val record: String?,
)

/** Null if the text can't be read: nothing depends on an event, and least of all a program's life. */
internal fun event(text: String): Event? {
    val told =
        try {
            parse(text) as? JsonObject
        } catch (_: IllegalArgumentException) {
            null
        }
    return told?.let(::event)
}

private fun event(told: JsonObject): Event =
    Event(
        event = told.text("event").orEmpty(),
        operation = told.text("operation").orEmpty(),
        intent = told.text("intent"),
        attempts = told.number("attempts")?.toInt(),
        delay = told.number("delay_ms")?.milliseconds,
        because = (told["because"] as? JsonObject)?.let(::exception),
        sessionId = told.text("session_id"),
        orderNo = told.text("order_no"),
        estimatedChargeUsd = told.text("estimated_charge_usd")?.toBigDecimalOrNull(),
        status = told.text("status"),
        phase = told.text("phase")?.let(::phase),
        unitPrice = told.text("unit_price")?.toBigDecimalOrNull(),
        value = told.text("value"),
        members = (told["members"] as? JsonArray)?.mapNotNull { (it as? JsonPrimitive)?.content },
        record = told.text("record"),
    )

/** Something that the store holds: an operation under way or in doubt, a session, an order, a write that was accepted. */
public data class Saved(
    /** Its record, to resume, reconcile, settle or forget it by. It changes whenever what it stands for does. */
    val record: String,
    /** The operation that made it. */
    val operation: String,
    /**
     * What it stands for: `under_way` (in this client or another), `in_doubt`, `in_doubt_for_good`, `session`, `order`, `accepted` or
     * `refused`. What is `in_doubt_for_good` can't be sent again: it can only be settled. What is `accepted` is a write whose answer
     * [HoplineClient.resume] gives again, if its session is not over. A `refused` record can't be used, and its intent buys nothing until
     * [HoplineClient.forget] deletes it.
     */
    val holds: String,
    /** Who has it: this client, another living one, or nobody. */
    val whose: Whose,
    /** Your own name for it. */
    val intent: String?,
    /** Its session. */
    val sessionId: String?,
    /** The number of its order. */
    val orderNo: String?,
    /** The status of the session or the order, when it was last read. */
    val status: String?,
    /** Since when it is in doubt. */
    val inDoubtSince: Instant?,
    /** From when on it can be settled as not happened: an hour after it may have been sent last. */
    val settleFrom: Instant?,
    /** Of `refused`: why, such as `damaged`, `other_version`, `other_api` or `other_account`. */
    val reason: String?,
)

/** A page of what the store holds, and what the next one is behind. */
internal class SavedPage(val entries: List<Saved>, val after: String?)

internal fun savedPage(told: JsonObject): SavedPage =
    SavedPage((told["entries"] as? JsonArray).orEmpty().map { saved(it as JsonObject) }, told.text("after"))

private fun saved(told: JsonObject): Saved =
    Saved(
        record = told.text("record").orEmpty(),
        operation = told.text("operation").orEmpty(),
        holds = told.text("holds").orEmpty(),
        whose = Whose.entries.firstOrNull { it.name.lowercase() == told.text("whose") } ?: Whose.OTHER,
        intent = told.text("intent"),
        sessionId = told.text("session_id"),
        orderNo = told.text("order_no"),
        status = told.text("status"),
        inDoubtSince = told.number("in_doubt_since")?.let(Instant::ofEpochMilli),
        settleFrom = told.number("settle_from")?.let(Instant::ofEpochMilli),
        reason = told.text("reason"),
    )

/** What a request through a session met. */
public sealed interface Seen {
    /** An answer with this HTTP status. */
    public data class Status(val status: Int) : Seen

    /** A page that asks for a captcha. */
    public data object Captcha : Seen

    /** No answer. */
    public data object Timeout : Seen

    /** Another block. */
    public data object Block : Seen
}

internal fun told(seen: Seen): String =
    when (seen) {
        is Seen.Status -> encode("status" to seen.status)
        Seen.Captcha -> "\"captcha\""
        Seen.Timeout -> "\"timeout\""
        Seen.Block -> "\"block\""
    }

/** What was seen of a session comes to this. To rotate is your decision, unless it was made by `autoRotate`. */
public sealed interface Verdict {
    /** Go on with it. */
    public data object Keep : Verdict

    /** Rotate it, and give this reason. */
    public data class Rotate(val reason: RotateReason) : Verdict

    /** It was rotated, for this reason: use it as it is now, with its new exit. */
    public data class Rotated(val reason: RotateReason, val session: Session) : Verdict

    /** Wait and see. */
    public data class Unsure(val why: String) : Verdict
}

/** `rotated` is the session that an advice has waited for. */
internal fun verdict(advice: JsonObject, rotated: Session?): Verdict {
    val reason = RotateReason(advice.text("reason").orEmpty())
    return when {
        rotated != null -> Verdict.Rotated(reason, rotated)
        advice.text("verdict") == "keep" -> Verdict.Keep
        advice.text("verdict") == "rotate" -> Verdict.Rotate(reason)
        else -> Verdict.Unsure(advice.text("why").orEmpty())
    }
}
