package hopline.host

import hopline.FolderStore
import hopline.OkHttpTransport
import java.nio.file.Files
import kotlin.io.path.ExperimentalPathApi
import kotlin.io.path.deleteRecursively
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

/** A story through the installed jar: `cargo xtask demo --host kotlin [--story life|reseller] [--seed N]`. */
object Demo {
    @OptIn(ExperimentalPathApi::class)
    @JvmStatic
    fun main(arguments: Array<String>) {
        val given = arguments.toList().chunked(2).associate { it[0] to it.getOrNull(1) }
        val (seed, story) = given.getOrDefault("--seed", "7") to given.getOrDefault("--story", "life")
        if (given.keys.any { it != "--seed" && it != "--story" } || seed == null || story !in setOf("life", "reseller")) {
            System.err.println("the demo takes `--story life`, `--story reseller` and `--seed N`, and nothing else")
            exitProcess(1)
        }
        val folder = Files.createTempDirectory("hopline-demo-")
        try {
            Sandbox("--seed", seed).use { sandbox ->
                runBlocking {
                    when (story) {
                        "life" -> sandbox.client(OkHttpTransport(), FolderStore(folder)).use { Life.tell(sandbox, it) }
                        else -> sandbox.reseller(OkHttpTransport(), FolderStore(folder)).use { Resale.tell(sandbox, it) }
                    }
                }
            }
        } finally {
            folder.deleteRecursively()
        }
        // OkHttp's idle threads would keep the program for a minute.
        exitProcess(0)
    }
}
