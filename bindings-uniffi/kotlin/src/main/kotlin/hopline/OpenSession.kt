package hopline

import java.math.BigDecimal
import kotlin.time.Duration

/**
 * A session as waiting for it ended: usable, over, or (`PENDING`, `UNKNOWN`) not yet, at the deadline. It is live: it shows the newest state
 * that its client has seen, whichever call has read it.
 */
public class OpenSession internal constructor(private val client: AgentClient, private val known: KnownSession) : Reply {
    /** Where it is. */
    override val phase: Phase get() = known.now.phase

    /** The last read of it. */
    public val session: Session get() = known.now.session

    /** How often its exit or its credentials have changed, as far as is known: make new connections once it has grown. */
    public val generation: Int get() = known.now.generation

    /** Its id: the handle for everything that comes after. */
    public val sessionId: String get() = session.sessionId

    /** What its purchase was charged, in USD, where the service said so. */
    public val chargedUsd: BigDecimal? get() = known.chargedUsd

    /** How to reach it; empty as long as it is not usable. */
    public val proxy: Proxy get() = session.proxy ?: Proxy()

    override val raw: Raw get() = session.raw

    override val requestId: String? get() = session.requestId

    /** Gives it another exit address. `includeCredentials` asks for its username and password; default whether they are known now. */
    public suspend fun rotate(reason: RotateReason? = null, includeCredentials: Boolean? = null, intent: String? = null): Session =
        client.rotateSession(sessionId, reason = reason, includeCredentials = includeCredentials ?: hasCredentials, intent = intent)

    /** Reads it. `includeCredentials` as in [rotate]. */
    public suspend fun refresh(includeCredentials: Boolean? = null): Session =
        client.getSession(sessionId, includeCredentials = includeCredentials ?: hasCredentials)

    /** Lengthens it, if it is static. It can charge money; under a daily cap, `expectedChargeUsd` says how much. */
    public suspend fun renew(duration: Long, intent: String? = null, expectedChargeUsd: BigDecimal? = null): RawReply =
        client.renewSession(sessionId, duration, intent = intent, expectedChargeUsd = expectedChargeUsd)

    /** Ends it. */
    public suspend fun terminate(timeout: Duration? = null): RawReply = client.terminateSession(sessionId, timeout = timeout).also { known.end() }

    /** Lets another client have it, without ending it, as [AgentClient.releaseSession] does. Returns whether this client had it. */
    public suspend fun release(): Boolean = client.releaseSession(sessionId)

    /** Advice on what was seen through it; with `autoRotate`, what [AgentClient.observe] does. Null if it has ended. */
    public suspend fun observe(seen: Seen): Verdict? = client.observe(sessionId, seen)

    /** The same, of the HTTP status that a request met. */
    public suspend fun observe(status: Int): Verdict? = observe(Seen.Status(status))

    /** The same, of the exception that a request met: [Seen.of]. */
    public suspend fun observe(error: Throwable): Verdict? = observe(Seen.of(error))

    override fun toString(): String = "OpenSession(sessionId=$sessionId, phase=$phase, generation=$generation)"

    private val hasCredentials: Boolean? get() = if (proxy.password != null) true else null
}

/** What a client knows of a session that somebody has a handle of. */
internal class KnownSession(session: Session, phase: Phase, val chargedUsd: BigDecimal?) {
    class State(val session: Session, val phase: Phase, val generation: Int)

    @Volatile
    var now = State(session, phase, 0)
        private set
    private var rotatedBy: String? = null

    /** A call was answered with it. Several may have waited for one rotation. */
    @Synchronized
    fun hear(operation: String, heard: Session) {
        val isRotated = operation == "rotate_session" && (heard.requestId == null || heard.requestId != rotatedBy)
        if (isRotated) rotatedBy = heard.requestId
        val (before, proxy) = now.session.proxy to heard.proxy
        val isNew = isRotated || before != null && proxy != null && differ(before, proxy)
        // What was not asked for is as it was, unless there is a new one.
        val known = if (isNew || before == null) proxy ?: before else proxy?.let { filled(it, before) } ?: before
        now = State(heard.copy(proxy = known), heard.phase ?: now.phase, if (isNew) now.generation + 1 else now.generation)
    }

    @Synchronized
    fun end() {
        now = State(now.session, Phase.ENDED, now.generation)
    }

    private fun differ(one: Proxy, other: Proxy): Boolean = members(one).zip(members(other)).any { (a, b) -> a != null && b != null && a != b }

    private fun members(proxy: Proxy): List<Any?> = proxy.run { listOf(host, port, protocol, username, password, fullUrl) }

    private fun filled(proxy: Proxy, before: Proxy): Proxy =
        Proxy(
            host = proxy.host ?: before.host,
            port = proxy.port ?: before.port,
            protocol = proxy.protocol ?: before.protocol,
            username = proxy.username ?: before.username,
            password = proxy.password ?: before.password,
            fullUrl = proxy.fullUrl ?: before.fullUrl,
        )
}
