package hopline.host

import hopline.Claim
import hopline.Clock
import hopline.FolderStore
import hopline.Spent
import hopline.Store
import hopline.StorePage
import java.io.File
import java.nio.file.Files
import java.nio.file.Path
import kotlin.io.path.name
import kotlin.io.path.readBytes
import kotlin.io.path.writeBytes
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory

/** The requirements of every store, as data: the folder, and an app's own store. */
class StoreTest {
    private val cases: List<Pair<String, JsonObject>> =
        File(System.getenv("HOPLINE_STORE") ?: "../../store").listFiles { file -> file.extension == "json" }!!.sorted().flatMap { file ->
            val members = Json.parseToJsonElement(file.readText()).members()
            only(members, setOf("about", "cases"), file.name)
            (members.getValue("cases") as JsonArray).map { it.members() }.map { "${file.name}: ${it.word("name")}" to it }
        }

    @TestFactory
    fun `a folder does what every store must`(): List<DynamicTest> = tests(setOf("damage")) { clock -> Folders(clock) }

    @TestFactory
    fun `a store of one's own does what every store must`(): List<DynamicTest> = tests(emptySet()) { clock -> Own(clock) }

    private fun tests(can: Set<String>, place: (Clock) -> Place): List<DynamicTest> {
        val (run, left) = cases.partition { (_, case) -> words(case["needs"]).all { it in can } }
        println("stores: ${run.size} cases, without ${left.size} that need ${left.flatMap { words(it.second["needs"]) }.toSet() - can}")
        check(run.size > 90) { "only ${run.size} cases were found" }
        return run.map { (name, case) -> dynamicTest(name) { run(case, place) } }
    }

    @Test
    fun `a store that does otherwise does not pass`() {
        for (step in listOf(
            """{"as":"a","put":"5e.r00000000000000000000000000000001","data":"x","answer":"done"}""",
            """{"as":"a","claim":["5e.r00000000000000000000000000000001"],"most":1,"answer":{"busy":null}}""",
            """{"as":"a","list":"5e","answer":{"entries":[],"more":true}}""", """{"as":"a","spend":"00","space":"5e","amount":"1","answer":{"over":"0"}}""",
            """{"as":"a","deelte":"5e.r1","answer":"done"}""",
        )) {
            val case = Json.parseToJsonElement("""{"name":"n","steps":[$step]}""").members()
            assertThrows(Failure::class.java, { run(case) { Own(it) } }, step)
        }
    }

    private fun run(case: JsonObject, place: (Clock) -> Place) = runBlocking {
        only(case, setOf("name", "needs", "steps"), "a case")
        val clock = SetClock()
        place(clock).use { here ->
            (case.getValue("steps") as JsonArray).map { it.members() }.forEachIndexed { n, step ->
                try {
                    here.run(step, clock)
                } catch (failure: Failure) {
                    throw Failure("step ${n + 1} ($step): ${failure.message}")
                }
            }
        }
    }
}

private class SetClock(var now: Long = 1_750_000_000_000) : Clock {
    override fun unix(): Long = now

    override fun monotonic(): Long = now
}

/** Where the clients of a case have their store. */
private abstract class Place : AutoCloseable {
    protected val clients = HashMap<String, Store>()

    abstract fun open(): Store

    /** A client ends without being closed. */
    abstract suspend fun die(client: Store)

    abstract fun damage(name: String, how: String)

    suspend fun run(step: JsonObject, clock: SetClock) {
        // `release` is a verb, and a member of a put.
        val verb = (VERBS.keys.filter { it in step } - "release").ifEmpty { listOf("release") }.singleOrNull()
        check(verb != null && verb in step) { "it has not one verb" }
        verb as String
        only(step, VERBS.getValue(verb) + verb, "it")
        when (verb) {
            "now" -> clock.now = step.word("now").toLong()
            "close" -> clients.remove(step.word("close"))!!.close()
            "die" -> die(clients.remove(step.word("die"))!!)
            "damage" -> damage(step.word("damage"), step.word("how"))
            "fill" -> fill(step)
            else -> {
                val answer = ask(client(step), verb, step)
                check(fits(step.getValue("answer"), answer)) { "came $answer" }
            }
        }
    }

