package hopline

import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonPrimitive

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

internal fun told(seen: Seen): JsonElement =
    when (seen) {
        is Seen.Status -> tree(mapOf("status" to seen.status))
        Seen.Captcha -> JsonPrimitive("captcha")
        Seen.Timeout -> JsonPrimitive("timeout")
        Seen.Block -> JsonPrimitive("block")
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
internal fun verdict(told: VerdictFields, rotated: Session?): Verdict =
    when (told.verdict) {
        VerdictName.KEEP -> Verdict.Keep
        VerdictName.ROTATE -> Verdict.Rotate(checkNotNull(told.reason))
        VerdictName.ROTATING -> Verdict.Rotated(checkNotNull(told.reason), checkNotNull(rotated))
        VerdictName.UNSURE -> Verdict.Unsure(told.why.orEmpty())
    }
