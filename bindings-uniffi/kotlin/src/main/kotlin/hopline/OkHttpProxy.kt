package hopline

import java.net.InetSocketAddress
import okhttp3.Authenticator
import okhttp3.OkHttpClient

/**
 * Sends your own requests, those of an OkHttp client, through a session's proxy, with its login. This client supports only HTTP proxies,
 * since Java has one login for SOCKS5 for the whole process.
 */
public fun OkHttpClient.Builder.through(proxy: Proxy): OkHttpClient.Builder {
    val told = proxy.told("okhttp")
    // OkHttp looks the name up when it connects: here it may be the main thread, where Android forbids that.
    val address = InetSocketAddress.createUnresolved(told.host, told.port)
    val login = told.text("authorization").orEmpty()
    return proxy(java.net.Proxy(java.net.Proxy.Type.HTTP, address)).proxyAuthenticator(
        Authenticator { _, response ->
            // One attempt: a second refusal means that the password is wrong.
            if (response.request.header("Proxy-Authorization") == login) null
            else response.request.newBuilder().header("Proxy-Authorization", login).build()
        },
    )
}
