package hopline

import hopline.core.Client
import hopline.core.FailureKind
import hopline.core.Header
import hopline.core.Sent
import hopline.core.Step
import hopline.core.Taken
import hopline.core.responseHeaders
import java.io.IOException
import java.nio.Buffer
import java.nio.ByteBuffer
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext

/**
 * Drives a core for any number of coroutines: does what its steps say, answers each once, and hands out the results. All that
 * it knows of the API is the contract of `poll`. Whoever changes something pumps; nothing waits in between.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class Engine(private val core: Client, transport: Transport, private val records: Records) {
    private val lock = ReentrantLock()
    private val scope = CoroutineScope(SupervisorJob())
    private val exchange = Exchange(transport)
    private val headers = responseHeaders().toSet()
    private val waiting = HashMap<UInt, Waiting>()
    private val out = HashMap<UInt, Job>()
    private val saves = HashSet<Job>()
    private var timer: Job? = null
    private var due: Long? = null

    /** Since [close]: nothing new is begun. */
    @Volatile
    private var closing = false

    /** Since the end of [close]: nothing is done any more. */
    private var closed = false
    val events = Events(scope, work)

    /** A coroutine that waits for a command. */
    private class Waiting(val command: UInt) {
        val ended = CompletableDeferred<Unit>()
        val notes = LinkedHashSet<String>()
    }

    /** What a command ended with, and what the store and the transport said meanwhile. */
    class Ended(val taken: Taken, val notes: List<String>)

    /** Runs a command to its end. Whoever is cancelled meanwhile gives it up. */
    suspend fun run(operation: String, intent: String?, begin: (Client) -> UInt): Ended {
        currentCoroutineContext().ensureActive()
        check(operation)
        if (intent == null) return end(enter(operation, begin))
        var claimed = false
        try {
            // Not cancellable, so that it is known whether the intent was claimed.
            withContext(NonCancellable + disk) { records.claim(core, operation, intent) }
            claimed = true
            currentCoroutineContext().ensureActive()
            return end(enter(operation, begin))
        } finally {
            if (claimed) records.leave(intent)
            letGo()
        }
    }

    /** Runs several commands that one question starts, each to its end. */
    fun enterAll(operation: String, begin: (Client) -> List<UInt>): List<suspend () -> Ended> =
        lock.withLock {
            check(operation)
            begin(core).map { command -> register(command) }
        }.map { suspend { end(it) } }

    /** Asks the core for something that is answered at once, and waits until what it changed is in the store. */
    suspend fun <T> ask(operation: String, question: (Client) -> T): T {
        val answer = now(operation, question)
        // What is saved of a record while another save of it is out comes after that.
        do {
            val left = lock.withLock { saves.toList() }
            left.joinAll()
        } while (left.isNotEmpty())
        letGo()
        return answer
    }

    /** Asks the core for something that is answered at once. */
    fun <T> now(operation: String, question: (Client) -> T): T {
        val answer = lock.withLock {
            check(operation)
            question(core)
        }
        pump()
        return answer
    }

    /** The token of the reseller API, also after [close]. */
    fun token(): Secret? = lock.withLock { core.token() }?.let(::Secret)

    /** Does something with the records, which may wait for a disk. */
    suspend fun <T> withRecords(operation: String, work: Records.(Client) -> T): T {
        check(operation)
        return withContext(disk) { records.work(core) }
    }

    /** Gives up what is under way, keeps its records, and gives the store back. */
    fun close() {
        val commands = lock.withLock {
            if (closing) return
            closing = true
            waiting.keys.toList()
        }
        try {
            commands.forEach(::cancel)
            lock.withLock { out.values.toList() }.forEach { it.cancel() }
            runBlocking {
                while (true) {
                    val left = lock.withLock { waiting.values.map { it.ended } + saves + out.values }
                    if (left.isEmpty()) break
                    left.joinAll()
                }
            }
        } finally {
            lock.withLock { closed = true }
            events.close()
            scope.coroutineContext[Job]?.cancel()
            runBlocking(disk) { records.close() }
        }
    }

    private fun check(operation: String) {
        if (closing) throw refusal("misuse", operation, "this client is closed; make another one")
    }

    private fun enter(operation: String, begin: (Client) -> UInt): Waiting =
        lock.withLock {
            check(operation)
            register(begin(core))
        }

    private fun register(command: UInt): Waiting = Waiting(command).also { waiting[command] = it }

    private suspend fun end(waiter: Waiting): Ended {
        pump()
        try {
            waiter.ended.await()
        } catch (gone: CancellationException) {
            cancel(waiter.command)
            withContext(NonCancellable) { waiter.ended.join() }
            // Its result is not taken: of a success that nobody hears of any more, the record stays.
            throw gone
        }
        val taken = lock.withLock { core.take(waiter.command) } ?: throw refusal("misuse", "client", "the result was taken before")
        pump()
        return Ended(taken, waiter.notes.toList())
    }

    private fun cancel(command: UInt) {
        lock.withLock { core.cancel(command, Clock.unix(), Clock.monotonic())?.let { out[it] } }?.cancel()
        pump()
    }

    private suspend fun letGo() = withContext(NonCancellable + disk) { records.letGo(core) }

    /** Does all that the core wants done. */
    private fun pump() {
        val ended = ArrayList<Waiting>()
        try {
            lock.withLock { while (!closed && step(ended)) Unit }
        } catch (broken: Throwable) {
            // The core does not throw; if it did, nobody would hear of anything any more.
            lock.withLock { waiting.values.toList().also { waiting.clear() } }.forEach { it.ended.completeExceptionally(broken) }
        }
        // Outside the lock, since who waited may go on in this thread.
        ended.forEach { it.ended.complete(Unit) }
    }

    private fun step(ended: MutableList<Waiting>): Boolean {
        when (val step = core.poll(Clock.unix(), Clock.monotonic())) {
            is Step.Save -> save(step)
            is Step.Send -> send(step)
            is Step.Completed -> waiting.remove(step.command)?.let { ended += it }
            is Step.Notify -> events.tell(step.event)
            is Step.Wait -> {
                alarm(step.until)
                return false
            }
        }
        return true
    }

    private fun save(step: Step.Save) {
        // Atomic: it begins even if it was cancelled, since every step must be answered.
        val job = scope.launch(disk, CoroutineStart.ATOMIC) {
            val trouble = records.keep(step.record, step.data)
            answer {
                if (trouble == null) {
                    core.saved(step.id, Clock.unix(), Clock.monotonic())
                } else {
                    waiting.values.forEach { it.notes += "the store said: $trouble" }
                    core.fail(step.id, FailureKind.STORE, Sent.NEVER, Clock.unix(), Clock.monotonic())
                }
            }
        }
        saves += job
        job.invokeOnCompletion { lock.withLock { saves -= job } }
    }

    private fun send(step: Step.Send) {
        out[step.id] = scope.launch(work, CoroutineStart.ATOMIC) {
            val came = exchange.run(step.request)
            answer {
                out.remove(step.id)
                came.note?.let { waiting[step.command]?.notes?.add(it) }
                if (came.response == null) {
                    core.fail(step.id, came.kind, came.sent, Clock.unix(), Clock.monotonic())
                } else {
                    respond(step, came.response)
                }
            }
        }
    }

    private fun respond(step: Step.Send, response: Response) {
        val told = response.headers.map { it.first.lowercase() to it.second }.filter { it.first in headers }.map { Header(it.first, it.second) }
        val status = response.status.coerceIn(0, UShort.MAX_VALUE.toInt()).toUShort()
        try {
            core.respond(step.id, status, told, direct(response.body), response.truncated, Clock.unix(), Clock.monotonic())
        } catch (error: IOException) {
            // A header of a transport of the caller's own that is no text. Every step must be answered.
            waiting[step.command]?.notes?.add("the transport's response could not be read: ${error.javaClass.simpleName}")
            core.fail(step.id, FailureKind.OTHER, Sent.MAYBE, Clock.unix(), Clock.monotonic())
        }
    }

    private fun answer(how: () -> Unit) {
        try {
            lock.withLock(how)
        } finally {
            pump()
        }
    }

    private fun alarm(until: Long?) {
        if (until == due && (until == null || timer != null)) return
        timer?.cancel()
        due = until
        timer = until?.let {
            scope.launch(work) {
                delay((it - Clock.monotonic()).coerceAtLeast(1))
                lock.withLock {
                    if (due == it) {
                        due = null
                        timer = null
                    }
                }
                pump()
            }
        }
    }

    companion object {
        /** Threads of their own, so that nobody's waiting can keep them from going on: those that wait for nothing… */
        private val work = Dispatchers.IO.limitedParallelism(4, "hopline")

        /** …and those that wait for disks. */
        private val disk = Dispatchers.IO.limitedParallelism(8, "hopline-store")

        /** Opens a store there: the locks of a thread that is interrupted would be lost to the whole process. */
        fun <T> opening(open: () -> T): T = runBlocking(disk) { open() }
    }
}

/** A body where native code can see it. */
private fun direct(body: ByteArray): ByteBuffer {
    val buffer = ByteBuffer.allocateDirect(body.size).put(body)
    // As its base class: Android's older systems do not know `ByteBuffer.rewind`.
    val base: Buffer = buffer
    base.rewind()
    return buffer
}
