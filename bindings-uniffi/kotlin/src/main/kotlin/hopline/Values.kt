package hopline

import java.math.BigDecimal
import java.security.MessageDigest
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A text that never prints. [reveal] gives it, and whoever calls that answers for where it goes. */
public class Secret(private val text: String) {
    /** The text itself. */
    public fun reveal(): String = text

    override fun toString(): String = "[redacted]"

    override fun equals(other: Any?): Boolean =
        other is Secret && MessageDigest.isEqual(text.toByteArray(), other.text.toByteArray())

    override fun hashCode(): Int = text.hashCode()
}

/** JSON as the service wrote it, known and unknown members alike. It may hold secrets, so it never prints. */
public class Raw(
    /** The text. */
    public val text: String,
) {
    /** The text as a tree; each number keeps its digits. */
    public val json: JsonElement by lazy(LazyThreadSafetyMode.PUBLICATION) { parse(text) }

    override fun toString(): String = "[redacted]"

    override fun equals(other: Any?): Boolean = other is Raw && other.text == text

    override fun hashCode(): Int = text.hashCode()

    internal companion object {
        val NONE = Raw("null")
    }
}

/** What an operation was answered with. */
public interface Reply {
    /** The whole answer. */
    public val raw: Raw

    /** To quote when reporting a problem. */
    public val requestId: String?
}

/** An answer whose members the contract does not show: all that there is, is [raw]. */
public data class RawReply(override val raw: Raw, override val requestId: String? = null) : Reply

/** A word of a list that the contract names. An answer may hold another one, and keeps it. */
public interface Word {
    /** The word on the wire. */
    public val word: String
}

/** A value that a change may leave as it is, take away, or set. */
public sealed interface Patch<out T> {
    /** Left as it is: not sent. */
    public data object Absent : Patch<Nothing>

    /** Sent as null. What that does is the service's to say. */
    public data object Null : Patch<Nothing>

    /** Set to this. */
    public data class Set<out T>(val value: T) : Patch<T>
}

/** An answer does not have the shape of its type; the text says where. */
internal class Misfit(val place: String) : Exception(place)

internal fun parse(text: String): JsonElement =
    try {
        Json.parseToJsonElement(text)
    } catch (_: IllegalArgumentException) {
        throw Misfit("a place that is no JSON")
    }

/** Writes parameters or options as JSON, without those that are left out. */
internal fun encode(vararg members: Pair<String, Any?>): String =
    JsonObject(members.filter { (_, value) -> value != null && value != Patch.Absent }.associate { (name, value) -> name to tree(value) })
        .toString()

private fun tree(value: Any?): JsonElement =
    when (value) {
        is JsonElement -> value
        is Patch.Set<*> -> tree(value.value)
        is Word -> JsonPrimitive(value.word)
        is Secret -> JsonPrimitive(value.reveal())
        // The core takes a number's text for the number, so no digit is lost.
        is BigDecimal -> JsonPrimitive(if (value.scale() in -64..64) value.toPlainString() else value.toString())
        is Boolean -> JsonPrimitive(value)
        is Number -> JsonPrimitive(value)
        is String -> JsonPrimitive(value)
        is List<*> -> JsonArray(value.map(::tree))
        is Map<*, *> -> JsonObject(value.entries.associate { (name, item) -> name.toString() to tree(item) })
        else -> JsonNull
    }
