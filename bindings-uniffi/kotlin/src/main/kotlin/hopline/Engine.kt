package hopline

import hopline.core.Client
import hopline.core.FailureKind
import hopline.core.Header
import hopline.core.Move
import hopline.core.MoveAnswer
import hopline.core.Sent
import hopline.core.StoreAnswer
import hopline.core.Taken
import hopline.core.Work
import hopline.core.responseHeaders
import java.io.IOException
import java.lang.ref.WeakReference
import java.time.Instant
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
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull

/** The parts of a client that its engine uses. */
internal class Means(val transport: Transport, val headers: Headers?, val clock: Clock, val dispatcher: CoroutineDispatcher)

/**
 * Does a core's work for any number of coroutines: its calls of the store, its sends and its timer. Who waits for what, what is broken off
 * and when a closed client is done, is decided by the core. Nothing runs in the caller's thread, which may be an app's main one.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class Engine(private val core: Client, means: Means, private val store: StoreHandle?) {
    val clock = means.clock

    private val threads = Threads(means.dispatcher)
    private val work = threads.work
    private val exchange = Exchange(means.transport, means.headers, clock)
    private val lock = ReentrantLock()
    private val scope = CoroutineScope(SupervisorJob() + CoroutineExceptionHandler { _, error -> broken(error) })

    /** True if something is waited for before a request is sent. */
    private val mayWait = means.headers != null || store != null
    private val patience = Patience(scope, threads.disk)
    private val headers = responseHeaders().toSet()

    /** Used only while the lock is held. */
    private val moves = Moves(core, clock)

    /** By owner. */
    private val waiting = HashMap<ULong, Waiting<*>>()
    private var lastOwner: ULong = NOBODY
    private val out = HashMap<UInt, Out>()
    private var timer: Job? = null
    private var due: Long? = null
    private val closer = Mutex()

    /** Guarded by [closer]: true once the client is being closed. */
    private var finished = false

    /** True since [shutdown] began: nothing new is begun. */
    @Volatile
    private var closing = false

    /** Nobody is in the core any more. */
    private val over = CompletableDeferred<Unit>()

    /** True since the shutdown ended: nothing is done any more. */
    private var closed = false
    private var lastToken: Secret? = null
    val events = Events(scope, work)

    init {
        core.listen()
        // A store that is known elsewhere keeps no client alive.
        val self = WeakReference(this)
        store?.onLost { names -> self.get()?.move({ Move.Lost(names) }) }
    }

    /** A coroutine that waits for its results, and their reader. */
    private class Waiting<T>(val operation: String, val read: (List<Ended>) -> T) {
        val ended = CompletableDeferred<T>()

        /** Messages of the store and the transport. */
        val notes = LinkedHashSet<String>()
        var owner = NOBODY

        /** True if the core keeps no result for it, since nothing depends on who reads it. */
        @Volatile
        var isOver = false

        /** Reads the results in this thread, since a change of threads costs more than reading most answers. */
        fun end(came: List<Ended>) {
            try {
                ended.complete(read(came))
            } catch (error: Throwable) {
                ended.completeExceptionally(error)
            }
        }
    }

    /** A request that is out, and whether the transport has it. */
    private class Out(val job: Job, var isBegun: Boolean = false)

    /** The result of a command, and the messages of the store and the transport meanwhile. */
    class Ended(val taken: Taken, val data: Data, val notes: List<String>)

    /** The work to do once the lock is free, since a waiting caller or an HTTP client may go on in this thread. */
    private class Round {
        val begun = ArrayList<Job>()
        val broken = ArrayList<Job>()
        val ended = ArrayList<Pair<Waiting<*>, List<Ended>>>()
        var error: Throwable? = null
    }

    /**
     * Makes a caller's move, waits until what it starts has ended and the store has its changes, and reads the results; `hear` has the answer
     * before. Cancelling the caller gives them up; `saved` shows a result that nobody read.
     */
    suspend fun <T> run(operation: String, what: () -> Move, hear: (MoveAnswer) -> Unit = {}, read: (List<Ended>) -> T): T {
        val waiter = Waiting(operation, read)
        var isDelivered = false
        try {
            withContext(work) { begin(waiter, what(), hear) }
            return awaitEnd(waiter).also { isDelivered = true }
        } catch (failure: HoplineException) {
            isDelivered = true
            throw failure
        } finally {
            // The result is lost if the caller is cancelled while it is on its way to them, so the core is told only now.
            when {
                waiter.owner == NOBODY || isDelivered && waiter.isOver -> Unit
                isDelivered -> scope.launch(work) { move({ Move.Leave(hasHeard = true) }, waiter.owner) }
                else -> withContext(NonCancellable + work) {
                    move({ Move.GiveUp }, waiter.owner)
                    waiter.ended.join()
                }
            }
        }
    }

    /** As [run], for what starts nothing but has an answer. */
    suspend fun ask(operation: String, what: () -> Move): MoveAnswer {
        lateinit var answer: MoveAnswer
        return run(operation, what, { answer = it }) { answer }
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

    /** Makes a caller's move, unless the client is closing, and hands over its answer in the lock. */
    private fun begin(waiter: Waiting<*>, what: Move, hear: (MoveAnswer) -> Unit) {
        val closed = { refused(waiter.operation, "closed") }
        val owner = lock.withLock { ++lastOwner }
        val enter = {
            if (closing) throw closed()
            what.also { waiting[owner] = waiter }
        }
        try {
            val isMade = move(enter, owner) {
                when (it) {
                    is MoveAnswer.Refused -> throw exception(it.error)
                    is MoveAnswer.Closed -> throw closed()
                    else -> hear(it).also { waiter.owner = owner }
                }
            }
            if (!isMade) throw closed()
        } catch (error: Throwable) {
            lock.withLock { waiting -= owner }
            throw error
        }
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
            lock.withLock { closing = true }
            move({ Move.Close(null) })
            if (withTimeoutOrNull(timeout) { over.join() } == null) {
                move({ Move.Close(clock.monotonic()) })
                // From here on only this client's own threads are waited for.
                withTimeoutOrNull(SOON) { over.join() }
            }
        } finally {
            val left = lock.withLock {
                closed = true
                lastToken = core.token()?.let(::Secret)
                waiting.values.toList().also { waiting.clear() }
            }
            // What a pool has sent is not waited for; its record stays.
            lock.withLock { out.values.map { it.job } }.forEach { it.cancel() }
            left.forEach { it.ended.completeExceptionally(unheard(it.operation)) }
            // A collector without a dispatcher may block the coroutine that tells events: by waiting for this end, for instance.
            withTimeoutOrNull(SOON) { events.close() }
            letGo(timeout - began.elapsedNow())
            scope.coroutineContext[Job]?.cancel()
            core.close()
        }
    }

    /** A name that can't be released in time is free once the store has answered, or the process ends. */
    private suspend fun letGo(timeout: Duration) {
        val letting = scope.launch(threads.disk, CoroutineStart.ATOMIC) { withContext(NonCancellable) { store?.close() } }
        withTimeoutOrNull(timeout) { letting.join() }
    }

    /**
     * Moves the core, hands over its answer in the lock, and begins the work that follows. Returns false if the client is closed. A move that
     * the core can't read throws, and then nothing was done.
     */
    private fun move(what: () -> Move, owner: ULong = NOBODY, body: ByteArray = NOTHING, hear: (MoveAnswer) -> Unit = {}): Boolean {
        val round = Round()
        val heard =
            lock.withLock {
                if (closed) return false
                val came = moves.drive(owner, what(), body)
                runCatching { hear(came.driven.answer) }.also {
                    runCatching { came.driven.work.forEach { begin(it, came, round) } }.onFailure { round.error = it }
                    alarm(came.driven.until)
                }
            }
        round.error?.let(::broken)
        round.broken.forEach { it.cancel() }
        round.begun.forEach { it.start() }
        round.ended.forEach { (waiter, came) -> waiter.end(came) }
        heard.getOrThrow()
        return true
    }

    private fun begin(next: Work, came: Moves.Came, round: Round) {
        when (next) {
            is Work.Ask -> round.begun += scope.launch(work, CoroutineStart.LAZY) { ask(next) }
            is Work.Send -> round.begun += scope.launch(threads.http, CoroutineStart.LAZY) { send(next) }.also { out[next.step] = Out(it) }
            is Work.BreakOff -> out.remove(next.step)?.let { round.broken += it.job }
            is Work.Notify -> events.tell { event(next.event) }
            is Work.Finish -> over.complete(Unit)
            is Work.Ended -> {
                val waiter = waiting.remove(next.owner)
                val results = next.results.map { Ended(it, if (it is Taken.Answered) came.data() else Data.NONE, waiter?.notes.orEmpty().toList()) }
                waiter?.isOver = next.isOver
                waiter?.let { round.ended += it to results }
            }
        }
    }

    /** Ends the client: memory was short, or the native library has another version, and no caller would get an answer any more. */
    private fun broken(error: Throwable) {
        lock.withLock { waiting.values.toList().also { waiting.clear() } }.forEach { it.ended.completeExceptionally(error) }
    }

    private suspend fun ask(step: Work.Ask) {
        var trouble: Throwable? = null
        val answer =
            try {
                patience.within { checkNotNull(store) { "the core asked a store that it has not" }.call(step.call) }
            } catch (error: Throwable) {
                trouble = error
                if (error is StoreNotOpenedException) StoreAnswer.Never else StoreAnswer.Failed
            }
        trouble?.let { note(step.owner, "the store said: ${said(it)}") }
        try {
            move({ Move.Stored(step.step, answer) })
        } catch (_: IOException) {
            // A name of a custom store that is not valid text. Every step must be answered.
            move({ Move.Stored(step.step, StoreAnswer.Failed) })
        }
    }

    private fun note(owner: ULong?, note: String) {
        lock.withLock { waiting[owner]?.notes?.add(note) }
    }

    private suspend fun send(step: Work.Send) {
        val operation = lock.withLock { waiting[step.owner]?.operation } ?: "pool"
        val begun = clock.monotonic()
        events.tell { exchanged(operation, step.request) }
        val came = exchange(step) ?: return
        val duration = (clock.monotonic() - begun).milliseconds
        events.tell { exchanged(operation, step.request, came, duration) }
        // Of one that is broken off the core has the end already.
        if (currentCoroutineContext().isActive) answered(step, came)
    }

    /** Sends once the headers are there and the store vouches for its claims. Null if the core does not want it any more. */
    private suspend fun exchange(step: Work.Send): ExchangeResult? {
        val limit = step.patience?.takeIf { mayWait }?.let { limit(step, it) }
        val all =
            try {
                val (all, failed) = exchange.headers(step.request)
                if (failed != null) return failed
                if (step.patience != null && !begins(step)) return null
                all
            } finally {
                limit?.cancel()
            }
        return exchange.send(step.request, all)
    }

    /** Headers and vouching take no longer than the send itself may. */
    private fun limit(step: Work.Send, patience: Long): Job {
        val until = clock.monotonic() + patience
        return scope.launch(threads.timing, CoroutineStart.UNDISPATCHED) {
            clock.waitUntil(until)
            var late: Job? = null
            withContext(work) {
                val fail = {
                    late = out[step.step]?.takeUnless { it.isBegun }?.job
                    if (late == null) Move.Go else Move.Fail(step.step, FailureKind.TIMEOUT, Sent.NEVER)
                }
                move(fail)
            }
            late?.cancel()
        }
    }

    private suspend fun begins(step: Work.Send): Boolean {
        val trouble =
            try {
                if (store?.vouches() != false) null else "the store did not vouch for its claims"
            } catch (error: Throwable) {
                "`vouches` threw ${placed(error)}"
            }
        if (currentCoroutineContext().isActive) trouble?.let { note(step.owner, it) }
        var isBegun = false
        move({ Move.Begin(step.step, isSure = trouble == null) }) {
            isBegun = (it as MoveAnswer.Was).so
            if (isBegun) out[step.step]?.isBegun = true else out -= step.step
        }
        return isBegun
    }

    private fun answered(step: Work.Send, came: ExchangeResult) {
        lock.withLock { out -= step.step }
        val response = came.response
        if (response == null) {
            came.note?.let { note(step.owner, it) }
            move({ if (came.unfit != null) Move.RefuseHeaders(step.step, came.unfit) else Move.Fail(step.step, came.kind, came.sent) })
            return
        }
        val told = response.headers.map { it.first.lowercase() to it.second }.filter { it.first in headers }.map { Header(it.first, it.second) }
        val status = response.status.coerceIn(0, UShort.MAX_VALUE.toInt()).toUShort()
        try {
            move({ Move.Respond(step.step, status, told, response.truncated) }, body = response.body)
        } catch (error: IOException) {
            // A header of a custom transport that is not valid text. Every step must be answered.
            note(step.owner, "the transport's response could not be read: ${error.javaClass.simpleName}")
            move({ Move.Fail(step.step, FailureKind.OTHER, Sent.MAYBE) })
        }
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
        /** The owner of what nobody waits for. */
        const val NOBODY: ULong = 0u
        val PATIENCE: Duration = 10.seconds

        /** The time that the core may take to report the effect of a cancelled command, and collectors to hear the last events. */
        val SOON: Duration = 2.seconds
    }
}
