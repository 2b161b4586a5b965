package hopline

/** The advice after an observation of a session. Rotating is your decision, unless the session has `autoRotate`. */
public sealed interface Verdict {
    /** Keep the exit. */
    public data object Keep : Verdict

    /** Rotate the session, with this reason. */
    public data class Rotate(val reason: RotateReason) : Verdict

    /** The session was rotated, for this reason: use it as it is now, with its new exit. */
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
