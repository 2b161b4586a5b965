package hopline.host

import hopline.FolderStore
import hopline.RecordKind
import hopline.HoplineException
import hopline.Method
import hopline.Options
import hopline.OrderUnit
import hopline.Reconciliation
import hopline.ResellerClient
import hopline.Response
import hopline.Secret
import hopline.SubUserSwitch
import java.io.IOException
import java.io.PrintWriter
import java.io.StringWriter
import java.math.BigDecimal
import java.nio.file.Path
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.reflect.KClass
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** No secret of the reseller API shows: in nothing that prints, in no event, in no record. */
class ResellerSecretTest {
    private val zero = BigDecimal.ZERO
    private val one = BigDecimal.ONE
    private val header = mapOf("X-More" to Secret("canary-header"))
    private val free = JsonObject(mapOf("note" to JsonPrimitive("canary-body")))

    /** An answer with a secret in every place that has one. */
    private val item =
        """{"orderNo":"o-1","order_no":"o-1","status":"active","user_id":7,"email":"canary@mail.example",
            "instances":[{"ip":"192.0.2.1","username":"canary-proxy","password":"canary-proxy","full_url":"http://canary:canary@192.0.2.1"}]}"""
    private val data = """{"id":7,"token":"canary-token","orderNo":"o-1","status":"active","email":"canary@mail.example","items":[$item]}"""

    private fun calls(reseller: ResellerClient): Map<String, suspend () -> Any> =
        // Each put on its own: one expression of so many lambdas takes the compiler minutes.
        buildMap<String, suspend () -> Any> {
            put("login") { reseller.login(Secret("canary-reseller"), Secret("canary-password")) }
            put("createUser") { reseller.createUser("sub-user", Secret("canary-sub-password"), email = Secret("canary@mail.example"), headers = header) }
            put("getCurrentBalance") { reseller.getCurrentBalance() }
            put("listSubUsers") { reseller.listSubUsers() }
            put("adjustSubUserBalance") { reseller.adjustSubUserBalance(7, one, "why") }
            put("editSubUserAccount") { reseller.editSubUserAccount(7, password = Secret("canary-new-password")) }
            put("setSubUserStatus") { reseller.setSubUserStatus(7, SubUserSwitch.Active) }
            put("deleteSubUser") { reseller.deleteSubUser(7) }
            put("queryProducts") { reseller.queryProducts() }
            put("listIpRanges") { reseller.listIpRanges() }
            put("createDynamicOrder") { reseller.createDynamicOrder(poolId = "p", userId = 7) }
            put("listDynamicOrders") { reseller.listDynamicOrders() }
            put("getDynamicOrder") { reseller.getDynamicOrder("7") }
            put("findDynamicOrder") { reseller.findDynamicOrder("o-1") }
            put("extractDynamicProxies") { reseller.extractDynamicProxies("p", BigDecimal(104)) }
            put("getProductsFlow") { reseller.getProductsFlow(7) }
            put("getRemainingFlow") { reseller.getRemainingFlow(7, "p") }
            put("createStaticOrder") { reseller.createStaticOrder("p", 7, zero, zero, BigDecimal.ONE, BigDecimal.ONE, BigDecimal.ONE, OrderUnit.Month) }
            put("listStaticOrders") { reseller.listStaticOrders(search = "o-1") }
            put("getStaticOrderStatistics") { reseller.getStaticOrderStatistics() }
            put("renewStaticOrder") { reseller.renewStaticOrder(duration = BigDecimal.ONE, unit = OrderUnit.Month, cycleTimes = BigDecimal.ONE, orderNo = "o-1") }
            put("cancelStaticOrder") { reseller.cancelStaticOrder("o-1") }
            put("getDashboard") { reseller.getDashboard() }
            put("listConsumption") { reseller.listConsumption() }
            put("listAgentTransactions") { reseller.listAgentTransactions() }
            put("getUsdtWallet") { reseller.getUsdtWallet() }
            put("createUsdtOrder") { reseller.createUsdtOrder(free) }
            put("checkUsdtOrder") { reseller.checkUsdtOrder(JsonObject(mapOf("order_no" to JsonPrimitive("u-1")))) }
            put("listUsdtOrders") { reseller.listUsdtOrders() }
            put("cancelUsdtOrder") { reseller.cancelUsdtOrder(free) }
            put("placeOrder") { reseller.placeOrder("p", 7, zero, zero, BigDecimal.ONE, BigDecimal.ONE, BigDecimal.ONE, OrderUnit.Month, intent = "job-17") }
            put("waitOrder") { reseller.waitOrder("o-1") }
            put("request") { reseller.request(Method.POST, "/x", body = free) }
        }

