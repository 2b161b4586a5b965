package hopline

import java.net.InetSocketAddress
import okhttp3.Authenticator
import okhttp3.OkHttpClient

/**
 * For your own requests: sends those of an OkHttp client through a session's proxy, and logs in there. It speaks to HTTP proxies
 * only, as the login for SOCKS5 is one for the whole process in Java.
 */
public fun OkHttpClient.Builder.through(proxy: Proxy): OkHttpClient.Builder {
    val told = proxy.told("okhttp")
    // Looked up by OkHttp when it connects: here it may be the main thread, where Android allows no such thing.
    val address = InetSocketAddress.createUnresolved(told.host, told.port)
    val login = told.text("authorization").orEmpty()
    return proxy(java.net.Proxy(java.net.Proxy.Type.HTTP, address)).proxyAuthenticator(
        Authenticator { _, response ->
            // One try: the same answer again means that the password is wrong.
            if (response.request.header("Proxy-Authorization") == login) null
            else response.request.newBuilder().header("Proxy-Authorization", login).build()
        },
    )
}
