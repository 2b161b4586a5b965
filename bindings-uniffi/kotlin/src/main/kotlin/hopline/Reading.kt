package hopline

import java.math.BigDecimal
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// How the printed types are read from a tree of JSON. Whatever does not fit is a [Misfit] that says where.

/** The longest text of a number that is read, and its greatest exponent. A body may hold a number of a million digits. */
private const val LONGEST_NUMBER = 400

/** The members of an object. */
internal class Members(private val members: JsonObject, private val place: String) {
    fun <T : Any> must(name: String, read: (JsonElement, String) -> T): T =
        may(name, read) ?: throw Misfit("`$place.$name`, which is missing")

    fun <T : Any> may(name: String, read: (JsonElement, String) -> T): T? =
        members[name]?.takeUnless { it is JsonNull }?.let { read(it, "$place.$name") }
}

internal fun members(value: JsonElement, place: String): Members =
    Members(value as? JsonObject ?: throw Misfit("`$place`, which is no object"), place)

internal fun text(value: JsonElement, place: String): String =
    (value as? JsonPrimitive)?.takeIf { it.isString }?.content ?: throw Misfit("`$place`, which is no text")

internal fun secret(value: JsonElement, place: String): Secret = Secret(text(value, place))

internal fun flag(value: JsonElement, place: String): Boolean =
    plain(value)?.toBooleanStrictOrNull() ?: throw Misfit("`$place`, which is no truth value")

internal fun whole(value: JsonElement, place: String): Long =
    plain(value)?.toLongOrNull() ?: throw Misfit("`$place`, which is no whole number")

internal fun decimal(value: JsonElement, place: String): BigDecimal =
    plain(value)?.takeIf { it.length <= LONGEST_NUMBER }?.toBigDecimalOrNull()?.takeIf { it.scale() in -LONGEST_NUMBER..LONGEST_NUMBER }
        ?: throw Misfit("`$place`, which is no number, or one that is too long")

internal fun anything(value: JsonElement, @Suppress("UNUSED_PARAMETER") place: String): Raw = Raw(value.toString())

internal fun <T> list(item: (JsonElement, String) -> T): (JsonElement, String) -> List<T> = { value, place ->
    val items = value as? JsonArray ?: throw Misfit("`$place`, which is no list")
    items.mapIndexed { n, one -> item(one, "$place[$n]") }
}

private fun plain(value: JsonElement): String? = (value as? JsonPrimitive)?.takeUnless { it.isString }?.content

// What the client tells about itself has fewer words to it, and always fits.

internal fun JsonObject.text(name: String): String? = (this[name] as? JsonPrimitive)?.takeUnless { it is JsonNull }?.content

internal fun JsonObject.number(name: String): Long? = text(name)?.toLongOrNull()
