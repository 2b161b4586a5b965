package hopline.host

import hopline.Advice
import hopline.Effect
import hopline.HoplineException
import hopline.JavaHttpTransport
import hopline.OkHttpTransport
import hopline.ResellerClient
import hopline.Secret
import hopline.Transport
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

/** The login of the reseller API: once for everybody, again when its token is refused, and never in a loop. */
class LoginTest {
    @ParameterizedTest
    @MethodSource("transports")
    fun `calls that begin at once share one login, and one renewal`(transport: Transport): Unit = runBlocking {
        Sandbox("--seed", "71").use { sandbox ->
            sandbox.reseller(transport).use { reseller ->
                List(40) { async(Dispatchers.Default) { reseller.getCurrentBalance() } }.awaitAll()
                assertEquals(1 to 40, sandbox.times("login") to sandbox.times("get_current_balance"))
                val first = reseller.token
                sandbox.control("tokens", """{"expire":true}""")
                List(40) { async(Dispatchers.Default) { reseller.listSubUsers() } }.awaitAll()
                assertEquals(2, sandbox.times("login"))
                assertNotEquals(first, reseller.token)
            }
        }
    }

    @Test
    fun `a write whose token was refused is sent once more, since it was not done`(): Unit = runBlocking {
        Sandbox("--seed", "72").use { sandbox ->
            sandbox.reseller().use { reseller ->
                reseller.getCurrentBalance()
                sandbox.control("tokens", """{"expire":true}""")
                assertEquals("sub-user", reseller.createUser("sub-user", Secret("a-password")).username)
            }
            assertEquals(2 to 1, sandbox.times("login") to (sandbox.backend().getValue("users") as JsonArray).size)
        }
    }

    @Test
    fun `a password that is refused is not tried again, until somebody logs in by hand`(): Unit = runBlocking {
        Sandbox("--seed", "73").use { sandbox ->
            sandbox.reseller(password = "canary-password").use { reseller ->
                repeat(3) {
                    val refused = assertThrows(HoplineException.Refused::class.java) { runBlocking { reseller.getCurrentBalance() } }
                    assertEquals(Advice.REAUTHENTICATE to Effect.NONE, refused.advice to refused.effect)
                    assertTrue("canary" !in "$refused", "$refused")
                }
                assertNull(reseller.token)
                assertEquals(1, sandbox.times("login"))
                assertEquals(reseller.login(Secret(sandbox.username), Secret(sandbox.password)).token, reseller.token)
                reseller.getCurrentBalance()
            }
            assertEquals(2, sandbox.times("login"))
        }
    }

    @Test
    fun `a client starts from the token of another, and alone it can't renew it`(): Unit = runBlocking {
        Sandbox("--seed", "74").use { sandbox ->
            val earlier = sandbox.reseller()
            earlier.use { it.getCurrentBalance() }
            // Also after it was closed: that is when it is kept.
            val token = earlier.token
            ResellerClient(null, null, sandbox.backendUrl, token).use { reseller ->
                reseller.getCurrentBalance()
                assertEquals(token, reseller.token)
                sandbox.control("tokens", """{"expire":true}""")
                val refused = assertThrows(HoplineException.Refused::class.java) { runBlocking { reseller.getCurrentBalance() } }
                assertEquals(401 to Advice.REAUTHENTICATE, refused.status to refused.advice)
            }
            assertEquals(1, sandbox.times("login"))
        }
    }

    @Test
    fun `a token that was given is never renewed as the environment's login`() {
        Sandbox("--seed", "76").use { sandbox ->
            val program = sandbox.program("hopline.host.Borrower").start()
            assertEquals("Refused", program.inputStream.bufferedReader().readText().trim())
            assertEquals(0, sandbox.times("login"))
        }
    }

    @Test
    fun `a code of the caller's own means a refused token`(): Unit = runBlocking {
        Sandbox("--seed", "75").use { sandbox ->
            sandbox.reseller(tokenCodes = listOf("40101")).use { reseller ->
                reseller.getCurrentBalance()
                sandbox.fault("get_current_balance", """{"kind":"error","code":"40101","status":200}""")
                reseller.getCurrentBalance()
            }
            assertEquals(2, sandbox.times("login"))
        }
    }

    @Test
    fun `what can log nobody in is refused and never repeated`() {
        val (name, canary) = Secret("a") to Secret("canary")
        val wrong =
            mapOf<String, () -> ResellerClient>(
                "set the environment variable `HOPLINE_BACKEND_URL`" to { ResellerClient(name, canary, null) },
                "`password` is required" to { ResellerClient(canary, null, ANYWHERE) },
                "`username` is required" to { ResellerClient(null, canary, ANYWHERE) },
                "`username` must not be empty" to { ResellerClient(Secret(""), canary, ANYWHERE) },
                "the base URL must be absolute" to { ResellerClient(name, canary, "nowhere") },
            )
        for ((said, make) in wrong) {
            val refused = assertThrows(HoplineException.Invalid::class.java) { make().close() }
            assertTrue(said in refused.message!! && "canary" !in "$refused", "$refused")
        }
    }

    companion object {
        private const val ANYWHERE = "https://api.example/api"

        @JvmStatic
        fun transports(): List<Transport> = listOf(OkHttpTransport(), JavaHttpTransport())
    }
}

/** A program of its own for the test above, as a process can't change its environment. */
object Borrower {
    @JvmStatic
    fun main(arguments: Array<String>) {
        ResellerClient(token = Secret("none-of-its-own")).use { reseller ->
            val failed = runBlocking { runCatching { reseller.getCurrentBalance() } }.exceptionOrNull()
            println(failed?.let { it::class.simpleName })
        }
    }
}