    private fun printed(error: Throwable): String = StringWriter().also { error.printStackTrace(PrintWriter(it)) }.toString()

    @Test
    fun `every operation is among those that are called here`() {
        val beside = setOf("reconcile", "resume", "resumeIntent", "resumeAll", "saved", "settle", "forget", "shutdown")
        val found = ResellerClient::class.java.methods.filter { it.parameterTypes.lastOrNull()?.simpleName == "Continuation" && '$' !in it.name }
        ResellerClient(null, null, "https://api.example/api").use { assertEquals(found.map { it.name.substringBefore('-') }.toSet() - beside, calls(it).keys) }
    }

    @Test
    fun `no secret of the whole API is printed, told or kept`(@TempDir folder: Path): Unit = runBlocking {
        val (shown, sent) = CopyOnWriteArrayList<String>() to CopyOnWriteArrayList<String>()
        val met = CopyOnWriteArrayList<KClass<*>>()
        var mode = "answered"
        val service = Scripted { request ->
            sent += "${request.headers} ${request.body?.decodeToString()}"
            shown += kept(folder) + "$request"
            val refused = mode == "refused"
            if (mode == "lost" && !request.url.endsWith("/auth/login")) throw IOException("lost ${request.headers.map { it.second }} and ${request.body?.decodeToString()}")
            val body = if (refused) """{"code":400,"message":"no"}""" else """{"code":0,"message":"ok","data":$data}"""
            Response(if (refused) 400 else 200, listOf("Content-Type" to "application/json"), body.toByteArray())
        }
        val login = Secret("canary-reseller") to Secret("canary-password")
        val options = Options(attempts = 1)
        ResellerClient(login.first, login.second, "https://api.example/api", transport = service, store = FolderStore(folder), options = options).use { reseller ->
            val events = launch { reseller.events.collect { shown += "$it" } }
            yield()
            suspend fun told(call: suspend () -> Any) {
                val came = runCatching { call() }
                came.onSuccess { met += it::class }.onFailure { met += (it as HoplineException)::class }
                shown += came.fold({ "$it" }, ::printed)
            }
            for (call in calls(reseller).values) shown += "${call()}"
            assertEquals("canary-token" to "canary@mail.example", reseller.token?.reveal() to reseller.listSubUsers().items.single().email?.reveal())
            assertEquals("canary-proxy", instances(reseller.waitOrder("o-1")).single().word("password"))
            val walks = listOf(reseller.walkSubUsers(headers = header), reseller.walkStaticOrders(headers = header))
            shown += walks.map { "${it.pages().toList()} $it ${it.position}" } + listOf(reseller, reseller.token, options).map { "$it" }
            mode = "lost"
            for ((name, call) in calls(reseller)) if (name !in setOf("login", "placeOrder", "waitOrder")) told(call)
            shown += kept(folder)
            mode = "answered"
            for (saved in reseller.saved()) {
                shown += "$saved"
                if (saved.holds == RecordKind.IN_DOUBT_FOR_GOOD) told { reseller.reconcile(saved.record) }
            }
            mode = "refused"
            for (call in calls(reseller).values) told(call)
            shown += reseller.saved().map { "$it" } + kept(folder)
            assertTrue(met.containsAll(listOf(Reconciliation::class, HoplineException.InDoubt::class, HoplineException.Refused::class)), "$met")
            assertTrue(kept(folder).isNotEmpty(), "records were kept")
            reseller.close()
            events.join()
        }
        for (secret in listOf("reseller", "password", "token", "header", "body", "sub-password", "new-password").map { "canary-$it" } + "canary@mail.example") {
            assertTrue(sent.any { secret in it }, "$secret was never sent, so nothing is shown by its absence")
        }
        for (text in shown) assertTrue("canary" !in text, "a secret shows in: $text")
    }
}
