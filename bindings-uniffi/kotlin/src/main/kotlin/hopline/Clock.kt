package hopline

import kotlinx.coroutines.delay

/** The time, in milliseconds. Only tests need to give a client a clock of their own. */
public interface Clock {
    /** The time of day: milliseconds since 1970. */
    public fun unix(): Long

    /** Milliseconds since any moment. This clock never goes back, and continues while the device sleeps. */
    public fun monotonic(): Long

    public companion object {
        /**
         * The system's clock. On Android that is `SystemClock.elapsedRealtime`, which continues in deep sleep; elsewhere it is
         * `System.nanoTime`.
         */
        public val SYSTEM: Clock = SystemTime

        /** A clock of a test: `Clock.of { testScheduler.currentTime }`. [elapsed] tells the milliseconds since [unix], the time at its zero. */
        public fun of(unix: Long = 1_750_000_000_000, elapsed: () -> Long): Clock =
            object : Clock {
                override fun unix(): Long = unix + elapsed()

                override fun monotonic(): Long = elapsed()
            }
    }
}

private object SystemTime : Clock {
    /** Found at run time, since the package knows nothing of Android. */
    private val elapsedRealtime =
        try {
            Class.forName("android.os.SystemClock").getMethod("elapsedRealtime")
        } catch (_: ReflectiveOperationException) {
            null
        }

    override fun unix(): Long = System.currentTimeMillis()

    override fun monotonic(): Long = if (elapsedRealtime == null) System.nanoTime() / 1_000_000 else elapsedRealtime.invoke(null) as Long
}

/**
 * Waits until that time has come by this clock. The clock of coroutines may stop while the device sleeps, so this clock is read now and
 * then.
 */
internal suspend fun Clock.waitUntil(at: Long) {
    do delay((at - monotonic()).coerceIn(1, LONGEST_DELAY)) while (monotonic() < at)
}

private const val LONGEST_DELAY = 10_000L
