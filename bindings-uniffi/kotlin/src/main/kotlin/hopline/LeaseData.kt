package hopline

import java.math.BigDecimal
import java.math.BigInteger
import java.util.concurrent.ConcurrentHashMap
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.longOrNull

/** The callers' data for an exit. The members that are JSON are also in the store. */
internal class LeaseData(private val sessionId: String, private val generation: Int) {
    val values = ConcurrentHashMap<String, Any>()

    /** The members in the store, as far as this client knows. */
    private var stored = JsonObject(emptyMap())

    /** The members when the store was read or told last. */
    private var told = stored

    fun isOf(lent: PoolLease): Boolean = sessionId == lent.sessionId && generation == lent.generation

    /**
     * Takes over the members that come with a lease, unless this client has them already: if another client has changed them, they win
     * over all members that are JSON.
     */
    @Synchronized
    fun take(given: Raw) {
        val members = runCatching { given.json as JsonObject }.getOrNull()
        if (members == null || members == stored) return
        val writer = DataWriter()
        values.entries.removeIf { (name, value) -> name in stored || runCatching { writer.member(name, value) }.getOrNull() != null }
        for ((name, value) in members) runCatching { plain(value) }.getOrNull()?.let { values[name] = it }
        stored = members
        told = json() ?: members
    }

    /** The members that are JSON, if they have changed. */
    @Synchronized
    fun news(): JsonObject? = json()?.takeIf { it != told }?.also { told = it }

    /** Notes that the store has these. */
    @Synchronized
    fun kept(members: JsonObject) {
        stored = members
    }

    /** Null if they are more than the store keeps. */
    private fun json(): JsonObject? {
        val writer = DataWriter()
        val members = HashMap<String, JsonElement>()
        // A caller may change a list meanwhile.
        for ((name, value) in values) runCatching { writer.member(name, value) }.getOrNull()?.let { members[name] = it }
        return if (writer.isFull) null else JsonObject(members)
    }
}

/** Writes values as JSON, and ends at more of them than the store keeps. */
private class DataWriter {
    private var left = MOST_VALUES
    val isFull: Boolean get() = left < 0

    fun member(name: String, value: Any): JsonElement? = if (isText(name)) json(value, DEEPEST) else null

    /** Null if it is no JSON, such as an object of another class. */
    private fun json(value: Any?, room: Int): JsonElement? {
        if (room == 0 || --left < 0) return null
        return when (value) {
            null -> JsonNull
            is JsonPrimitive -> value.takeIf { isText(it.content) }
            is String -> if (isText(value)) JsonPrimitive(value) else null
            is Boolean -> JsonPrimitive(value)
            is Number -> number(value)
            is List<*> -> JsonArray(value.map { json(it, room - 1) ?: return null })
            is Map<*, *> -> {
                val members = HashMap<String, JsonElement>()
                for ((name, item) in value) {
                    if (name !is String || !isText(name)) return null
                    members[name] = json(item, room - 1) ?: return null
                }
                JsonObject(members)
            }
            else -> null
        }
    }

    private fun number(value: Number): JsonElement? =
        when (value) {
            is Float -> if (value.isFinite()) JsonPrimitive(value) else null
            is Double -> if (value.isFinite()) JsonPrimitive(value) else null
            is Byte, is Short, is Int, is Long, is BigInteger, is BigDecimal -> JsonPrimitive(value)
            else -> null
        }

    private companion object {
        /** Each value has a letter at least, and the store keeps 4 KB. */
        const val MOST_VALUES = 4096
        const val DEEPEST = 32
    }
}

/** A value as callers write it. */
private fun plain(value: JsonElement): Any? =
    when (value) {
        is JsonNull -> null
        is JsonPrimitive -> if (value.isString) value.content else value.booleanOrNull ?: value.longOrNull ?: BigDecimal(value.content)
        is JsonArray -> value.map(::plain)
        is JsonObject -> value.mapValues { plain(it.value) }
    }
