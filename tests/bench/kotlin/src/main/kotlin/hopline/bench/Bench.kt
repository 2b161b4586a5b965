package hopline.bench

import hopline.AgentClient
import hopline.Response
import hopline.Secret
import hopline.Transport
import java.io.File
import java.math.BigDecimal
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.Serializable
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.PrimitiveSerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonDecoder
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNamingStrategy
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.add
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonArray
import kotlinx.serialization.json.putJsonObject

// The costs of Hopline in Kotlin, beside others: `cargo xtask bench kotlin` runs it and writes its lines into a table.

/** A price as it is written. */
private object Exactly : KSerializer<BigDecimal> {
    override val descriptor = PrimitiveSerialDescriptor("BigDecimal", PrimitiveKind.STRING)

    override fun deserialize(decoder: Decoder) = BigDecimal(((decoder as JsonDecoder).decodeJsonElement() as JsonPrimitive).content)

    override fun serialize(encoder: Encoder, value: BigDecimal) = encoder.encodeString(value.toPlainString())
}

@Serializable
private class Product(
    val productNo: String,
    val name: String,
    val type: String,
    val sharing: String,
    val available: Boolean,
    @Serializable(Exactly::class) val price: BigDecimal,
    val currency: String,
    val unit: String,
    val stock: Long? = null,
    val country: String? = null,
    val city: String? = null,
)

@Serializable
private class Products(val items: List<Product>, val nextCursor: String? = null, val total: Long? = null, val cacheTtlSeconds: Long? = null)

@Serializable
private class Answer(val success: Boolean, val data: Products)

@OptIn(ExperimentalSerializationApi::class)
private val json = Json {
    ignoreUnknownKeys = true
    namingStrategy = JsonNamingStrategy.SnakeCase
}

private class Canned(private val body: ByteArray) : Transport {
    override suspend fun send(request: hopline.Request): Response = Response(200, listOf("content-type" to "application/json"), body)
}

private fun agent(body: ByteArray) = AgentClient(Secret("key"), "https://api.example/v1", Canned(body))

/** Microseconds that the work took, once: for each contender those of each round. Contenders take turns; the first rounds warm up. */
private suspend fun rounds(once: Boolean, contenders: List<suspend () -> Unit>): List<List<Double>> {
    val times = contenders.map { ArrayList<Double>() }
    val warm = if (once) 0 else 100
    for (round in 0 until warm + if (once) 1 else 25) {
        for ((index, work) in contenders.withIndex()) {
            val begun = System.nanoTime()
            var done = 0
            do {
                work()
                done++
            } while (!once && System.nanoTime() - begun < 5_000_000)
            if (round >= warm) times[index] += (System.nanoTime() - begun) / 1e3 / done
        }
    }
    return times
}

private fun row(work: String, own: List<Double>, what: String? = null, others: List<Double>? = null, goal: Double? = null): JsonElement =
    buildJsonObject {
        put("work", work)
        put("unit", "µs")
        putJsonArray("figures") { own.forEach { add(it) } }
        goal?.let { put("goal", it) }
        if (what != null) putJsonObject("beside") {
            put("what", what)
            putJsonArray("figures") { others.orEmpty().forEach { add(it) } }
        }
    }

/** `BenchKt BODY HOPLINE KOTLIN SERIALIZATION [--once]`: the list that all hosts read, and the versions. */
fun main(arguments: Array<String>) = runBlocking(Dispatchers.Default) {
    val (file, own, kotlin, serialization) = arguments
    val once = "--once" in arguments
    val list = File(file).readBytes()
    val (products, balance) = agent(list) to agent("""{"success":true,"data":{"balance":12.50}}""".toByteArray())
    check(products.listProducts().items.map { it.price } == json.decodeFromString<Answer>(list.decodeToString()).data.items.map { it.price })
    val (call, peer, small, blocking) =
        rounds(
            once,
            listOf(
                { check(products.listProducts().items.size == 100) },
                { check(json.decodeFromString<Answer>(list.decodeToString()).data.items.size == 100) },
                { check(balance.getBalance().raw.text.isNotEmpty()) },
                { runBlocking { check(balance.getBalance().raw.text.isNotEmpty()) } },
            ),
        )
    products.shutdown()
    balance.shutdown()
    val told = buildJsonObject {
        putJsonObject("versions") {
            put("hopline", own)
            put("Kotlin", kotlin)
            put("kotlinx.serialization", serialization)
            put("Java", System.getProperty("java.version"))
        }
        putJsonArray("rows") {
            add(row("a list of 100, the whole call", call, "kotlinx.serialization, typed, with `BigDecimal`", peer, 1.0))
            add(row("a small call", small))
            add(row("a small call, from a thread that waits for it", blocking))
        }
    }
    println(told)
}
