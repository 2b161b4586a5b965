package hopline

import hopline.core.Client
import hopline.core.Taken
import hopline.core.misfit
import hopline.core.pageParams
import hopline.core.pageTurn
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** Reads the `data` of an answer as a type. */
internal typealias Reader<T> = (JsonElement, Told) -> T

internal fun rawReply(@Suppress("UNUSED_PARAMETER") data: JsonElement, told: Told): RawReply = RawReply(told.raw, told.requestId, told.phase)

/** What the printed operations do with a call. */
public abstract class Caller internal constructor() {
    internal abstract val engine: Engine
    internal abstract val self: AgentClient

    internal suspend fun <T> call(operation: String, params: String, call: Call, read: Reader<T>): T =
        typed(operation, engine.run(operation, call.intent(), begin(operation, params, call)), read)

    internal fun <I, P : Reply> walk(
        operation: String,
        params: String,
        call: Call,
        position: String?,
        maxPages: Int?,
        read: Reader<P>,
        items: (P) -> List<I>,
    ): Pages<I, P> =
        Pages(operation, position, maxPages, items) { at ->
            val given = asked { pageParams(at, sound(operation, "parameters", params)) }
            val ended = engine.run(operation, null, begin(operation, given, call))
            val page = typed(operation, ended, read)
            page to asked { pageTurn(at, (ended.taken as Taken.Answered).answer.facts) }
        }

    internal suspend fun open(params: String, call: Call): OpenSession =
        session("create_session", engine.run("open_session", call.intent(), begin("open_session", params, call)))

    internal suspend fun waitFor(params: String, call: Call): OpenSession =
        session("get_session", engine.run("wait_session", null, begin("wait_session", params, call)))

    /** A session where waiting was what was resumed; otherwise the answer alone. */
    internal fun any(operation: String, ended: Engine.Ended): Reply =
        if ((ended.taken as? Taken.Answered)?.answer?.phase == null) typed(operation, ended, ::rawReply) else session("create_session", ended)

    internal fun rotated(ended: Engine.Ended): Session = typed("rotate_session", ended) { data, told -> readSession(data, "data", told) }

    private fun session(operation: String, ended: Engine.Ended): OpenSession {
        val session = typed(operation, ended) { data, told -> readSession(data, "data", told) }
        return OpenSession(self, session.phase ?: Phase.UNKNOWN, session)
    }

    private fun begin(operation: String, params: String, call: Call): (Client) -> UInt {
        val (given, chosen) = sound(operation, "parameters", params) to sound(operation, "options", call.told())
        return { core -> core.start(operation, given, chosen) }
    }

    private fun <T> typed(operation: String, ended: Engine.Ended, read: Reader<T>): T {
        val answer =
            when (val taken = ended.taken) {
                is Taken.Failed -> throw exception(taken.error).also { it.notes = ended.notes }
                is Taken.Answered -> taken.answer
            }
        val raw = Raw(answer.raw)
        try {
            return read(raw.json, Told(raw, (parse(answer.facts) as? JsonObject)?.text("request_id"), answer.phase?.let(::phase)))
        } catch (misfit: Misfit) {
            throw exception(misfit(operation, answer.facts, answer.raw, misfit.place))
        }
    }
}

/** An intent that could be one; what could not is for the core to refuse. */
private fun Call.intent(): String? = intent?.takeIf { it.isNotEmpty() && Charsets.UTF_8.newEncoder().canEncode(it) }
