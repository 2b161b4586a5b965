package hopline

import com.sun.jna.Native
import com.sun.jna.Pointer
import hopline.core.Client
import hopline.core.Driven
import hopline.core.FfiConverterByteArray
import hopline.core.FfiConverterTypeDriven
import hopline.core.FfiConverterTypeMove
import hopline.core.Move
import java.nio.Buffer
import java.nio.ByteBuffer

/**
 * Moves a core: a move and the work that follows are one crossing, in memory that native code sees, so that only numbers cross. This takes
 * a twentieth of the time of uniffi's own calls. One call at a time.
 */
internal class Moves(core: Client, private val clock: Clock) {
    private val number = core.number().toLong()

    /** Memory outside the heap is freed late, so most moves use the same again. It grows with what moves through it, up to a bound. */
    private var kept = ByteBuffer.allocateDirect(FIRST)

    /** The outcome of a move, and the content of each answer among its results. */
    class Came(val driven: Driven, private val memory: ByteBuffer) {
        fun data(): Data = Data(Raw(FfiConverterByteArray.read(memory)), FfiConverterByteArray.read(memory))
    }

    /** A text that can't be written as UTF-8 throws an `IOException`; nothing was done then. */
    fun drive(owner: ULong, what: Move, body: ByteArray): Came {
        val memory = room(FfiConverterTypeMove.allocationSize(what).toLong() + body.size)
        FfiConverterTypeMove.write(what, memory)
        val length = memory.put(body).position()
        val size = cross(owner, memory, length)
        return if (size <= memory.capacity()) read(memory) else read(room(size.toLong()).also { cross(owner, it, 0) })
    }

    /** As their base class: Android's older systems do not know `ByteBuffer.clear`. */
    private fun room(size: Long): ByteBuffer {
        if (size > MOST) return ByteBuffer.allocateDirect(Math.toIntExact(size))
        if (size > kept.capacity()) kept = ByteBuffer.allocateDirect((size * 2).coerceAtMost(MOST).toInt())
        return kept.also { (it as Buffer).clear() }
    }

    private fun cross(owner: ULong, memory: ByteBuffer, length: Int): Int {
        val address = Pointer.nativeValue(Native.getDirectBufferPointer(memory))
        val size = Crossing.hopline_drive(number, owner.toLong(), address, memory.capacity(), length, clock.unix(), clock.monotonic())
        return size.also { check(it >= 0) { "the native library does not know what it was told; is it of another version?" } }
    }

    private fun read(memory: ByteBuffer): Came {
        (memory as Buffer).clear()
        return Came(FfiConverterTypeDriven.read(memory), memory)
    }

    private companion object {
        const val FIRST = 1 shl 14
        const val MOST = 1L shl 18
    }
}

/** The content of an answer: the whole JSON, which becomes a text only if it is read, and the packed form for its type's reader. */
internal class Data(val raw: Raw, val packed: ByteArray) {
    companion object {
        val NONE = Data(Raw.NONE, NOTHING)
    }
}

/** The native function, by its own name. */
@Suppress("FunctionName")
private object Crossing {
    init {
        Native.register(Crossing::class.java, System.getProperty("uniffi.component.hopline.libraryOverride") ?: "hopline_uniffi")
    }

    external fun hopline_drive(client: Long, owner: Long, address: Long, room: Int, length: Int, unix: Long, monotonic: Long): Int
}

internal val NOTHING = ByteArray(0)
