package hopline

import java.math.BigDecimal
import kotlin.time.Duration

/**
 * A session at the end of its wait: usable, over, or (`PENDING`, `UNKNOWN`) not yet, at the deadline. The object is live: it shows the
 * newest state that its client has read, by any call.
 */
public class OpenSession internal constructor(private val client: Agent, private val known: KnownSession) : Reply {
    /** A session as a fake of the client returns it. It shows the answers of its own methods alone. */
    public constructor(agent: Agent, session: Session, phase: Phase = session.phase ?: Phase.READY, chargedUsd: BigDecimal? = null) :
        this(agent, KnownSession(session, phase, chargedUsd))

    /** The phase of the session. */
    override val phase: Phase get() = known.now.phase

    /** The last read of the session. */
    public val session: Session get() = known.now.session

    /** The number of known changes of its exit or credentials: make new connections once it has grown. */
    public val generation: Int get() = known.now.generation

    /** The session's id: the handle for all further operations. */
    public val sessionId: String get() = session.sessionId

    /** The charge of its purchase in USD, where the service stated it. */
    public val chargedUsd: BigDecimal? get() = known.chargedUsd

    /** The proxy; empty as long as the session is not usable. */
    public val proxy: Proxy get() = session.proxy ?: Proxy()

    override val raw: Raw get() = session.raw

    override val requestId: String? get() = session.requestId

    /**
     * Gives the session another exit address. `includeCredentials` requests its username and password; default: true if they are known now.
     */
    public suspend fun rotate(reason: RotateReason? = null, includeCredentials: Boolean? = null, intent: String? = null): Session =
        client.rotateSession(sessionId, reason = reason, includeCredentials = includeCredentials ?: hasCredentials, intent = intent).also { hear("rotate_session", it) }

    /** Reads the session. `includeCredentials` as in [rotate]. */
    public suspend fun refresh(includeCredentials: Boolean? = null): Session =
        client.getSession(sessionId, includeCredentials = includeCredentials ?: hasCredentials).also { hear("get_session", it) }

    /** Lengthens the session, if it is static. Renewing can charge money; under a daily cap, `expectedChargeUsd` states how much. */
    public suspend fun renew(duration: Long, intent: String? = null, expectedChargeUsd: BigDecimal? = null): RawReply =
        client.renewSession(sessionId, duration, intent = intent, expectedChargeUsd = expectedChargeUsd)

    /** Ends the session. */
    public suspend fun terminate(timeout: Duration? = null): RawReply = client.terminateSession(sessionId, timeout = timeout).also { known.end() }

    /**
     * Releases the session for another client, without ending it, as [AgentClient.releaseSession] does. Returns true if this client had it.
     */
    public suspend fun release(): Boolean = client.releaseSession(sessionId)

    /**
     * Returns advice after an observation through the session; with `autoRotate`, as [AgentClient.observe] does. Null if the session has
     * ended.
     */
    public suspend fun observe(seen: Seen): Verdict? = client.observe(sessionId, seen)

    /** Returns advice after the HTTP status of a request. */
    public suspend fun observe(status: Int): Verdict? = observe(Seen.Status(status))

    /** Returns advice after the exception of a request: [Seen.of]. */
    public suspend fun observe(error: Throwable): Verdict? = observe(Seen.of(error))

    override fun toString(): String = "OpenSession(sessionId=$sessionId, phase=$phase, generation=$generation)"

    /** A client takes in what all of its calls read; a fake does not. */
    private fun hear(operation: String, session: Session) {
        if (client !is AgentClient) known.hear(operation, session)
    }

    private val hasCredentials: Boolean? get() = if (proxy.password != null) true else null
}

/** The state that a client knows of a session with a handle. */
internal class KnownSession(session: Session, phase: Phase, val chargedUsd: BigDecimal?) {
    class State(val session: Session, val phase: Phase, val generation: Int)

    @Volatile
    var now = State(session, phase, 0)
        private set
    private var rotatedBy: String? = null

    /** Takes the session from the answer of a call. Several callers may have waited for one rotation. */
    @Synchronized
    fun hear(operation: String, heard: Session) {
        val isRotated = operation == "rotate_session" && (heard.requestId == null || heard.requestId != rotatedBy)
        if (isRotated) rotatedBy = heard.requestId
        val (before, proxy) = now.session.proxy to heard.proxy
        val isNew = isRotated || before != null && proxy != null && differ(before, proxy)
        // Members that this read did not request stay as they were, unless the exit or the credentials are new.
        val known = if (isNew || before == null) proxy else proxy?.let { filled(it, before) } ?: before
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
