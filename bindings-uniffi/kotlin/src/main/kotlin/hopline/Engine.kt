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
import java.time.Instant
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
import kotlin.coroutines.ContinuationInterceptor
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
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonPrimitive

/** The parts of a client that its engine uses. */
internal class Means(val transport: Transport, val headers: Headers?, val clock: Clock, val dispatcher: CoroutineDispatcher)

/**
 * Drives a core for any number of coroutines: carries out its steps, answers each once, and hands out the results. The contract of `poll`
 * is the only part of the API that it knows. Nothing runs in the caller's thread, which may be an app's main one.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class Engine(private val core: Client, means: Means, private val store: StoreHandle?) {
    val clock = means.clock

    private val threads = Threads(means.dispatcher)
    private val work = threads.work
    private val exchange = Exchange(means.transport, means.headers, clock, threads)
    private val lock = ReentrantLock()
    private val scope = CoroutineScope(SupervisorJob() + CoroutineExceptionHandler { _, error -> broken(error) })
    private val patience = Patience(scope, threads.disk)
    private val headers = responseHeaders().toSet()

    /** Used only while the lock is held. */
    private val moves = Moves(core, clock)
    private val waiting = HashMap<UInt, Waiting<*>>()
    private val out = HashMap<UInt, Out>()

    /** The store's steps that have no answer yet. */
    private val asked = HashSet<UInt>()

    /** Calls of the store, and results that are being dropped: [shutdown] waits for them. */
    private val tasks: MutableSet<Job> = ConcurrentHashMap.newKeySet()
    private var timer: Job? = null
    private var due: Long? = null
    private val closer = Mutex()

    /** Guarded by [closer]: true once the client is being closed. */
    private var finished = false

    /** True since [shutdown] began: nothing new is begun, and only terminations that were requested before are sent. */
    @Volatile
    private var closing = false

    /** True since the time of the shutdown was up: nothing is sent, and the store is not called. */
    private var isLate = false

    /** True since the shutdown ended: nothing is done any more. */
    private var closed = false
    private var lastToken: Secret? = null

    /** The number of times that the store's claims have ended. */
    @Volatile
    private var losses = 0
    val events = Events(scope, work)

    init {
        // A store that is known elsewhere keeps no client alive.
        val self = WeakReference(this)
        store?.onLost { names -> self.get()?.lose(names) }
    }

    /** A coroutine that waits for a command, and the reader of its result. */
    private class Waiting<T>(val operation: String, val command: UInt, val read: (Ended) -> T) {
        val ended = CompletableDeferred<T>()

        /** Messages of the store and the transport. */
        val notes = LinkedHashSet<String>()

        /** True if the core keeps no result for it, since nothing depends on who reads it. */
        var isTaken = false

        /** Reads the result in this thread, since a change of threads costs more than reading most answers. */
        fun end(came: Ended) {
            try {
                ended.complete(read(came))
            } catch (error: Throwable) {
                ended.completeExceptionally(error)
            }
        }
    }

    /** A request that is out; `endsSession` is true for a termination. */
    private class Out(val job: Job, val endsSession: Boolean)

    /** The result of a command, and the messages of the store and the transport meanwhile. */
    class Ended(val taken: Taken, val data: Data, val notes: List<String>)

    /** The work to do once the lock is free. */
    private class Round {
        val unlocked = Job()
        val ended = ArrayList<Pair<Waiting<*>, Ended>>()
        var error: Throwable? = null
    }

    /**
     * Runs the command that a move starts, if it starts one, to its end, and reads its result; with `parts`, also the commands in its
     * answer. Cancelling the caller abandons them; `saved` shows a result that nobody read.
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
            return (if (begins == null) read(emptyList()) else awaitEnd(begins)).also { delivered = true }
        } catch (failure: HoplineException) {
            delivered = true
            throw failure
        } finally {
            // The result is lost if the caller is cancelled while it is on its way to them, so the core is told only now.
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

    /**
     * Waits for a result. A caller without a dispatcher continues in the thread that ends its wait, and may block it: that thread must not
     * be one whose work [shutdown] waits for.
     */
    private suspend fun <T> awaitEnd(waiter: Waiting<T>): T {
        val context = currentCoroutineContext()
        val isDispatched = (context[ContinuationInterceptor] as? CoroutineDispatcher)?.isDispatchNeeded(context) == true
        return if (isDispatched) waiter.ended.await() else withContext(work) { waiter.ended.await() }
    }

    /** Makes a move that is answered at once, and waits until the store has its changes. */
    suspend fun ask(operation: String, what: () -> Move): MoveAnswer =
        withContext(work) {
            lateinit var answer: MoveAnswer
            begin(operation, what()) { answer = it }
            // A copy by `toArray`, since `toList` fails if one ends meanwhile.
            ArrayList(tasks).joinAll()
            answer
        }

    /** Makes a move that is answered at once, in this thread. Null if the client is closed. */
    fun say(what: Move): MoveAnswer? {
        var answer: MoveAnswer? = null
        if (!closing) move({ what }) { answer = if (it is MoveAnswer.Refused) throw exception(it.error) else it }
        return answer
    }

    /** Gives back a lease, after its data that the store is to keep, even if the caller is cancelled or the client is closed. */
    suspend fun give(lent: PoolLease, data: LeaseData): Unit =
        withContext(NonCancellable + work) {
            try {
                // What is too long stays in this client; a lease that is not valid any more leaves nothing behind.
                data.news()?.let { news ->
                    move({ Move.SetLeaseData(lent.pool.toUInt(), lent.lease, news.toString()) }) { if (it !is MoveAnswer.Refused) data.kept(news) }
                }
            } finally {
                move({ Move.ReleaseLease(lent.pool.toUInt(), lent.lease) })
            }
        }

    fun isValid(lent: PoolLease): Boolean = lock.withLock { !closing && core.isValid(lent.pool.toUInt(), lent.lease) }

    fun retryAt(lent: PoolLease): Instant? =
        lock.withLock { if (closing) null else core.retryAt(lent.pool.toUInt(), lent.lease) }?.let(Instant::ofEpochMilli)

    /** The token of the reseller API, also after [shutdown]. */
    fun token(): Secret? = lock.withLock { if (closed) lastToken else core.token()?.let(::Secret) }

    /** True if nothing can be begun any more. */
    val isClosed: Boolean get() = closing

    /** Cancels everything that is under way, and releases all names in the store. */
    suspend fun shutdown(timeout: Duration): Unit =
        withContext(NonCancellable + work) {
            closer.withLock {
                if (!finished) {
                    finished = true
                    finish(timeout)
                }
            }
        }

    /** Shuts down for a caller that may block the thread of its dispatcher: the remaining work is done in other threads. */
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

    /** Closes the engine of a client that was garbage-collected. */
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
                    waiting.values.filter { !core.endsSessions(it.command) }.map { it.command } to out.values.filter { !it.endsSession }.map { it.job }
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
            // A collector without a dispatcher may block the coroutine that tells events: by waiting for this end, for instance.
            withTimeoutOrNull(SOON) { events.close() }
            letGo(timeout - began.elapsedNow())
            scope.coroutineContext[Job]?.cancel()
            core.close()
        }
    }

    /**
     * Ends the shutdown when its time is up: a store call without an answer may or may not have been done, and waiting commands are
     * cancelled, so that the core reports their effect.
     */
    private suspend fun giveUp() {
        val (steps, commands, sends) =
            lock.withLock {
                isLate = true
                Triple(asked.toList(), waiting.values.toList(), out.values.map { it.job })
            }
        steps.forEach { stored(it) { StoreAnswer.Failed } }
        commands.forEach { cancel(it.command) }
        sends.forEach { it.cancel() }
        // From here on only this client's own threads are waited for.
        withTimeoutOrNull(SOON) { commands.forEach { it.ended.join() } }
    }

    /** Waits for everything that is under way. Returns true if there was anything. */
    private suspend fun awaitRest(): Boolean {
        val left = lock.withLock { waiting.values.map { it.ended } + out.values.map { it.job } } + ArrayList(tasks)
        left.joinAll()
        return left.isNotEmpty()
    }

    /** A name that can't be released in time is free once the store has answered, or the process ends. */
    private suspend fun letGo(timeout: Duration) {
        val letting = scope.launch(threads.disk, CoroutineStart.ATOMIC) { withContext(NonCancellable) { store?.close() } }
        withTimeoutOrNull(timeout) { letting.join() }
    }

    /** Makes a caller's move, unless the client is closing, and hands over its answer in the lock. */
    private fun begin(operation: String, what: Move, hear: (MoveAnswer) -> Unit) {
        val closed = { refused(operation, "closed") }
        val isDone = move({ if (closing) throw closed() else what }) { answer -> if (answer is MoveAnswer.Refused) throw exception(answer.error) else hear(answer) }
        if (!isDone) throw closed()
    }

    /** The results of the commands that are in a command's answer. */
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
     * Moves the core, hands over its answer in the lock, and carries out its steps. Returns false if the client is closed. A move that the
     * core can't read throws, and then nothing was done.
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
        // Outside the lock, since a waiting caller may continue in this thread, and an answer may be there as soon as its request is sent.
        round.error?.let(::broken)
        round.unlocked.complete()
        round.ended.forEach { (waiter, came) -> waiter.end(came) }
        heard.getOrThrow()
        return true
    }

    /** Ends the client: memory was short, or the native library has another version, and no caller would get an answer any more. */
    private fun broken(error: Throwable) {
        lock.withLock { waiting.values.toList().also { waiting.clear() } }.forEach { it.ended.completeExceptionally(error) }
    }

    /** Carries out some steps, and returns true if there are more. */
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
        task(work) {
            var trouble: Throwable? = null
            val answer =
                try {
                    patience.within { checkNotNull(store) { "the core asked a store that it has not" }.call(step.call) }
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

    /** Passes on the store's answer, unless the call was given up meanwhile. */
    private fun stored(step: UInt, answer: () -> StoreAnswer) {
        if (!lock.withLock { asked.remove(step) }) return
        try {
            move({ Move.Stored(step, answer()) })
        } catch (_: IOException) {
            // A name of a custom store that is not valid text. Every step must be answered.
            move({ Move.Stored(step, StoreAnswer.Failed) })
        }
    }

    /** A response is passed on in the transport's thread, and a failure in one of the engine's. */
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
            // A header of a custom transport that is not valid text. Every step must be answered.
            move({ failed("the transport's response could not be read: ${error.javaClass.simpleName}") })
        }
    }

    /** Tells the core that claims have ended: a request that was to be sent under one of them is not sent. */
    private fun lose(names: List<String>?) {
        move({ Move.Lost(names).also { losses += 1 } })
    }

    private fun alarm(until: Long?) {
        if (until == due && (until == null || timer != null)) return
        timer?.cancel()
        due = until
        timer = until?.let {
            // The coroutine suspends before it does anything, so the lock is not held then.
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
        val PATIENCE: Duration = 10.seconds

        /** The time that the core may take to report the effect of a cancelled command, and collectors to hear the last events. */
        val SOON: Duration = 2.seconds
    }
}
