package hopline

import java.io.File
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.CREATE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.TRUNCATE_EXISTING
import java.nio.file.StandardOpenOption.WRITE
import java.nio.file.attribute.FileAttribute
import java.nio.file.attribute.PosixFilePermissions
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import kotlin.io.path.deleteIfExists
import kotlin.io.path.listDirectoryEntries
import kotlin.io.path.nameWithoutExtension
import kotlin.io.path.readBytes

/**
 * Records as files in a folder that any number of clients and processes of one machine may share.
 *
 * A record belongs to the client that made it for as long as its process lives; the operating system's locks say so. After a
 * crash it is free, and the next client takes it up: by its intent, its name, or with `resumeAll`. An intent that one living
 * client has is refused to every other, so that it buys once among all of them.
 *
 * Records hold no secrets, and only the user that runs the program may read them. Never restore the folder from a backup: an older
 * record would forget what was bought since. On Android use [FolderStore.android].
 */
public class FolderStore(
    /** The folder. It is made by the first call of a client. */
    public val path: Path,
) : Store {
    override fun open(): Shelf {
        Files.createDirectories(path, *ownersOnly(path, "rwx------"))
        return Folder(path).also { it.check() }
    }

    public companion object {
        /**
         * The store of an Android app: `FolderStore.android(context.noBackupFilesDir)`. Every other folder of an app is part of its
         * backup unless the app says otherwise, so a folder that is not called `no_backup` is refused.
         */
        public fun android(noBackupFilesDir: File): FolderStore {
            if (noBackupFilesDir.name != "no_backup") {
                val what = "`noBackupFilesDir` is not Android's folder without a backup; give `context.noBackupFilesDir`"
                throw refusal("invalid", "client", what, field = "noBackupFilesDir", advice = "change_request")
            }
            return FolderStore(noBackupFilesDir.toPath().resolve("hopline"))
        }
    }
}

/** What keeps other users of the machine out of a new file or folder, where the file system knows of them. */
internal fun ownersOnly(path: Path, permissions: String): Array<FileAttribute<*>> =
    if ("posix" !in path.fileSystem.supportedFileAttributeViews()) emptyArray()
    else arrayOf(PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions)))

internal const val OWNERS_FILE: String = "rw-------"

private class Folder(private val path: Path) : Shelf {
    private val locks = Locks.of(path.resolve(".locks"))
    private val own: MutableSet<String> = ConcurrentHashMap.newKeySet()

    /** Whether records could be kept, found out before anything is bought. Half-written ones of the dead are swept out. */
    fun check() {
        scanning {
            for (draft in path.listDirectoryEntries("*.draft")) {
                if (!locks.isTaken("record ${draft.nameWithoutExtension}")) draft.deleteIfExists()
            }
        }
        val probe = path.resolve(".probe-${UUID.randomUUID()}")
        try {
            write(probe, ByteArray(1))
        } finally {
            probe.deleteIfExists()
        }
    }

    override fun keep(record: String, data: ByteArray?) {
        val name = "record $record"
        var mine = false
        // Before the file is there, so that nobody ever finds it free. A refused one is there, so somebody may just be looking at it.
        if (data == null && name !in own) scanning { mine = take(name) } else mine = take(name)
        if (!mine) throw IOException("the record $record belongs to another client")
        val file = file(record)
        if (data == null) {
            file.deleteIfExists()
            sync()
            return release(record)
        }
        val draft = path.resolve("$record.draft")
        write(draft, data)
        Files.move(draft, file, ATOMIC_MOVE)
        sync()
    }

    override fun scanning(look: () -> Unit): Unit = locks.scanning(look)

    override fun free(): Map<String, ByteArray> =
        // Its own are left out first: a client of many sessions has many, and to ask for a lock is work.
        path.listDirectoryEntries("*.json").map { it to "record ${it.nameWithoutExtension}" }.filter { (_, name) -> name !in own }
            .sortedBy { (file, _) -> file }.filter { (_, name) -> !locks.isTaken(name) }.map { (file, _) -> file }
            .mapNotNull { file -> read(file)?.let { file.nameWithoutExtension to it } }.toMap()

    override fun claim(record: String): ByteArray? {
        if (!take("record $record")) return null
        var data: ByteArray? = null
        try {
            data = read(file(record))
        } finally {
            // What could not be read has to be found free again.
            if (data == null) release(record)
        }
        return data
    }

    override fun release(record: String): Unit = give("record $record")

    override fun claimIntent(intent: String): Boolean = take("intent $intent")

    override fun releaseIntent(intent: String): Unit = give("intent $intent")

    override fun close(): Unit = ArrayList(own).forEach(::give)

    private fun file(record: String): Path = path.resolve("$record.json")

    private fun take(name: String): Boolean = synchronized(own) { name in own || locks.take(name).also { if (it) own += name } }

    private fun give(name: String): Unit = synchronized(own) { if (own.remove(name)) locks.give(name) }

    /** Null if its client has just deleted it. */
    private fun read(file: Path): ByteArray? =
        try {
            file.readBytes()
        } catch (_: NoSuchFileException) {
            null
        }

    private fun write(file: Path, data: ByteArray) {
        FileChannel.open(file, setOf(WRITE, CREATE, TRUNCATE_EXISTING), *ownersOnly(file, OWNERS_FILE)).use { channel ->
            val bytes = ByteBuffer.wrap(data)
            while (bytes.hasRemaining()) channel.write(bytes)
            channel.force(true)
        }
    }

    /** On Unix the names in a folder are kept by the folder itself; Windows can't open one as a file. */
    private fun sync() {
        if (!windows) FileChannel.open(path, READ).use { it.force(true) }
    }

    private companion object {
        val windows = System.getProperty("os.name").orEmpty().startsWith("Windows")
    }
}
