package hopline

// An exception of somebody else's, as people are told of it.

/** Its type and its place, such as `SocketException at MyHttp.kt:12`. Its words may hold secrets that this client never saw. */
internal fun placed(error: Throwable): String {
    val own = HoplineClient::class.java.name.substringBeforeLast('.')
    val place = error.stackTrace.firstOrNull { frame -> PLATFORM.none(frame.className::startsWith) && frame.className.substringBeforeLast('.', "") != own }
    return error.javaClass.simpleName + place?.let { " at ${it.fileName ?: it.className}:${it.lineNumber}" }.orEmpty()
}

/** The same with its words, without what is secret of the request that met it, or a part of that. */
internal fun described(error: Throwable, request: Request): String {
    val text = error.message.orEmpty().replace(SPACE, " ").trim().take(LONGEST_READ)
    val isHidden = BooleanArray(text.length)
    fun hide(range: IntRange) = range.forEach { isHidden[it] = true }
    LOGIN.findAll(text).forEach { hide(it.range) }
    val read = text.windowed(RUN).toSet()
    for (secret in secrets(request)) {
        // A body may be a million letters long: only what was read is looked for.
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

/** All but its address and its plainest headers. */
private fun secrets(request: Request): List<String> {
    val values = request.headers.filter { it.first.lowercase() !in PLAIN }.map { it.second }
    return (values + values.map { it.substringAfterLast(' ') } + listOfNotNull(request.body?.decodeToString())).filter { it.length >= SHORTEST }
}

/** A login in a URL, the value of an authorization, a token: a secret wherever it is. */
private val LOGIN = Regex("""(?<=//)[^\s/@]*@|\b(?:Basic|Bearer)\s+\S+|\beyJ[\w.-]+""", RegexOption.IGNORE_CASE)
private val SPACE = Regex("\\s+")
private val PLAIN = setOf("accept", "content-type", "user-agent")
private val PLATFORM = listOf("java.", "javax.", "jdk.", "sun.", "kotlin.", "kotlinx.", "android.", "okhttp3.", "okio.")

/** So many letters in a row that are in a secret, too, are part of it; what is shorter than the second may be in any text. */
private const val RUN = 8
private const val SHORTEST = 3
private const val LONGEST = 200
private const val LONGEST_READ = 4000
