package hopline

/** Both clocks, in milliseconds. */
internal object Clock {
    private val begin = System.nanoTime()

    fun unix(): Long = System.currentTimeMillis()

    fun monotonic(): Long = (System.nanoTime() - begin) / 1_000_000
}
