package hopline

import java.net.Authenticator
import java.net.InetSocketAddress
import java.net.PasswordAuthentication
import java.net.ProxySelector
import java.net.http.HttpClient

/**
 * Sends your own requests, those of a `java.net.http` client, through a session's proxy, with its login. This client supports only HTTP
 * proxies. For `https` sites Java logs in to a proxy only in a program that was started with `-Djdk.http.auth.tunneling.disabledSchemes=`.
 */
public fun HttpClient.Builder.through(proxy: Proxy): HttpClient.Builder {
    val told = proxy.told("java.net.http")
    val login =
        object : Authenticator() {
            // Sites never get the password of the proxy.
            override fun getPasswordAuthentication(): PasswordAuthentication? =
                if (requestorType == RequestorType.PROXY) PasswordAuthentication(told.username, told.password.toCharArray()) else null
        }
    return proxy(ProxySelector.of(InetSocketAddress.createUnresolved(told.host, told.port))).authenticator(login)
}
