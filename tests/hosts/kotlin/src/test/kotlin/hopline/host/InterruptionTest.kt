package hopline.host

import hopline.AgentClient
import hopline.Clock
import hopline.Effect
import hopline.HoplineException
import hopline.Options
import hopline.Request
import hopline.Response
import hopline.Secret
import hopline.SessionType
import hopline.Transport
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/**
 * A purchase that is interrupted at each point that it has, in each order in which coroutines can go on from there with one of them
 * taking another's turn. The transport does not look at cancellation. Nothing here depends on time or on threads.
 */
class InterruptionTest {
    @Test
    fun `a call that is cancelled at any point never says that nothing was sent when it was`() {
        for (intent in listOf("job-17", null)) everywhere(intent) { it.caller.cancel() }
    }

    @Test
    fun `a client that is closed at any point of a call never says that nothing was sent when it was`() {
        for (intent in listOf("job-17", null)) everywhere(intent) { it.launch { it.agent.shutdown() } }
    }

    @Test
    fun `a call that is cancelled at any point keeps no intent from others for nothing`() {
        everywhere("job-17", Purchase::checkIntent) { it.caller.cancel() }
    }

    @Test
    fun `what is resumed is given to the caller or stays in the store, wherever the caller is cancelled`() {
        everywhere(null, Purchase::checkResumed, Purchase::leaveDoubt) { it.caller.cancel() }
    }

    @Test
    fun `what is resumed with all else is given to the caller or stays in the store, wherever the caller is cancelled or the client closed`() {
        for (interrupt in listOf<(Purchase) -> Unit>({ it.caller.cancel() }, { it.launch { it.agent.shutdown() } })) {
            everywhere(null, Purchase::checkResumed, Purchase::leaveOneOfAll, interrupt)
        }
    }

    @Test
    fun `an answer that was given leaves nothing behind, though its client is closed at once`() {
        val closing: suspend (Purchase) -> Unit = { it.agent.shutdown() }
        val turns = Purchase(null, null, null) {}.run { buy(closing).let { turns } }
        for (swap in 0..<turns) {
            val world = Purchase(null, null, swap) {}
            world.buy(closing)
            world.checkGiven("with turn $swap swapped")
        }
    }

    private fun everywhere(
        intent: String?,
        look: Purchase.(String) -> Unit = Purchase::check,
        prepare: Purchase.() -> Unit = {},
        interrupt: (Purchase) -> Unit,
    ) {
        val (points, turns) = Purchase(intent, null, null, interrupt).run { prepare().let { buy() to turns } }
        assertTrue(points >= 15, "a purchase has only $points points")
        for (point in 0..<points) {
            for (swap in listOf(null) + (0..<turns)) {
                val world = Purchase(intent, point, swap, interrupt)
                world.prepare()
                world.buy()
                world.look("interrupted at $point of $points, with turn $swap swapped")
            }
        }
    }
}

/** Coroutines take turns, and the test says when. */
internal class Turns : CoroutineDispatcher() {
    private val ready = ArrayDeque<Runnable>()

    override fun dispatch(context: CoroutineContext, block: Runnable): Unit = synchronized(ready) { ready.addLast(block) }

    /** Another dispatcher of the same turns, so that whoever changes dispatchers waits for a turn, as between threads. */
    override fun limitedParallelism(parallelism: Int, name: String?): CoroutineDispatcher {
        val all = this
        return object : CoroutineDispatcher() {
            override fun dispatch(context: CoroutineContext, block: Runnable) = all.dispatch(context, block)
        }
    }

    /** True if a caller waits for a turn. */
    val isWanted: Boolean get() = synchronized(ready) { ready.isNotEmpty() }

    /** Lets the first go on, or the last. Returns true if there was one. */
    fun next(last: Boolean = false): Boolean {
        val block = synchronized(ready) { if (last) ready.removeLastOrNull() else ready.removeFirstOrNull() }
        block?.run()
        return block != null
    }
}

private class Purchase(private val intent: String?, private val interruptAt: Int?, private val swapAt: Int?, private val interrupt: (Purchase) -> Unit) {
    private val turn = Turns()
    private val scope = CoroutineScope(turn)
    private val store = SharedStore()
    private val sent = ArrayList<Request>()
    private var points = 0
    private var came: Result<Any>? = null

    /** The record that an earlier client left; the transport's answers to that client were lost. */
    private var doubt: String? = null
    private var losing = false
    private var resumesAll = false
    var turns = 0
    lateinit var caller: Job

    /** Of the client's own places only those where it holds no lock: anybody may go on while it is there. */
    private val clock =
        object : Clock {
            override fun unix(): Long = 1_750_000_000_000

