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
import java.net.http.HttpClient
import java.nio.file.Path
import java.security.KeyStore
import java.security.cert.CertificateFactory
import javax.net.ssl.SSLContext
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

    /** Both HTTP clients, trusting an authority and nobody else. */
    private fun transports(ca: String): List<Transport> {
        val trust = Trust(ca)
        val ok = OkHttpClient.Builder().sslSocketFactory(trust.context.socketFactory, trust.manager).build()
        return listOf(OkHttpTransport(ok), JavaHttpTransport(HttpClient.newBuilder().sslContext(trust.context).build()))
    }
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
