package hopline

import java.net.URLEncoder

// A session's proxy, as HTTP clients want to be told of it.

/** How each protocol stands in a URL: the `h` lets the proxy look names up. */
private val SCHEMES = mapOf(Protocol.Socks5 to "socks5h", Protocol.Http to "http", Protocol.Https to "https")

/** What goes into a URL and a configuration as it is. */
private val HOST = Regex("[\\w.:\\[\\]-]+")

/** The proxy as a URL, credentials included and percent-encoded. `socks5h` means that it also looks names up. */
public fun Proxy.url(): Secret {
    val (username, password) = login()
    return Secret("${scheme()}://${escaped(username)}:${escaped(password)}@${address()}")
}

/** For curl: give it to the standard input of `curl --config -`. As an argument, every user could read it. */
public fun Proxy.forCurl(): Secret = Secret("proxy = \"${url().reveal()}\"\n")

internal fun Proxy.scheme(): String {
    // The service says so itself: a proxy for https may well be spoken to in plain HTTP.
    val named = fullUrl?.reveal()?.substringBefore("://", "")
    return named?.takeIf { it in SCHEMES.values }
        ?: SCHEMES[protocol]
        ?: refuse("protocol", "is none that is known; ask for the session again once it is active")
}

/** Host and port, for a client that logs in to HTTP proxies only. */
internal fun Proxy.overHttp(why: String): Pair<String, Int> {
    if (scheme() != "http") refuse("protocol", "is ${protocol?.word ?: "none"}, and $why; buy the session with `protocol` http")
    return endpoint()
}

internal fun Proxy.login(): Pair<String, String> {
    val (name, word) = username to password
    if (name != null && word != null) return name.reveal() to word.reveal()
    val how = "`credentials` to open or wait for a session, `includeCredentials` to read it"
    refuse("username", "and password were not asked for; use $how")
}

private fun Proxy.endpoint(): Pair<String, Int> {
    val (name, number) = host to port
    if (name == null || number == null) refuse("host", "and port are missing, since the session was not active when it was read; wait for it")
    if (!HOST.matches(name)) refuse("host", "is no host name and no address")
    if (number !in 1..65535) refuse("port", "is none")
    return name to number.toInt()
}

private fun Proxy.address(): String {
    val (name, number) = endpoint()
    return if (':' in name && !name.startsWith("[")) "[$name]:$number" else "$name:$number"
}

private fun escaped(text: String): String = URLEncoder.encode(text, "UTF-8").replace("+", "%20").replace("*", "%2A")

private fun refuse(field: String, rule: String): Nothing =
    throw refusal("invalid", "proxy", "`$field` $rule", field = field, advice = "change_request")