    private fun client(step: JsonObject): Store = clients.getOrPut(step.word("as")) { open() }

    private suspend fun ask(store: Store, verb: String, step: JsonObject): JsonElement =
        when (verb) {
            "claim" -> claimed(store.claim(words(step["claim"]), step.word("most").toInt()))
            "put" -> written(put(store, step, step.word("put")))
            "delete" -> written(store.delete(step.word("delete")))
            "release" -> store.release((step["release"] as? JsonArray)?.let(::words)).let { JsonPrimitive("done") }
            "list" -> listed(store.list(step.word("list"), step.maybe("after"), step.flag("open")))
            else -> {
                val (amount, cap) = step.word("amount").toBigDecimal() to step.maybe("cap")?.toBigDecimal()
                spent(store.spend(step.word("space"), step.maybe("day")?.toLong(), step.word("spend"), amount, cap))
            }
        }

    private suspend fun put(store: Store, step: JsonObject, name: String): Boolean =
        store.put(name, step.word("data").toByteArray(), step.flag("new"), step.maybe("keep_for")?.toLong()?.milliseconds, step.flag("release"))

    private suspend fun fill(step: JsonObject) {
        val fill = step.getValue("fill").members()
        val first = fill.word("first").toInt()
        for (number in first until first + fill.word("count").toInt()) {
            val name = "%s.%s%032x".format(fill.word("space"), fill.word("kind"), number)
            check(put(client(step), JsonObject(step + ("new" to JsonPrimitive(true))), name)) { "$name was not put" }
        }
    }

    private fun written(isDone: Boolean): JsonElement = JsonPrimitive(if (isDone) "done" else "lost")

    private fun text(data: ByteArray?): JsonElement = data?.let { JsonPrimitive(it.decodeToString()) } ?: JsonNull

    private fun claimed(claim: Claim): JsonElement =
        when (claim) {
            is Claim.Claimed -> JsonObject(mapOf("claimed" to JsonObject(claim.names.mapValues { text(it.value) })))
            is Claim.Busy -> JsonObject(mapOf("busy" to text(claim.data)))
        }

    private fun listed(page: StorePage): JsonElement {
        val entries = page.entries.map { entry ->
            JsonObject(mapOf("name" to JsonPrimitive(entry.name), "data" to text(entry.data), "whose" to JsonPrimitive(entry.whose.name.lowercase())))
        }
        return JsonObject(mapOf("entries" to JsonArray(entries), "more" to JsonPrimitive(page.more)))
    }

    private fun spent(spent: Spent): JsonElement =
        when (spent) {
            is Spent.Granted -> JsonObject(mapOf("granted" to JsonPrimitive(spent.day)))
            is Spent.Over -> JsonObject(mapOf("over" to JsonPrimitive(spent.total.toPlainString()), "day" to JsonPrimitive(spent.day)))
        }

    private fun fits(wanted: JsonElement, found: JsonElement): Boolean {
        val (members, came) = (wanted as? JsonObject) to (found as? JsonObject)
        if (members == null || came == null) return wanted == found
        val claimed = came["claimed"] as? JsonObject
        return when {
            "claimed" in members -> claimed != null && sameData(members.getValue("claimed").members(), claimed)
            "claimed_count" in members -> {
                val of = members.getValue("of").members()
                claimed != null && claimed.size == members.word("claimed_count").toInt() && claimed.all { (name, data) -> name in of && fitsData(of.getValue(name), data) }
            }
            "busy" in members -> "busy" in came && fitsData(members.getValue("busy"), came.getValue("busy"))
            "granted" in members -> members.maybe("granted") == came.maybe("granted")
            "over" in members -> {
                val isSum = came.maybe("over")?.toBigDecimal()?.compareTo(members.word("over").toBigDecimal()) == 0
                isSum && members.maybe("day") == came.maybe("day")
            }
            "count" in members -> fitsPage(members, (came["entries"] as? JsonArray).orEmpty().map { it.members() }, came)
            else -> fitsEntries(members, (came["entries"] as? JsonArray).orEmpty().map { it.members() }, came)
        }
    }

