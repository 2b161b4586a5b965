package hopline

import hopline.core.Client
import hopline.core.FailureKind
import hopline.core.Header
import hopline.core.Move
import hopline.core.MoveAnswer
import hopline.core.Sent
import hopline.core.Step
import hopline.core.StoreAnswer
import hopline.core.Taken
import hopline.core.responseHeaders
import java.io.IOException
import java.lang.ref.WeakReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineExceptionHandler
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonPrimitive

/** What a client lets its engine use. */
internal class Means(val transport: Transport, val headers: Headers?, val clock: Clock, val dispatcher: CoroutineDispatcher)

/**
 * Drives a core for any number of coroutines: does what its steps say, answers each once, and hands out the results. All that
 * it knows of the API is the contract of `poll`. Nothing of it runs in the thread of who calls, which may be an app's main one.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class Engine(private val core: Client, means: Means, private val store: StoreHandle?) {
    val clock = means.clock

    private val threads = Threads(means.dispatcher)
    private val work = threads.work
    private val exchange = Exchange(means.transport, means.headers, clock, threads)
    private val lock = ReentrantLock()
    private val scope = CoroutineScope(SupervisorJob() + CoroutineExceptionHandler { _, error -> broken(error) })
    private val headers = responseHeaders().toSet()

    /** Used while the lock is held. */
    private val moves = Moves(core, clock)
    private val waiting = HashMap<UInt, Waiting<*>>()
    private val out = HashMap<UInt, Out>()

    /** The steps of the store that have no answer yet. */
    private val asked = HashSet<UInt>()

    /** Calls of the store, and results on their way to being dropped: [shutdown] waits for them. */
    private val tasks: MutableSet<Job> = ConcurrentHashMap.newKeySet()
    private var timer: Job? = null
    private var due: Long? = null
    private val closer = Mutex()

    /** While [closer] is held: whether somebody closes it, or has. */
    private var finished = false

    /** Since [shutdown] began: nothing new is begun, and nothing is sent but what ends sessions, if that was asked for before. */
    @Volatile
    private var closing = false

    /** Since its time was up: nothing is sent, and the store is not asked. */
    private var isLate = false

    /** Since it ended: nothing is done any more. */
    private var closed = false
    private var lastToken: Secret? = null

    /** How often the store's claims have ended. */
    @Volatile
    private var losses = 0
    val events = Events(scope, work)

    init {
        // A store that is known elsewhere keeps no client alive.
        val self = WeakReference(this)
        store?.onLost { names -> self.get()?.lose(names) }
    }

    /** A coroutine that waits for a command, and how it reads what that ended with. */
    private class Waiting<T>(val operation: String, val command: UInt, val read: (Ended) -> T) {
        val ended = CompletableDeferred<T>()

        /** What the store and the transport said. */
        val notes = LinkedHashSet<String>()

        /** Whether the core keeps no result of it, since nothing depends on who reads it. */
        var isTaken = false

        /** Reads it in this thread, since each change of threads costs more than to read most answers. */
        fun end(came: Ended) {
            try {
                ended.complete(read(came))
            } catch (error: Throwable) {
                ended.completeExceptionally(error)
            }
        }
    }

    /** A request that is out, and whether it ends a session. */
    private class Out(val job: Job, val endsSession: Boolean)

    /** What a command ended with, and what the store and the transport said meanwhile. */
    class Ended(val taken: Taken, val data: Data, val notes: List<String>)

    /** What is gone on with once the lock is free. */
    private class Round {
        val unlocked = Job()
        val ended = ArrayList<Pair<Waiting<*>, Ended>>()
        var error: Throwable? = null
    }

    /**
     * Runs the command that a move starts, if it starts one, to its end, and reads what it ended with; with `parts`, the commands that it is
     * answered with after it. A caller who is cancelled meanwhile gives them up; what was done by then, and nobody heard of, is
     * shown by `saved`.
     */
    suspend fun <T> run(operation: String, what: () -> Move, command: (MoveAnswer) -> UInt? = { (it as MoveAnswer.Command).command }, parts: Boolean = false, read: (List<Ended>) -> T): T {
        val begun = ArrayList<UInt>()
        var waiter: Waiting<T>? = null
        var delivered = false
        try {
            withContext(work) {
                begin(operation, what()) { came ->
                    command(came)?.let { started ->
                        begun += started
                        waiter = Waiting(operation, started) { ended -> read(if (parts) listOf(ended) + others(operation, ended, begun) else listOf(ended)) }
                        waiting[started] = checkNotNull(waiter)
                    }
                }
            }
            val begins = waiter
            return (if (begins == null) read(emptyList()) else begins.ended.await()).also { delivered = true }
        } catch (failure: HoplineException) {
            delivered = true
            throw failure
        } finally {
            // Its result is lost if the caller is cancelled while it is on its way to them, so the core is told only now.
            when {
                begun.isEmpty() || delivered && waiter?.isTaken == true -> Unit
                delivered -> task(work) { move({ Move.Taken(begun) }) }
                else -> withContext(NonCancellable + work) {
                    waiter?.let { giveUp(it) }
                    move({ Move.Abandon(begun) })
                }
            }
        }
    }

    /** Has the core do something that is answered at once, and waits until the store was told what it changed. */
    suspend fun ask(operation: String, what: () -> Move): MoveAnswer =
        withContext(work) {
            lateinit var answer: MoveAnswer
            begin(operation, what()) { answer = it }
            // A copy by `toArray`, since `toList` can't bear that one ends meanwhile.
            ArrayList(tasks).joinAll()
            answer
        }

    /** Has the core do something that is answered at once, in this thread. Null if the client is closed. */
    fun say(what: Move): MoveAnswer? {
        var answer: MoveAnswer? = null
        if (!closing) move({ what }) { answer = if (it is MoveAnswer.Refused) throw exception(it.error) else it }
        return answer
    }

    /** Gives back what was lent, whatever has become of the caller or the client. */
    suspend fun give(what: Move): Unit = withContext(NonCancellable + work) { move({ what }) }

    fun isValid(lent: PoolLease): Boolean = lock.withLock { !closing && core.isValid(lent.pool.toUInt(), lent.lease) }

    /** The token of the reseller API, also after [shutdown]. */
    fun token(): Secret? = lock.withLock { if (closed) lastToken else core.token()?.let(::Secret) }

    /** Whether nothing can be begun any more. */
    val isClosed: Boolean get() = closing

    /** Gives up what is under way, and lets go of all names of the store. */
    suspend fun shutdown(timeout: Duration): Unit =
        withContext(NonCancellable + work) {
            closer.withLock {
                if (!finished) {
                    finished = true
                    finish(timeout)
                }
            }
        }

    /** The same for a caller who may block the thread of its dispatcher until it is done: what is left to do is done elsewhere. */
    suspend fun shutdownElsewhere(timeout: Duration) {
        threads.move()
        lock.withLock {
            closing = true
            timer?.cancel()
            timer = null
        }
        move({ Move.Go })
        shutdown(timeout)
    }

    /** Nobody holds the client any more, so nobody can close it. */
    fun forget(warn: () -> Unit) {
        if (lock.withLock { closing.also { closing = true } }) return
        // A platform may have no logging.
        runCatching(warn)
        GlobalScope.launch(Dispatchers.IO) { shutdownElsewhere(PATIENCE) }
    }

    private suspend fun finish(timeout: Duration) {
        val began = TimeSource.Monotonic.markNow()
        try {
            val (commands, sends) =
                lock.withLock {
                    closing = true
                    waiting.values.filter { it.operation !in ENDINGS }.map { it.command } to out.values.filter { !it.endsSession }.map { it.job }
                }
            commands.forEach(::cancel)
            sends.forEach { it.cancel() }
            withTimeoutOrNull(timeout) { while (awaitRest()) Unit } ?: giveUp()
        } finally {
            lock.withLock {
                closed = true
                lastToken = core.token()?.let(::Secret)
            }
            val left = lock.withLock { waiting.values.toList().also { waiting.clear() } }
            left.forEach { it.ended.completeExceptionally(unheard(it.operation)) }
            events.close()
            letGo(timeout - began.elapsedNow())
            scope.coroutineContext[Job]?.cancel()
            core.close()
        }
    }

    /** The time is up: what the store has not answered may be done or not, and whatever still waits is cancelled, so that core says what became of it. */
    private suspend fun giveUp() {
        val (steps, commands, sends) =
            lock.withLock {
                isLate = true
                Triple(asked.toList(), waiting.values.toList(), out.values.map { it.job })
            }
        steps.forEach { stored(it) { StoreAnswer.Failed } }
        commands.forEach { cancel(it.command) }
        sends.forEach { it.cancel() }
        // Nothing that comes now waits for anybody but this client's own threads.
        withTimeoutOrNull(SOON) { commands.forEach { it.ended.join() } }
    }

    /** Waits for what is under way. Whether there was anything. */
    private suspend fun awaitRest(): Boolean {
        val left = lock.withLock { waiting.values.map { it.ended } + out.values.map { it.job } } + ArrayList(tasks)
        left.joinAll()
        return left.isNotEmpty()
    }

    /** What can't be let go of in time is free once the store has answered, or the process ends. */
    private suspend fun letGo(timeout: Duration) {
        val letting = scope.launch(threads.disk, CoroutineStart.ATOMIC) { withContext(NonCancellable) { store?.close() } }
        withTimeoutOrNull(timeout) { letting.join() }
    }

    /** Does what a caller wants, unless the client is closing, and says in the lock what it was answered with. */
    private fun begin(operation: String, what: Move, hear: (MoveAnswer) -> Unit) {
        val closed = { refused(operation, "closed") }
        val isDone = move({ if (closing) throw closed() else what }) { answer -> if (answer is MoveAnswer.Refused) throw exception(answer.error) else hear(answer) }
        if (!isDone) throw closed()
    }

    /** What the commands ended with that a command was answered with. */
    private fun others(operation: String, ended: Ended, begun: MutableList<UInt>): List<Ended> {
        if (ended.taken !is Taken.Answered) return emptyList()
        val others = (ended.data.raw.json as JsonArray).map { (it as JsonPrimitive).content.toUInt() }
        begun += others
        return lock.withLock {
            if (closed) throw unheard(operation)
            others.map { other ->
                val taken = result(core.result(other))
                Ended(taken, if (taken is Taken.Answered) taken.answer.run { Data(Raw(raw), packed) } else Data.NONE, emptyList())
            }
        }
    }

    private suspend fun giveUp(waiter: Waiting<*>) {
        if (!waiter.ended.isCompleted) cancel(waiter.command)
        waiter.ended.join()
    }

    private fun cancel(command: UInt) {
        var out: Job? = null
        move({ Move.Cancel(command) }) { came -> out = (came as MoveAnswer.Abort).step?.let { this.out[it]?.job } }
        out?.cancel()
    }

    /** Begins even if it was cancelled, since every step must be answered. */
    private fun task(dispatcher: CoroutineDispatcher, work: suspend () -> Unit) {
        val job = scope.launch(dispatcher, CoroutineStart.ATOMIC) { work() }
        tasks += job
        job.invokeOnCompletion { tasks -= job }
    }

    /**
     * Moves the core, says in the lock what it answered, and does all that it then wants done. Returns false if the client is closed. What
     * can't be told to the core throws, and nothing was done then.
     */
    private fun move(what: () -> Move, body: ByteArray = NOTHING, hear: (MoveAnswer) -> Unit = {}): Boolean {
        val round = Round()
        val heard =
            lock.withLock {
                if (closed) return false
                var came = moves.advance(what(), body)
                runCatching { hear(came.moved.answer) }.also {
                    try {
                        while (carryOut(came, round)) came = moves.advance(Move.Go, NOTHING)
                    } catch (error: Throwable) {
                        round.error = error
                    }
                }
            }
        // Outside the lock, since who waited may go on in this thread, and an answer may be there as soon as its request is sent.
        round.error?.let(::broken)
        round.unlocked.complete()
        round.ended.forEach { (waiter, came) -> waiter.end(came) }
        heard.getOrThrow()
        return true
    }

    /** Memory was short, or the native library is that of another version: nobody would hear of anything any more. */
    private fun broken(error: Throwable) {
        lock.withLock { waiting.values.toList().also { waiting.clear() } }.forEach { it.ended.completeExceptionally(error) }
    }

    /** Does what some steps say, and returns whether there are more. */
    private fun carryOut(came: Moves.Came, round: Round): Boolean {
        for (step in came.moved.steps) {
            when (step) {
                is Step.Store -> ask(step)
                is Step.Send -> send(step, round.unlocked)
                is Step.Completed -> {
                    val taken = result(step.result)
                    val data = if (taken is Taken.Answered) came.data() else Data.NONE
                    waiting.remove(step.command)?.let {
                        it.isTaken = step.command in came.moved.taken
                        round.ended += it to Ended(taken, data, it.notes.toList())
                    }
                }
                is Step.Notify -> events.tell { event(step.event) }
                is Step.Wait -> {
                    alarm(step.until)
                    return false
                }
            }
        }
        return true
    }

    private fun result(taken: Taken?): Taken = checkNotNull(taken) { "the core has no result of a command that completed" }

    private fun ask(step: Step.Store) {
        asked += step.id
        if (isLate) {
            task(work) { stored(step.id) { StoreAnswer.Failed } }
            return
        }
        task(threads.disk) {
            var trouble: Throwable? = null
            val answer =
                try {
                    checkNotNull(store) { "the core asked a store that it has not" }.call(step.call)
                } catch (error: Throwable) {
                    trouble = error
                    if (error is StoreNotOpenedException) StoreAnswer.Never else StoreAnswer.Failed
                }
            stored(step.id) {
                trouble?.let { error -> step.command?.let { waiting[it] }?.notes?.add("the store said: ${said(error)}") }
                answer
            }
        }
    }

    /** What the store answered, unless it was given up meanwhile. */
    private fun stored(step: UInt, answer: () -> StoreAnswer) {
        if (!lock.withLock { asked.remove(step) }) return
        try {
            move({ Move.Stored(step, answer()) })
        } catch (_: IOException) {
            // A name of a store of the caller's own that is no text. Every step must be answered.
            move({ Move.Stored(step, StoreAnswer.Failed) })
        }
    }

    /** What waits for the transport goes on in its thread with a response, and in one of the engine's if there is none. */
    private fun send(step: Step.Send, unlocked: Job) {
        val (before, endsSession) = losses to step.request.endsSession
        if (isLate || closing && !endsSession) {
            task(work) { move({ Move.Fail(step.id, FailureKind.ABORTED, Sent.NEVER) }) }
            return
        }
        val operation = waiting[step.command]?.operation ?: "pool"
        val sending = scope.launch(Dispatchers.Unconfined, CoroutineStart.ATOMIC) {
            withContext(NonCancellable) { unlocked.join() }
            val begun = clock.monotonic()
            events.tell { exchanged(operation, step.request) }
            val came = exchange.run(step.request) { store?.vouches() != false && losses == before }
            val duration = (clock.monotonic() - begun).milliseconds
            events.tell { exchanged(operation, step.request, came, duration) }
            if (came.response != null) came(step, came) else withContext(NonCancellable + work) { came(step, came) }
        }
        out[step.id] = Out(sending, endsSession)
    }

    private fun came(step: Step.Send, came: ExchangeResult) {
        val response = came.response
        val failed = { note: String? ->
            out.remove(step.id)
            note?.let { waiting[step.command]?.notes?.add(it) }
            if (came.unfit != null) Move.RefuseHeaders(step.id, came.unfit) else Move.Fail(step.id, came.kind, came.sent)
        }
        if (response == null) {
            move({ failed(came.note) })
            return
        }
        val told = response.headers.map { it.first.lowercase() to it.second }.filter { it.first in headers }.map { Header(it.first, it.second) }
        val status = response.status.coerceIn(0, UShort.MAX_VALUE.toInt()).toUShort()
        try {
            move({ Move.Respond(step.id, status, told, response.truncated).also { out.remove(step.id) } }, response.body)
        } catch (error: IOException) {
            // A header of a transport of the caller's own that is no text. Every step must be answered.
            move({ failed("the transport's response could not be read: ${error.javaClass.simpleName}") })
        }
    }

    /** Claims have ended: what was to be sent under one of them is not. */
    private fun lose(names: List<String>?) {
        move({ Move.Lost(names).also { losses += 1 } })
    }

    private fun alarm(until: Long?) {
        if (until == due && (until == null || timer != null)) return
        timer?.cancel()
        due = until
        timer = until?.let {
            // It suspends before it does anything, so the lock is not held then.
            scope.launch(threads.timing, CoroutineStart.UNDISPATCHED) {
                clock.waitUntil(it)
                withContext(work) {
                    lock.withLock {
                        if (due == it) {
                            due = null
                            timer = null
                        }
                    }
                    move({ Move.Go })
                }
            }
        }
    }

    private companion object {
        /** What ends sessions, and so is done although the client is closing. */
        val ENDINGS = setOf("terminate_session", "drain_pool")

        val PATIENCE: Duration = 10.seconds

        /** How long the core may take to say what became of what it was told to cancel. */
        val SOON: Duration = 2.seconds
    }
}
