package hopline

import hopline.core.pageParams
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** Why a walk is over. */
public enum class PagesEnd {
    /** The page named no next one. */
    LAST_PAGE,

    /** The page had fewer items than fit on one. */
    SHORT_PAGE,

    /** The page named one that was read before: the list would never end. */
    REPEATED_CURSOR,

    /** As many pages were read as may be. The position goes on, under a higher cap. */
    PAGE_CAP,
}

/**
 * The items of a list, over all of its pages, each read when it is come to. Which page comes next, the core says.
 *
 * A read that fails throws and moves nothing: collect again to go on there. It is for one collector at a time.
 */
public class Pages<I, P : Reply> internal constructor(
    operation: String,
    position: String?,
    maxPages: Int?,
    private val items: (P) -> List<I>,
    private val read: suspend (position: String) -> Pair<P, String>,
) : Flow<I> {
    /**
     * Where to go on, as JSON: save it anywhere, and give it to another walk. It moves when a page, or the last item of one, is
     * handed out, and not before. Null once there is nothing more.
     */
    @Volatile
    public var position: String? = begin(operation, position, maxPages)
        private set

    /** Why the walk is over; null as long as it is not. */
    @Volatile
    public var end: PagesEnd? = null
        private set

    private val walk = flow {
        each { page, turn ->
            val found = items(page)
            found.dropLast(1).forEach { emit(it) }
            move(turn)
            found.takeLast(1).forEach { emit(it) }
        }
    }

    override suspend fun collect(collector: FlowCollector<I>): Unit = walk.collect(collector)

    /** The same, a page at a time. */
    public fun pages(): Flow<P> = flow {
        each { page, turn ->
            move(turn)
            emit(page)
        }
    }

    override fun toString(): String = "Pages(position=$position, end=$end)"

    private suspend fun each(give: suspend (page: P, turn: String) -> Unit) {
        while (end == null) {
            val (page, turn) = read(position ?: return)
            give(page, turn)
        }
    }

    private fun move(turn: String) {
        val told = parse(turn) as JsonObject
        position = told["position"]?.toString()
        end = told.text("end")?.let { word -> PagesEnd.entries.firstOrNull { it.name.lowercase() == word } }
    }
}

/** The position to begin at, once the core has read it. */
private fun begin(operation: String, position: String?, maxPages: Int?): String {
    val given = position ?: encode("operation" to operation)
    asked { pageParams(sound(operation, "position", given), "{}") }
    val told = parse(given) as JsonObject
    if (told.text("operation") != operation) {
        val what = "`position` is of `${told.text("operation")}`; give it to the walk of that list"
        throw refusal("invalid", operation, what, field = "position", advice = "change_request")
    }
    if (maxPages == null) return given
    if (maxPages < 1) throw refusal("invalid", operation, "`max_pages` must be at least 1", field = "max_pages", advice = "change_request")
    return JsonObject(told + ("max_pages" to JsonPrimitive(maxPages))).toString()
}
