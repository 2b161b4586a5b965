package hopline.host

import hopline.AgentClient
import hopline.Effect
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.Options
import hopline.Secret
import hopline.SessionType
import hopline.Transport
import java.io.File
import java.net.InetAddress
import java.net.Socket
import java.net.http.HttpClient
import java.nio.file.Path
import java.security.KeyStore
import java.security.cert.CertificateFactory
import java.util.concurrent.CopyOnWriteArrayList
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLSocket
import javax.net.ssl.SSLSocketFactory
import javax.net.ssl.TrustManagerFactory
import javax.net.ssl.X509TrustManager
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** TLS with an authority of one's own: what it has signed is trusted, and a certificate that is refused sends nothing. */
class TlsTest {
    @Test
    fun `a purchase goes where the authority has signed the certificate and a refused certificate sends nothing`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--tls", "$folder", "--provisioning-ms", "0").use { sandbox ->
            for ((bought, transport) in transports(sandbox.tls("ca")).withIndex()) {
                suspend fun buy(certificate: String) =
                    AgentClient(Secret(sandbox.apiKey), sandbox.tls(certificate), transport, options = Options(attempts = 1)).use { agent ->
                        try {
                            agent.createSession(SessionType.Dynamic, "dynamic-world", intent = "job-17")
                        } finally {
                            assertEquals(certificate == "right", agent.saved().isNotEmpty(), certificate)
                        }
                    }
                for (certificate in listOf("wrong_name", "expired", "unknown_ca")) {
                    val refused = assertThrows(HoplineException.Unavailable::class.java) { runBlocking { buy(certificate) } }
                    assertEquals(Effect.NONE, refused.effect, "$certificate $refused")
                    assertTrue("no secure connection could be made" in "${refused.message}", "$refused")
                }
                buy("right")
                assertEquals(bought + 1 to bought + 1, sandbox.counts())
            }
        }
    }

    @Test
    fun `over OkHttp a read may use HTTP 2 and a write does not`(@TempDir folder: Path): Unit = runBlocking {
        Sandbox("--tls", "$folder", "--provisioning-ms", "0").use { sandbox ->
            val sockets = CopyOnWriteArrayList<SSLSocket>()
            val trust = Trust(sandbox.tls("ca"))
            val ok = OkHttpClient.Builder().sslSocketFactory(Noting(trust.context.socketFactory, sockets), trust.manager).build()
            AgentClient(Secret(sandbox.apiKey), sandbox.tls("right"), OkHttpTransport(ok)).use { agent ->
                agent.getBalance()
                repeat(2) { agent.createSession(SessionType.Dynamic, "dynamic-world") }
            }
            // Each write has its own connection.
            val offered = sockets.map { it.sslParameters.applicationProtocols.toList() }
            assertEquals(listOf(listOf("h2", "http/1.1"), listOf("http/1.1"), listOf("http/1.1")), offered)
        }
    }

    /** Both HTTP clients, trusting an authority and nobody else. */
    private fun transports(ca: String): List<Transport> {
        val trust = Trust(ca)
        val ok = OkHttpClient.Builder().sslSocketFactory(trust.context.socketFactory, trust.manager).build()
        return listOf(OkHttpTransport(ok), JavaHttpTransport(HttpClient.newBuilder().sslContext(trust.context).build()))
    }
}

/** Notes the socket of each connection. */
private class Noting(private val made: SSLSocketFactory, private val sockets: MutableList<SSLSocket>) : SSLSocketFactory() {
    override fun createSocket(socket: Socket, host: String, port: Int, autoClose: Boolean): Socket =
        made.createSocket(socket, host, port, autoClose).also { sockets += it as SSLSocket }

    override fun createSocket(host: String, port: Int): Socket = made.createSocket(host, port)

    override fun createSocket(host: String, port: Int, local: InetAddress, localPort: Int): Socket = made.createSocket(host, port, local, localPort)

    override fun createSocket(host: InetAddress, port: Int): Socket = made.createSocket(host, port)

    override fun createSocket(host: InetAddress, port: Int, local: InetAddress, localPort: Int): Socket = made.createSocket(host, port, local, localPort)

    override fun getDefaultCipherSuites(): Array<String> = made.defaultCipherSuites

    override fun getSupportedCipherSuites(): Array<String> = made.supportedCipherSuites
}

/** Trusts the authority whose certificate is in that file, and nobody else. */
class Trust(file: String) {
    val manager: X509TrustManager
    val context: SSLContext = SSLContext.getInstance("TLS")

    init {
        val authority = File(file).inputStream().use { CertificateFactory.getInstance("X.509").generateCertificate(it) }
        val known = KeyStore.getInstance(KeyStore.getDefaultType())
        known.load(null)
        known.setCertificateEntry("ca", authority)
        val managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()).apply { init(known) }.trustManagers
        manager = managers.first() as X509TrustManager
        context.init(null, managers, null)
    }
}