            override fun monotonic(): Long {
                if (Throwable().stackTrace.any { it.className.startsWith("hopline.Exchange") }) reached()
                return 1_000_000
            }
        }

    private val transport = Transport { request ->
        sent += request
        if (losing) return@Transport Response(504, DATED, ByteArray(0))
        reached()
        withContext(NonCancellable) { yield() }
        reached()
        Response(202, listOf("Content-Type" to "application/json") + DATED, BOUGHT.toByteArray())
    }

    private fun reached() {
        if (losing || points++ != interruptAt) return
        interrupt(this)
        while (turn.next()) Unit
    }

    val agent = client()

    private fun client(options: Options = Options()): AgentClient {
        val headers: suspend () -> Map<String, String> = {
            yield()
            reached()
            emptyMap()
        }
        return AgentClient(Secret("key"), "https://api.example/v1", transport, store.client(), options, headers = headers, clock = clock, dispatcher = turn)
    }

    fun launch(work: suspend () -> Unit): Job = scope.launch { work() }

    /** Leaves a purchase in doubt, which [buy] then resumes. */
    fun leaveDoubt() {
        losing = true
        val earlier = client(Options(attempts = 1))
        ask { runCatching { earlier.createSession(SessionType.Dynamic, "p", intent = intent) } }
        doubt = ask { earlier.saved() }.single().record
        ask { earlier.shutdown() }
        losing = false
    }

    fun leaveOneOfAll() {
        leaveDoubt()
        resumesAll = true
    }

    /** Buys, and says how many points there were. */
    fun buy(then: suspend (Purchase) -> Unit = {}): Int {
        caller = launch {
            came = runCatching {
                if (resumesAll) return@runCatching agent.resumeAll().single().getOrThrow()
                doubt?.let { agent.resume(it) } ?: agent.createSession(SessionType.Dynamic, "p", intent = intent)
            }
            then(this@Purchase)
        }
        do {
            reached()
        } while (turn.next(last = turns++ == swapAt))
        assertTrue(caller.isCompleted, "the call hangs")
        return points
    }

    private fun <T : Any> ask(question: suspend () -> T): T {
        var answer: T? = null
        val asking = launch { answer = question() }
        while (turn.next()) Unit
        assertTrue(asking.isCompleted, "the question hangs")
        return answer!!
    }

    fun check(where: String) {
        val failure = came?.exceptionOrNull()
        val before = sent.count { it.method == "POST" }
        if (failure is HoplineException && before > 0) assertTrue(failure.effect != Effect.NONE, "$where: $failure")
        // A client that looks later finds it, in this client or in the next one.
        ask { agent.shutdown() }
        val next = client()
        val held = ask { next.saved() }
        if (before > 0 && (failure != null || intent != null)) assertTrue(held.isNotEmpty(), "$where: what was sent is forgotten")
        if (before == 0) assertTrue(held.isEmpty(), "$where: $held")
        if (intent != null) ask { next.createSession(SessionType.Dynamic, "p", intent = intent) }
        val keys = keys()
        assertEquals(if (before == 0 && intent == null) 0 else 1, keys.size, "$where: bought with ${keys.size} keys")
        ask { next.shutdown() }
    }

    /** A caller that got the purchase needs no record of it. */
    fun checkGiven(where: String) {
        assertTrue(came!!.isSuccess, "$where: $came")
        assertEquals(emptyList<String>(), store.names, where)
    }

    private fun keys() = sent.filter { it.method == "POST" }.map { request -> request.headers.single { it.first == "idempotency-key" }.second }.toSet()

    /** Where nothing is kept, others can start the intent, though this client lives on. */
    fun checkIntent(where: String) {
        if (ask { agent.saved() }.isEmpty()) {
            val other = client()
            val bought = ask { runCatching { other.createSession(SessionType.Dynamic, "p", intent = intent) } }
            assertTrue(bought.isSuccess, "$where: ${bought.exceptionOrNull()}")
            ask { other.shutdown() }
        }
        ask { agent.shutdown() }
    }

    /** A caller that did not get the purchase finds it in the store. */
    fun checkResumed(where: String) {
        ask { agent.shutdown() }
        val next = client()
        val held = ask { next.saved() }
        assertTrue(came?.isSuccess == true || held.isNotEmpty(), "$where: what was resumed is lost")
        assertEquals(1, keys().size, where)
        ask { next.shutdown() }
    }
}

/** The service's time, without which no key is sent again after a restart. */
private val DATED = listOf("Date" to "Sun, 15 Jun 2025 15:06:40 GMT")

private const val BOUGHT = """{"success":true,"data":{"session_id":"s-1","status":"creating"}}"""
