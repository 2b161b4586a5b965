package hopline

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.JsonObject

/** The continuation after a page. */
internal class Turn(val position: String?, val end: PagesEnd?) {
    /** True if the page repeats items, which are not given again. */
    val isRepeated: Boolean get() = end == PagesEnd.REPEATED_PAGE
}

internal fun turn(text: String): Turn {
    val told = parse(text) as JsonObject
    return Turn(told.text("position"), told.text("end")?.let { word -> PagesEnd.entries.first { it.word == word } })
}

/**
 * A walk over all pages of a list. Pages are fetched lazily, as [items] or [pages] is collected.
 *
 * A walk has one position: a new collection continues where the last one stopped, and a failed fetch moves nothing. A walk is for one
 * collector at a time.
 */
public class Pages<I, P : Reply> internal constructor(
    begin: String?,
    private val itemsOf: (P) -> List<I>,
    private val read: suspend (position: String) -> Pair<P, Turn>,
) {
    /**
     * The position to continue from, as JSON: save it anywhere, and pass it to another walk. The position moves when a page, or the last
     * item of one, is handed out, and not before. Null at the end of the list.
     */
    @Volatile
    public var position: String? = begin
        private set

    /** The reason why the walk is over; null as long as it is not. */
    @Volatile
    public var end: PagesEnd? = null
        private set

    /** Items that were fetched and not handed out, and the continuation after their page. */
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

    /** Whole pages. A page that [items] has partly handed out comes whole. */
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

    public companion object {
        /** A walk over these pages, as a fake of the client returns it. */
        public fun <I, P : Reply> of(pages: List<P>, itemsOf: (P) -> List<I>): Pages<I, P> =
            Pages("0".takeIf { pages.isNotEmpty() }, itemsOf) { at ->
                val next = at.toInt() + 1
                pages[next - 1] to if (next < pages.size) Turn("$next", null) else Turn(null, PagesEnd.LAST_PAGE)
            }
    }
}
