package hopline

import java.math.BigDecimal
import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/**
 * Reads the values that the core packed, in the format of `packed.rs`. The core has checked them against the same table that the
 * constructors are printed from, so they are always valid.
 */
internal class Packed(private val bytes: ByteArray) {
    private var at = 0

    /** The members of a record that are there: a bit for each. */
    fun members(count: Int): Long {
        var bits = 0L
        for (n in 0 until (count + 7) / 8) bits = bits or ((bytes[at++].toLong() and 0xff) shl 8 * n)
        return bits
    }

    fun text(): String {
        val length = number()
        at += length
        return String(bytes, at - length, length, Charsets.UTF_8)
    }

    fun flag(): Boolean = bytes[at++] != 0.toByte()

    fun integer(): Long {
        var value = 0L
        for (n in 0 until 8) value = value or ((bytes[at++].toLong() and 0xff) shl 8 * n)
        return value
    }

    fun time(): Instant = Instant.ofEpochMilli(integer())

    fun span(): Duration = integer().milliseconds

    /** Digits that fit into a [Long] are read from the bytes, which is faster than from a text. */
    fun decimal(): BigDecimal {
        val start = at
        val length = number()
        val end = at + length
        var unscaled = 0L
        var point = -1
        val isNegative = bytes[at] == '-'.code.toByte()
        for (n in (if (isNegative) at + 1 else at) until end) {
            val digit = bytes[n] - '0'.code
            when {
                digit in 0..9 -> unscaled = unscaled * 10 + digit
                bytes[n] == '.'.code.toByte() -> point = n
                // An exponent.
                else -> point = Int.MAX_VALUE
            }
        }
        if (length > LONGEST || point == Int.MAX_VALUE) {
            at = start
            return BigDecimal(text())
        }
        at = end
        return BigDecimal.valueOf(if (isNegative) -unscaled else unscaled, if (point < 0) 0 else end - point - 1)
    }

    /** A word of a list: one of the list's, or another. */
    fun word(words: Array<String>): String {
        val place = number()
        return if (place == 0) text() else words[place - 1]
    }

    /** A word of a closed list. */
    fun <E> entry(entries: List<E>): E = entries[number() - 1]

    fun exception(): HoplineException = exception(readErrorFields())

    inline fun <T> list(item: () -> T): List<T> {
        val count = count()
        val items = ArrayList<T>(count)
        repeat(count) { items += item() }
        return items
    }

    fun count(): Int {
        var count = 0
        for (n in 0 until 4) count = count or ((bytes[at++].toInt() and 0xff) shl 8 * n)
        return count
    }

    private fun number(): Int {
        var number = 0
        var shift = 0
        while (true) {
            val byte = bytes[at++].toInt()
            number = number or ((byte and 0x7f) shl shift)
            if (byte >= 0) return number
            shift += 7
        }
    }

    private companion object {
        /** The number of characters that always fit into a [Long]. */
        const val LONGEST = 18
    }
}

/** Returns true if a member is there. */
internal fun Long.has(member: Int): Boolean = this ushr member and 1L != 0L

/** The reader of an answer of a type of the table; of an undocumented answer, without a type. */
internal class Reader<T>(val type: String, val read: Packed.(Told) -> T)

internal val rawReply = Reader("") { told -> RawReply(told.raw, told.requestId, told.phase) }
