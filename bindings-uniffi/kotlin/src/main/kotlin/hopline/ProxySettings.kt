package hopline

import kotlinx.serialization.json.JsonObject

// A session's proxy in the formats of HTTP clients. The formats come from the core.

/** The proxy as a URL, credentials included and percent-encoded. `socks5h` means that the proxy also looks names up. */
public fun Proxy.url(): Secret = Secret(told("any").text("url").orEmpty())

/**
 * The settings for curl: pass them to the standard input of `curl --config -`. As an argument, every user of the machine could read them.
 */
public fun Proxy.forCurl(): Secret = Secret(told("curl").text("curl").orEmpty())

/** The parts of the proxy, for a client that the core knows by that name. */
internal fun Proxy.told(client: String): JsonObject =
    ask(
        "proxy",
        "client" to client,
        "proxy" to
            mapOf("host" to host, "port" to port, "protocol" to protocol, "username" to username, "password" to password, "full_url" to fullUrl),
    )

internal val JsonObject.host: String get() = text("host").orEmpty()
internal val JsonObject.port: Int get() = text("port")?.toInt() ?: 0
internal val JsonObject.username: String get() = text("username").orEmpty()
internal val JsonObject.password: String get() = text("password").orEmpty()
