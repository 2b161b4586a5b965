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

/** What the printed operations do with a call; `W` is what waiting gives. */
public abstract class Caller<W : Reply> internal constructor() {
    internal abstract val engine: Engine

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

    /** Starts what waits, and reads its answer as that of `reads`, an operation of the table. */
    internal suspend fun wait(operation: String, reads: String, params: String, call: Call): W =
        waited(reads, engine.run(operation, call.intent(), begin(operation, params, call)))

    internal abstract fun waited(operation: String, ended: Engine.Ended): W

    private fun begin(operation: String, params: String, call: Call): (Client) -> UInt {
        val (given, chosen) = sound(operation, "parameters", params) to sound(operation, "options", call.told())
        return { core -> core.start(operation, given, chosen) }
    }

    internal fun <T> typed(operation: String, ended: Engine.Ended, read: Reader<T>): T {
        val answer =
            when (val taken = ended.taken) {
                is Taken.Failed -> throw exception(taken.error).also { it.notes = ended.notes }
                is Taken.Answered -> taken.answer
            }
        val raw = Raw(answer.raw)
        try {
            // What the service wrote, or the same under the table's names.
            val data = answer.view?.let(::parse) ?: raw.json
            return read(data, Told(raw, (parse(answer.facts) as? JsonObject)?.text("request_id"), answer.phase?.let(::phase)))
        } catch (misfit: Misfit) {
            throw exception(misfit(operation, answer.facts, answer.raw, misfit.place))
        }
    }
}

/** An intent that could be one; what could not is for the core to refuse. */
private fun Call.intent(): String? = intent?.takeIf { it.isNotEmpty() && Charsets.UTF_8.newEncoder().canEncode(it) }
