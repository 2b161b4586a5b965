package hopline

import hopline.core.Answer
import hopline.core.Client
import hopline.core.Taken
import hopline.core.misfit
import hopline.core.pageParams
import hopline.core.pageTurn
import kotlinx.serialization.json.JsonElement

/** Writes the parameters of a call as JSON. That is work, so it is not done in the thread of who calls. */
internal typealias Params = () -> String

/** What the printed operations do with a call; `W` is what waiting gives. */
public abstract class Caller<W : Reply> internal constructor() {
    internal abstract val engine: Engine

    internal suspend fun <T> call(operation: String, params: Params, call: Call, read: Reader<T>): T =
        run(operation, begin(operation, params, call)) { typed(operation, it, read) }

    internal fun <I, P : Reply> walk(
        operation: String,
        params: Params,
        call: Call,
        position: String?,
        maxPages: Int?,
        read: Reader<P>,
        items: (P) -> List<I>,
    ): Pages<I, P> =
        Pages(operation, position, maxPages, items) { at ->
            val given = { asked { pageParams(at, sound(operation, "parameters", params())) } }
            run(operation, begin(operation, given, call)) { ended ->
                val page = typed(operation, ended, read)
                page to turn(asked { pageTurn(at, (ended.taken as Taken.Answered).answer.facts) })
            }
        }

    /** Starts what waits, and reads its answer as that of `reads`, an operation of the table. */
    internal suspend fun wait(operation: String, reads: String, params: Params, call: Call): W =
        run(operation, begin(operation, params, call)) { waited(reads, it) }

    internal suspend fun <T> run(operation: String, begin: (Client) -> UInt, read: (Engine.Ended) -> T): T =
        engine.run(operation, begin) { read(it.single()) }

    internal abstract fun waited(operation: String, ended: Engine.Ended): W

    private fun begin(operation: String, params: Params, call: Call): (Client) -> UInt =
        { core -> core.start(operation, sound(operation, "parameters", params()), sound(operation, "options", call.told())) }

    internal fun <T> typed(operation: String, ended: Engine.Ended, reader: Reader<T>): T {
        val answer = answered(ended)
        val packed = Packed(answer.packed)
        if (packed.text() != reader.type && reader.type != "") {
            throw exception(misfit(operation, answer.facts, answer.raw, "it is the answer of another operation"))
        }
        return reader.read(packed, Told(Raw(answer.raw), answer.requestId, answer.phase?.let(::phase)))
    }

    /** What the core answers itself, as JSON. */
    internal fun told(ended: Engine.Ended): JsonElement = parse(answered(ended).raw)

    private fun answered(ended: Engine.Ended): Answer =
        when (val taken = ended.taken) {
            is Taken.Failed -> throw exception(taken.error).also { it.notes = ended.notes }
            is Taken.Answered -> taken.answer
        }
}
