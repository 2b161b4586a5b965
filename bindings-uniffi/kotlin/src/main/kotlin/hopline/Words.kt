package hopline

// Exceptions of other code, in a form that people may see.

/**
 * The type and the place of an exception, such as `SocketException at MyHttp.kt:12`. Its message may hold secrets that this client never
 * saw.
 */
internal fun placed(error: Throwable): String {
    val own = HoplineClient::class.java.name.substringBeforeLast('.')
    val place = error.stackTrace.firstOrNull { frame -> PLATFORM.none(frame.className::startsWith) && frame.className.substringBeforeLast('.', "") != own }
    return error.javaClass.simpleName + place?.let { " at ${it.fileName ?: it.className}:${it.lineNumber}" }.orEmpty()
}

/** The type, the place and the message of an exception, without the secrets of its request, or parts of them. */
internal fun described(error: Throwable, request: Request): String {
    val text = error.message.orEmpty().replace(SPACE, " ").trim().take(LONGEST_READ)
    val isHidden = BooleanArray(text.length)
    fun hide(range: IntRange) = range.forEach { isHidden[it] = true }
    LOGIN.findAll(text).forEach { hide(it.range) }
    val read = text.windowed(RUN).toSet()
    for (secret in secrets(request)) {
        // A body may have 65 000 parts: only the text that was read is searched.
        val parts = if (secret.length < RUN) setOf(secret) else secret.windowedSequence(RUN).filter { it in read }.toSet()
        for (part in parts) {
            generateSequence(text.indexOf(part)) { text.indexOf(part, it + 1) }.takeWhile { it >= 0 }.forEach { hide(it..<it + part.length) }
        }
    }
    val words = StringBuilder()
    for ((at, letter) in text.withIndex()) {
        if (!isHidden[at]) words.append(letter) else if (at == 0 || !isHidden[at - 1]) words.append("[redacted]")
    }
    return placed(error) + if (words.isEmpty()) "" else ": ${words.take(LONGEST)}"
}

/** All of the request except its address and its plainest headers. */
private fun secrets(request: Request): List<String> {
    val values = request.headers.filter { it.first.lowercase() !in PLAIN }.map { it.second }
    return (values + values.map { it.substringAfterLast(' ') } + listOfNotNull(request.body?.decodeToString())).filter { it.length >= SHORTEST }
}

/** A login in a URL, the value of an authorization, a token: a secret anywhere. */
private val LOGIN = Regex("""(?<=//)[^\s/@]*@|\b(?:Basic|Bearer)\s+\S+|\beyJ[\w.-]+""", RegexOption.IGNORE_CASE)
private val SPACE = Regex("\\s+")
private val PLAIN = setOf("accept", "content-type", "user-agent")
private val PLATFORM = listOf("java.", "javax.", "jdk.", "sun.", "kotlin.", "kotlinx.", "android.", "okhttp3.", "okio.")

/** The number of letters in a row of a secret that count as a part of it; a part that is shorter than the second may be in any text. */
private const val RUN = 8
private const val SHORTEST = 3
private const val LONGEST = 200
private const val LONGEST_READ = 4000
