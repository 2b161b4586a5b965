package hopline

import com.sun.jna.Native
import com.sun.jna.Pointer
import hopline.core.Client
import hopline.core.FfiConverterByteArray
import hopline.core.FfiConverterTypeMove
import hopline.core.FfiConverterTypeMoved
import hopline.core.Move
import hopline.core.Moved
import java.nio.Buffer
import java.nio.ByteBuffer

/**
 * Moves a core: what is done and the steps that come of it are one crossing, in memory that native code sees, of which only numbers cross.
 * That takes a twentieth of the time of uniffi's own calls. One call at a time.
 */
internal class Moves(core: Client, private val clock: Clock) {
    private val number = core.number().toLong()

    /** Memory outside the heap is given back late, so most use the same again. */
    private val kept = ByteBuffer.allocateDirect(KEPT)

    /** What came of a move, and the `raw` of each answer among its steps, which is made a text only if somebody reads it. */
    class Came(val moved: Moved, val raws: Iterator<Raw>)

    /** A text that can't be written as UTF-8 is an `IOException`; nothing was done then. */
    fun advance(what: Move, body: ByteArray): Came {
        val memory = room(FfiConverterTypeMove.allocationSize(what).toLong() + body.size)
        FfiConverterTypeMove.write(what, memory)
        val length = memory.put(body).position()
        val size = cross(memory, length)
        return if (size <= memory.capacity()) read(memory) else read(room(size.toLong()).also { cross(it, 0) })
    }

    /** As their base class: Android's older systems do not know `ByteBuffer.clear`. */
    private fun room(size: Long): ByteBuffer = (if (size <= KEPT) kept else ByteBuffer.allocateDirect(Math.toIntExact(size))).also { (it as Buffer).clear() }

    private fun cross(memory: ByteBuffer, length: Int): Int {
        val address = Pointer.nativeValue(Native.getDirectBufferPointer(memory))
        val size = Crossing.hopline_advance(number, address, memory.capacity(), length, clock.unix(), clock.monotonic())
        return size.also { check(it >= 0) { "the native library does not know what it was told; is it of another version?" } }
    }

    private fun read(memory: ByteBuffer): Came {
        (memory as Buffer).clear()
        val moved = FfiConverterTypeMoved.read(memory)
        return Came(moved, List(memory.getInt()) { Raw(FfiConverterByteArray.read(memory)) }.iterator())
    }

    private companion object {
        const val KEPT = 1 shl 18
    }
}

/** The native function, by its own name. */
@Suppress("FunctionName")
private object Crossing {
    init {
        Native.register(Crossing::class.java, System.getProperty("uniffi.component.hopline.libraryOverride") ?: "hopline_uniffi")
    }

    external fun hopline_advance(client: Long, address: Long, room: Int, length: Int, unix: Long, monotonic: Long): Int
}

internal val NOTHING = ByteArray(0)
