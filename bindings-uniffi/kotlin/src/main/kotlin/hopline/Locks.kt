package hopline

import java.nio.channels.FileChannel
import java.nio.channels.FileLock
import java.nio.channels.OverlappingFileLockException
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.StandardOpenOption.CREATE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.WRITE
import java.nio.file.attribute.BasicFileAttributes
import java.security.MessageDigest
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * Names that one process at a time may hold, by the operating system's locks on the bytes of one file.
 *
 * A name stands for a byte of the file, far beyond its end. All names of a process are held through one channel, which is never
 * closed: to close any would free what others in this process hold. Nor may a thread that can be interrupted use it.
 */
internal class Locks private constructor(private val path: Path) {
    private val channel = FileChannel.open(path, setOf(READ, WRITE, CREATE), *ownersOnly(path, OWNERS_FILE))
    private val key = keyOf(path)
    private val held = HashMap<Long, FileLock>()
    private val scan = ReentrantLock()

    /**
     * One process at a time looks for names that nobody holds. To look is to take for a moment, and whoever takes a name for
     * good must not find it taken by somebody who only looks.
     */
    fun scanning(look: () -> Unit): Unit = scan.withLock { channel.lock(SCAN, 1, false).use { look() } }

    /** Takes a name, unless somebody holds it, in this process or another. */
    fun take(name: String): Boolean =
        synchronized(held) {
            val place = place(name)
            val lock =
                try {
                    if (place in held) null else channel.tryLock(place, 1, false)
                } catch (_: OverlappingFileLockException) {
                    // Another class loader of this process holds it.
                    null
                }
            if (lock != null) held[place] = lock
            lock != null
        }

    /** Gives a name back. */
    fun give(name: String): Unit = synchronized(held) { held.remove(place(name))?.release() }

    /** Whether somebody holds a name. Only to be asked while [scanning]. */
    fun isTaken(name: String): Boolean = !take(name).also { if (it) give(name) }

    companion object {
        private const val SCAN = 0L
        private val known = HashMap<Path, Locks>()

        /** The locks of a file, one object a process, as long as the file is the same one. */
        fun of(path: Path): Locks =
            synchronized(known) {
                val name = path.toAbsolutePath().normalize().let { if (Files.exists(it)) it.toRealPath() else it }
                known[name]?.takeIf { keyOf(path) == it.key } ?: Locks(path).also { known[path.toRealPath()] = it }
            }

        private fun keyOf(path: Path): Any? =
            if (Files.exists(path)) Files.readAttributes(path, BasicFileAttributes::class.java).fileKey() ?: path else null

        private fun place(name: String): Long {
            val digest = MessageDigest.getInstance("SHA-256").digest(name.toByteArray())
            val first = digest.take(Long.SIZE_BYTES).fold(0L) { sum, byte -> (sum shl Byte.SIZE_BITS) or (byte.toLong() and 0xff) }
            return (first ushr 2) + 1
        }
    }
}
