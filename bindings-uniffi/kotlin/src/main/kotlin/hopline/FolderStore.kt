package hopline

import hopline.core.Folder
import hopline.core.StoreAnswer
import hopline.core.StoreCall
import hopline.core.StoreException
import java.io.File
import java.io.IOException
import java.math.BigDecimal
import java.nio.file.Path
import kotlin.time.Duration

/**
 * A store in a folder, which any number of clients and processes of one machine may share. Give each client an object of its own.
 *
 * A name that a client owns is locked by the operating system, so it is free as soon as its process ends, however it ends. An intent that
 * one living client uses is `busy` for every other, so it is bought once among all of them. Programs in Rust, Python and Swift may use the
 * same folder.
 *
 * The folder is opened, and made if it is missing, by the client's first call that needs it. Only the user that runs the program may read
 * it, and it holds no secrets. Give it a folder of its own, and never restore that from a backup: an older copy lacks the purchases made
 * since. On Android use [FolderStore.android].
 */
public class FolderStore(
    /** The folder. */
    public val path: Path,
    private val clock: Clock = Clock.SYSTEM,
) : Store {
    /** A store in the folder with this name, such as `hopline-records` of the working directory. */
    public constructor(path: String, clock: Clock = Clock.SYSTEM) : this(Path.of(path), clock)

    private var folder: Folder? = null
    private var isClosed = false

    override suspend fun claim(names: List<String>, most: Int): Claim =
        when (val answer = ask(StoreCall.Claim(names, most.toUInt()))) {
            is StoreAnswer.Claimed -> Claim.Claimed(answer.names.associate { it.name to it.data })
            is StoreAnswer.Busy -> Claim.Busy(answer.data)
            else -> throw odd(answer)
        }

    override suspend fun put(name: String, data: ByteArray, new: Boolean, keepFor: Duration?, release: Boolean): Boolean =
        isDone(ask(StoreCall.Put(name, data, new, keepFor?.inWholeMilliseconds, release)))

    override suspend fun delete(name: String): Boolean = isDone(ask(StoreCall.Delete(name)))

    override suspend fun release(names: List<String>?) {
        // A folder that was never opened owns nothing.
        if (isOpen()) ask(StoreCall.Release(names))
    }

    override suspend fun list(space: String, after: String?, open: Boolean): StorePage {
        val listed = ask(StoreCall.ListNames(space, after, open)) as? StoreAnswer.Listed ?: throw odd(null)
        return StorePage(listed.entries.map { StoreEntry(it.name, it.data, Whose.valueOf(it.whose.name)) }, listed.more)
    }

    override suspend fun spend(space: String, day: Long?, entry: String, amount: BigDecimal, cap: BigDecimal?): Spent =
        when (val answer = ask(StoreCall.Spend(space, day, entry, amount.toPlainString(), cap?.toPlainString()))) {
            is StoreAnswer.Granted -> Spent.Granted(answer.day)
            is StoreAnswer.Over -> Spent.Over(answer.day, BigDecimal(answer.total))
            else -> throw odd(answer)
        }

    override fun toString(): String = "FolderStore($path)"

    override suspend fun close() {
        shut()?.shutDown()
    }

    @Synchronized
    private fun isOpen(): Boolean = folder != null

    @Synchronized
    private fun shut(): Folder? {
        isClosed = true
        return folder
    }

    @Synchronized
    private fun opened(): Folder {
        if (isClosed) throw IOException("this store is closed")
        return folder ?: open().also { folder = it }
    }

    private fun open(): Folder =
        try {
            Folder(path.toAbsolutePath().toString())
        } catch (failed: StoreException) {
            throw StoreNotOpenedException(failed.message.orEmpty(), failed)
        }

    /** Blocks until the disk has the change, so a client calls it off its callers' threads. */
    private fun ask(call: StoreCall): StoreAnswer =
        try {
            opened().call(call, clock.unix())
        } catch (failed: StoreException) {
            throw IOException(failed.message, failed)
        }

    private fun isDone(answer: StoreAnswer): Boolean =
        when (answer) {
            StoreAnswer.Done -> true
            StoreAnswer.Lost -> false
            else -> throw odd(answer)
        }

    private fun odd(answer: StoreAnswer?) = IOException("the native library is that of another version: ${answer?.javaClass?.simpleName}")

    public companion object {
        /**
         * The store of an Android app: `FolderStore.android(context.noBackupFilesDir)`. Every other folder of an app is part of its
         * backup unless the app says otherwise, so a folder that is not called `no_backup` is refused.
         */
        public fun android(noBackupFilesDir: File): FolderStore {
            if (noBackupFilesDir.name != "no_backup") {
                val what = "`noBackupFilesDir` is not Android's folder without a backup; give `context.noBackupFilesDir`"
                throw unfit("noBackupFilesDir", what)
            }
            return FolderStore(noBackupFilesDir.toPath().resolve("hopline"))
        }
    }
}
