package hopline

import java.math.BigDecimal
import kotlin.time.Duration

/** A session as waiting for it ended: usable, over, or (`PENDING`, `UNKNOWN`) not yet, at the deadline. */
public class OpenSession internal constructor(
    private val client: AgentClient,
    /** Where it is. */
    override val phase: Phase,
    /** The last read of it. */
    public val session: Session,
) : Reply {
    /** Its id: the handle for everything that comes after. */
    public val sessionId: String get() = session.sessionId

    /** How to reach it; empty as long as it is not usable. */
    public val proxy: Proxy get() = session.proxy ?: Proxy()

    override val raw: Raw get() = session.raw

    override val requestId: String? get() = session.requestId

    /** Gives it another exit address. `includeCredentials` asks for its new username and password. */
    public suspend fun rotate(reason: RotateReason? = null, includeCredentials: Boolean? = null, intent: String? = null): Session =
        client.rotateSession(sessionId, reason = reason, includeCredentials = includeCredentials, intent = intent)

    /** Lengthens it, if it is static. It can charge money; under a daily cap, `expectedChargeUsd` says how much. */
    public suspend fun renew(duration: Long, intent: String? = null, expectedChargeUsd: BigDecimal? = null): RawReply =
        client.renewSession(sessionId, duration, intent = intent, expectedChargeUsd = expectedChargeUsd)

    /** Ends it. */
    public suspend fun terminate(timeout: Duration? = null): RawReply = client.terminateSession(sessionId, timeout = timeout)

    /** Lets another client have it, without ending it, as [AgentClient.releaseSession] does. Returns whether this client had it. */
    public suspend fun release(): Boolean = client.releaseSession(sessionId)

    /** Advice on what was seen through it; with `autoRotate`, what [AgentClient.observe] does. Null if it has ended. */
    public suspend fun observe(seen: Seen): Verdict? = client.observe(sessionId, seen)

    override fun toString(): String = "OpenSession(sessionId=$sessionId, phase=$phase)"
}
