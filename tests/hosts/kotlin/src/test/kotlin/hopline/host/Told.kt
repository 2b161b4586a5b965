package hopline.host

import hopline.HoplineException
import hopline.Raw
import hopline.Word
import java.lang.reflect.Modifier
import java.math.BigDecimal
import java.nio.ByteBuffer
import java.time.Instant
import kotlin.time.Duration
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// How the tests give the core their texts, and what the package reads of what the core packed, as the JSON that vectors are written in.

/** Bytes as they cross into the core: by their address, so somebody has to hold them while they do. */
fun direct(bytes: ByteArray): ByteBuffer =
    (ByteBuffer.allocateDirect(bytes.size).put(bytes).rewind() as ByteBuffer).also { buffer ->
        held.get().apply { addLast(buffer) }.apply { if (size > 8) removeFirst() }
    }

private val held = ThreadLocal.withInitial { ArrayDeque<ByteBuffer>() }

fun errorOf(packed: ByteArray): JsonObject = told("ErrorFields", packed)

/** The record of that name, as the package's own reader makes it of the bytes. */
fun told(type: String, packed: ByteArray): JsonObject {
    val reader = Class.forName("hopline.Packed")
    val read = Class.forName("hopline.TypesKt").getMethod("read$type", reader)
    return json(read.invoke(null, reader.getConstructor(ByteArray::class.java).newInstance(packed))).members()
}

private fun json(value: Any?): JsonElement =
    when (value) {
        null -> JsonNull
        is Boolean -> JsonPrimitive(value)
        is BigDecimal -> JsonPrimitive(value.toPlainString())
        is Number -> JsonPrimitive(value)
        is String -> JsonPrimitive(value)
        is Word -> JsonPrimitive(value.word)
        is Raw -> value.json
        is Instant -> JsonPrimitive(value.toEpochMilli())
        is Duration -> JsonPrimitive(value.inWholeMilliseconds)
        is List<*> -> JsonArray(value.map(::json))
        is HoplineException -> json(field(HoplineException::class.java, "fields", value))
        else -> JsonObject(value.javaClass.declaredFields.filter { !Modifier.isStatic(it.modifiers) }.mapNotNull { member(value, it.name) }.toMap())
    }

/** A member that is false or missing is left out. */
private fun member(of: Any, name: String): Pair<String, JsonElement>? {
    val value = field(of.javaClass, name, of)?.takeUnless { it == false } ?: return null
    val plain = name.replace(Regex("[A-Z]")) { "_" + it.value.lowercase() }
    return (if (value is Duration) "${plain}_ms" else plain) to json(value)
}

private fun field(type: Class<*>, name: String, of: Any): Any? = type.getDeclaredField(name).apply { isAccessible = true }.get(of)
