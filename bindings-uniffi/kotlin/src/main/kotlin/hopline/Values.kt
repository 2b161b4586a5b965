package hopline

import java.math.BigDecimal
import java.security.MessageDigest
import kotlin.time.Duration
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A text that never prints. [reveal] returns it; the caller is responsible for where it goes. */
public class Secret(private val text: String) {
    /** The text itself. */
    public fun reveal(): String = text

    override fun toString(): String = "[redacted]"

    override fun equals(other: Any?): Boolean =
        other is Secret && MessageDigest.isEqual(text.toByteArray(), other.text.toByteArray())

    override fun hashCode(): Int = text.hashCode()
}

/** JSON as the service wrote it, known and unknown members alike. The JSON may hold secrets, so it never prints. */
public class Raw private constructor(given: Lazy<String>) {
    public constructor(text: String) : this(lazyOf(text))

    internal constructor(utf8: ByteArray) : this(lazy(LazyThreadSafetyMode.PUBLICATION) { String(utf8, Charsets.UTF_8) })

    /** The text. */
    public val text: String by given

    /**
     * The text as a tree; each number keeps its digits.
     *
     * @throws IllegalArgumentException if kotlinx.serialization can't read the text
     */
    public val json: JsonElement by lazy(LazyThreadSafetyMode.PUBLICATION) { parse(text) }

    override fun toString(): String = "[redacted]"

    override fun equals(other: Any?): Boolean = other is Raw && other.text == text

    override fun hashCode(): Int = text.hashCode()

    internal companion object {
        val NONE = Raw("null")
    }
}

/** The answer of an operation. */
public interface Reply {
    /** The whole answer. */
    public val raw: Raw

    /** The request id, to quote when reporting a problem. */
    public val requestId: String?

    /** Of a repeated read: `READY` once its condition holds, `PENDING` at the deadline. Of a session or an order: its phase. */
    public val phase: Phase?
}

/** An answer whose members the contract does not document: only [raw] is there. */
public data class RawReply(override val raw: Raw, override val requestId: String? = null, override val phase: Phase? = null) : Reply

/** The members that every answer has. */
internal class Told(val raw: Raw, val requestId: String? = null, val phase: Phase? = null) {
    companion object {
        val NOTHING = Told(Raw.NONE)
    }
}

/** The condition that ends a repeated read: the value at [at] is one of [isOneOf], or a number of at least [atLeast]. */
public data class Until(
    /** The place of the value in the answer's data: a JSON pointer (RFC 6901) such as `/status`. */
    val at: String,
    /** The words that end the read. */
    val isOneOf: List<String> = emptyList(),
    /** The least number that ends the read. */
    val atLeast: BigDecimal? = null,
)

/**
 * A choice of a product: the cheapest one of the account's own list that fits. Prices are compared within one unit. Products in another
 * currency than USD, without enough stock or not available are passed over, and so are shared ones, unless [sharing] or the `projectId`
 * of the purchase is set.
 */
public data class Cheapest(
    /** The type of the product. */
    val type: SessionType,
    /** The country, as the product has it. */
    val country: String? = null,
    /** The city, as the product has it. */
    val city: String? = null,
    /** The other users of the product's addresses. */
    val sharing: Sharing? = null,
    /** The project of the purchase, with which shared products fit, too. */
    val projectId: String? = null,
    /** The unit of the price, required where products with several units fit. */
    val unit: String? = null,
    /** The highest price of one unit, in USD. Without any limit nothing dearer than the first choice is bought. */
    val maxUnitPrice: BigDecimal? = null,
)

/**
 * A word of a list. The word is an `enum` if the list is Hopline's own; an answer may hold other words of the contract's lists, which are
 * kept.
 */
public interface Word {
    /** The word on the wire. */
    public val word: String
}

/** The HTTP client that a session's proxy is for. */
public enum class UseWith(override val word: String) : Word {
    OKHTTP("okhttp"),
    JAVA_NET_HTTP("java.net.http"),
    CURL("curl"),
}

/** A value that a change may leave as it is, take away, or set. */
public sealed interface Patch<out T> {
    /** Left as it is: not sent. */
    public data object Absent : Patch<Nothing>

    /** Sent as null. The service does not document the effect. */
    public data object Null : Patch<Nothing>

    /** Set to this. */
    public data class Set<out T>(val value: T) : Patch<T>
}

internal fun parse(text: String): JsonElement = Json.parseToJsonElement(text)

/** Writes parameters or options as JSON, without those that are left out. */
internal fun encode(vararg members: Pair<String, Any?>): String = tree(mapOf(*members), DEEPEST + 1).toString()

/** One level more than the core reads, which refuses it by name: nothing deeper is read. */
private const val DEEPEST = 101

internal fun tree(value: Any?, room: Int = DEEPEST): JsonElement =
    when (value) {
        is JsonPrimitive -> value
        is Patch.Set<*> -> tree(value.value, room)
        is Raw -> tree(value.json, room)
        is Word -> JsonPrimitive(value.word)
        is Secret -> JsonPrimitive(value.reveal())
        // The core takes a number's text for the number, so no digit is lost.
        is BigDecimal -> JsonPrimitive(if (value.scale() in -64..64) value.toPlainString() else value.toString())
        // Longer than 24 days counts as 24 days.
        is Duration -> JsonPrimitive(value.inWholeMilliseconds.coerceAtMost(Int.MAX_VALUE.toLong()))
        is Until -> tree(mapOf("at" to value.at, "is" to value.isOneOf, "at_least" to value.atLeast))
        is Cheapest ->
            tree(
                mapOf(
                    "session_type" to value.type,
                    "country" to value.country,
                    "city" to value.city,
                    "sharing" to value.sharing,
                    "project_id" to value.projectId,
                    "unit" to value.unit,
                    "max_unit_price" to value.maxUnitPrice,
                )
            )
        is Boolean -> JsonPrimitive(value)
        is Number -> JsonPrimitive(value)
        is String -> JsonPrimitive(value)
        is List<*> -> JsonArray(if (room > 1) value.map { tree(it, room - 1) } else emptyList())
        is Map<*, *> -> {
            val given = if (room > 1) value.filterValues { it != null && it != Patch.Absent } else emptyMap()
            JsonObject(given.entries.associate { (name, item) -> name.toString() to tree(item, room - 1) })
        }
        else -> JsonNull
    }
