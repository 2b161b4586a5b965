package hopline.host

import hopline.EventName
import hopline.FolderStore
import hopline.ResellerClient
import java.nio.file.Path
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield

/** A program of its own for the tests, which is killed: `STORE USER` places an order and says its number once it was accepted. */
object Placer {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (store, user) = arguments
        ResellerClient(store = FolderStore(Path.of(store))).use { reseller ->
            runBlocking {
                val telling = launch { reseller.events.collect { if (it.event == EventName.ORDERED) println("ordered ${it.orderNo}") } }
                yield()
                reseller.place(user.toLong(), intent = "order-1")
                telling.cancel()
            }
        }
    }

    fun start(sandbox: Sandbox, store: Path, user: Long): Process =
        sandbox.program("hopline.host.Placer", store.toString(), user.toString()).start()
}
