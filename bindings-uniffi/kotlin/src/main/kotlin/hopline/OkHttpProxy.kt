package hopline

import java.net.InetSocketAddress
import okhttp3.Authenticator
import okhttp3.OkHttpClient

/**
 * Sends your own requests, those of an OkHttp client, through a session's proxy, with its login. This client supports only HTTP proxies,
 * since Java has one login for SOCKS5 for the whole process.
 *
 * Sites never get the login: OkHttp itself would give it to one that `http` redirects to, and to one that answers 407 like a proxy.
 */
public fun OkHttpClient.Builder.through(proxy: Proxy): OkHttpClient.Builder {
    val told = proxy.told("okhttp")
    // OkHttp looks the name up when it connects: here it may be the main thread, where Android forbids that.
    val address = InetSocketAddress.createUnresolved(told.host, told.port)
    val login = told.text("authorization").orEmpty()
    return proxy(java.net.Proxy(java.net.Proxy.Type.HTTP, address)).proxyAuthenticator(
        Authenticator { _, response ->
            val refused = response.request
            // One attempt: a second refusal means that the password is wrong. In a tunnel it is the site that answers.
            if (refused.header(LOGIN) == login || refused.isHttps && refused.method != "CONNECT") null
            else refused.newBuilder().header(LOGIN, login).build()
        },
    ).addNetworkInterceptor { chain ->
        val request = chain.request()
        chain.proceed(if (request.isHttps) request.newBuilder().removeHeader(LOGIN).build() else request)
    }
}

private const val LOGIN = "Proxy-Authorization"
