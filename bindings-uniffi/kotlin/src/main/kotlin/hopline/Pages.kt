package hopline

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.JsonObject

/** What comes after a page. */
internal class Turn(val position: String?, val end: PagesEnd?) {
    /** Whether the page holds what was given before, which is not given again. */
    val isRepeated: Boolean get() = end == PagesEnd.REPEATED_PAGE
}

internal fun turn(text: String): Turn {
    val told = parse(text) as JsonObject
    return Turn(told.text("position"), told.text("end")?.let { word -> PagesEnd.entries.first { it.word == word } })
}

/**
 * A walk over all pages of a list. Pages are fetched lazily, as [items] or [pages] is collected.
 *
 * A walk has one place: to collect again goes on where the collector before stopped, and a fetch that fails moves nothing. It is for
 * one collector at a time.
 */
public class Pages<I, P : Reply> internal constructor(
    operation: String,
    position: String?,
    maxPages: Int?,
    private val itemsOf: (P) -> List<I>,
    private val read: suspend (position: String) -> Pair<P, Turn>,
) {
    /**
     * Where to go on, as JSON: save it anywhere, and give it to another walk. It moves when a page, or the last item of one, is
     * handed out, and not before. Null once there is nothing more.
     */
    @Volatile
    public var position: String? = ask("walk", "operation" to operation, "position" to position, "max_pages" to maxPages).text("position")
        private set

    /** Why the walk is over; null as long as it is not. */
    @Volatile
    public var end: PagesEnd? = null
        private set

    /** Items that were fetched and not handed out, and what comes after their page. */
    private val left = ArrayDeque<I>()
    private var after: Turn? = null

    /** The items of all pages. */
    public fun items(): Flow<I> = flow {
        while (left.isNotEmpty() || end == null) {
            if (left.isEmpty()) {
                val (page, turn) = read(position ?: return@flow)
                if (!turn.isRepeated) left += itemsOf(page)
                after = turn
            }
            val item = left.removeFirstOrNull()
            if (left.isEmpty()) after?.let(::move)
            if (item != null) emit(item)
        }
    }

    /** Whole pages. A page of which [items] has handed out a part comes whole. */
    public fun pages(): Flow<P> = flow {
        left.clear()
        while (end == null) {
            val (page, turn) = read(position ?: return@flow)
            move(turn)
            if (!turn.isRepeated) emit(page)
        }
    }

    override fun toString(): String = "Pages(position=$position, end=$end)"

    private fun move(turn: Turn) {
        position = turn.position
        end = turn.end
    }
}
