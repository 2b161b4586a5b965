package hopline

import kotlinx.coroutines.delay

/** The time, in milliseconds. A test may give its own to a client; nobody else needs to. */
public interface Clock {
    /** The time of day: milliseconds since 1970. */
    public fun unix(): Long

    /** Milliseconds since any moment. It never goes back, and it goes on while the device sleeps. */
    public fun monotonic(): Long

    public companion object {
        /**
         * The system's. On Android that is `SystemClock.elapsedRealtime`, which goes on in deep sleep; elsewhere it is
         * `System.nanoTime`.
         */
        public val SYSTEM: Clock = SystemTime
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

/** Waits until that time has come by this clock. Coroutines count by one that may stop while the device sleeps, so it is looked at now and then. */
internal suspend fun Clock.waitUntil(at: Long) {
    do delay((at - monotonic()).coerceIn(1, LONGEST_DELAY)) while (monotonic() < at)
}

private const val LONGEST_DELAY = 10_000L