    private fun fitsPage(wanted: JsonObject, entries: List<JsonObject>, came: JsonObject): Boolean =
        wanted.word("count").toInt() == entries.size && wanted.word("first") == entries.first().word("name") &&
            wanted.word("last") == entries.last().word("name") && wanted["more"] == came["more"]

    private fun fitsEntries(wanted: JsonObject, entries: List<JsonObject>, came: JsonObject): Boolean {
        val all = (wanted.getValue("entries") as JsonArray).map { it.members() }
        return wanted["more"] == came["more"] && all.size == entries.size && all.zip(entries).all { (one, other) ->
            one["name"] == other["name"] && one["whose"] == other["whose"] && fitsData(one.getValue("data"), other.getValue("data"))
        }
    }

    private fun sameData(wanted: JsonObject, found: JsonObject): Boolean =
        wanted.keys == found.keys && wanted.all { (name, data) -> fitsData(data, found.getValue(name)) }

    private fun fitsData(wanted: JsonElement, found: JsonElement): Boolean =
        when {
            wanted !is JsonObject -> wanted == found
            "one_of" in wanted -> (wanted.getValue("one_of") as JsonArray).any { fitsData(it, found) }
            else -> wanted.flag("unreadable") && found is JsonPrimitive && found.isString && runCatching { Json.parseToJsonElement(found.content) as JsonObject }.isFailure
        }

    private companion object {
        private val CALL = setOf("as", "answer")
        val VERBS: Map<String, Set<String>> =
            mapOf(
                "claim" to CALL + "most", "put" to CALL + setOf("data", "new", "release", "keep_for"), "delete" to CALL,
                "list" to CALL + setOf("after", "open"), "spend" to CALL + setOf("space", "amount", "cap", "day"),
                "fill" to setOf("as", "data", "release", "keep_for"), "close" to emptySet(), "die" to emptySet(), "now" to emptySet(),
                "damage" to setOf("how"), "release" to CALL,
            )
    }
}

private class Folders(private val clock: Clock) : Place() {
    private val folder: Path = Files.createTempDirectory("hopline-store")

    override fun open(): Store = FolderStore(folder, clock)

    /** Does the work of a garbage collector: the native half is dropped. */
    override suspend fun die(client: Store): Unit =
        FolderStore::class.java.getDeclaredField("folder").apply { isAccessible = true }.get(client).let { (it as AutoCloseable?)?.close() ?: Unit }

    override fun damage(name: String, how: String) {
        val file = Files.walk(folder).use { all -> all.filter { it.name == name }.findFirst().orElseThrow() }
        val bytes = file.readBytes()
        file.writeBytes(
            when (how) {
                "cut" -> bytes.copyOf(bytes.size / 2)
                "empty" -> ByteArray(0)
                "garbage" -> ByteArray(bytes.size) { 0xA5.toByte() }
                else -> throw Failure("nobody knows the damage `$how`")
            },
        )
    }

    override fun close() {
        runBlocking { clients.values.forEach { it.close() } }
        folder.toFile().deleteRecursively()
    }
}

private class Own(clock: Clock) : Place() {
    private val store = SharedStore(clock::unix)

    override fun open(): Store = store.client()

    override suspend fun die(client: Store): Unit = client.release(null)

    override fun damage(name: String, how: String): Unit = throw Failure("nothing is stored in bytes here")

    override fun close(): Unit = Unit
}
