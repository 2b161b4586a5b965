package hopline.host

import hopline.core.spelled
import hopline.core.spelledField
import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** The expected and the actual value. */
class Failure(said: String) : Exception(said)

fun check(holds: Boolean, said: () -> String) {
    if (!holds) throw Failure(said())
}

/** The members that each verb must have, and those that it may have. */
private val VERBS: Map<String, Pair<Set<String>, Set<String>>> =
    mapOf(
        "start" to (setOf("operation") to setOf("params", "params_text", "options")),
        "put" to (emptySet<String>() to setOf("has", "new", "releases", "keep_for", "as", "answer")),
        "delete" to (emptySet<String>() to setOf("as", "answer")),
        "claim" to (emptySet<String>() to setOf("as", "answer")),
        "release" to (emptySet<String>() to setOf("as", "answer")),
        "list" to (emptySet<String>() to setOf("as", "answer")),
        "spend" to (emptySet<String>() to setOf("usd", "day", "cap", "as", "answer")),
        "send" to (emptySet<String>() to setOf("for", "headers", "key", "body", "body_text", "timeout_ms", "max_body", "within", "as", "answer")),
        "resolve" to (setOf("answer") to setOf("misuse")),
        "wait" to (emptySet<String>() to emptySet()),
        "sleep" to (emptySet<String>() to emptySet()),
        "advance" to (emptySet<String>() to emptySet()),
        "completed" to (emptySet<String>() to emptySet()),
        "complete" to (emptySet<String>() to setOf("ok", "error", "parts")),
        "take" to (emptySet<String>() to setOf("ok", "error", "nothing")),
        "notify" to (emptySet<String>() to emptySet()),
        "cancel" to (emptySet<String>() to emptySet()),
        "crash" to (emptySet<String>() to emptySet()),
        "plant" to (emptySet<String>() to setOf("text", "change", "name")),
        "lost" to (emptySet<String>() to emptySet()),
        "resume" to (setOf("as") to setOf("options")),
        "resume_intent" to (setOf("as") to setOf("options")),
        "reconcile" to (setOf("as") to emptySet()),
        "resume_all" to (emptySet<String>() to setOf("options")),
        "settle" to (setOf("as", "happened") to setOf("became", "early")),
        "forget" to (setOf("as") to emptySet()),
        "release_session" to (emptySet<String>() to setOf("done")),
        "saved" to (emptySet<String>() to emptySet()),
        "observe" to (setOf("seen") to setOf("verdict", "reason", "why", "as")),
        "walk" to (setOf("operation") to setOf("params", "from", "position_text", "max_pages", "pages", "items", "end", "error")),
        "ask" to (setOf("given") to setOf("ok", "error")),
    )

/** The answers that the store may give; to a step that is resolved, each of these. */
private val WORDS: Map<String, Set<String>> =
    mapOf(
        "put" to setOf("done", "failed", "never", "lost"), "delete" to setOf("done", "failed", "never", "lost"),
        "claim" to setOf("claimed", "busy", "failed", "never"), "release" to setOf("done", "failed", "never"),
        "list" to setOf("listed", "failed", "never"), "spend" to setOf("counted", "over", "failed", "never"), "send" to emptySet(),
    )
private val ANSWER = setOf("ok", "error", "text", "repeat", "hex", "failed", "sent", "status", "headers", "meta", "truncated")
private val CASE = setOf("name", "client", "now", "entropy", "refused", "script")

fun only(members: JsonObject, known: Set<String>, what: String) {
    val strange = members.keys - known
    check(strange.isEmpty()) { "$what has the unknown members $strange" }
}

/** A case, by the name of its file and its own. */
class Case(val name: String, val members: JsonObject)

/** Every case. An unknown member is a failure. */
fun cases(folder: File): List<Case> {
    val files = folder.walk().filter { it.name.endsWith(".json") }.sorted().toList()
    val found = files.flatMap { path ->
        val file = Json.parseToJsonElement(path.readText()).members()
        only(file, setOf("about", "source", "cases"), path.name)
        val cases = file.getValue("cases") as JsonArray
        check(cases.isNotEmpty()) { "${path.name} has no cases" }
        cases.map { it.members() }.map { case ->
            only(case, CASE, path.name)
            (case["script"] as JsonArray?)?.forEach { readStep(it.members()) }
            Case("${path.relativeTo(folder)}: ${case.word("name")}", case)
        }
    }
    check(found.isNotEmpty()) { "there are no vectors in $folder" }
    return found
}

/** The verb of a step, which is understood whole. */
fun readStep(step: JsonObject): String {
    val verbs = VERBS.keys.filter { it in step }
    check(verbs.size == 1) { "a step has one verb, and this has the members ${step.keys}" }
    val (must, may) = VERBS.getValue(verbs[0])
    only(step, must + may + verbs[0], verbs[0])
    check(step.keys.containsAll(must)) { "${verbs[0]} needs $must" }
    (step["pages"] as JsonArray?).orEmpty().forEach { page -> check(readStep(page.members()) == "send") { "a page is a send" } }
    when (val answer = step["answer"]) {
        is JsonObject -> {
            only(answer, ANSWER, "an answer")
            check(answer.keys.count { it in setOf("ok", "error", "text", "hex", "failed") } == 1) { "an answer has one body or failure" }
        }
        null -> Unit
        else -> check((answer as? JsonPrimitive)?.content in (WORDS[verbs[0]] ?: WORDS.values.flatten())) { "an answer can't be $answer" }
    }
    return verbs[0]
}

fun JsonElement.members(): JsonObject = this as? JsonObject ?: throw Failure("expected an object, and it is ${toString().take(200)}")

fun JsonObject.word(name: String): String = (getValue(name) as JsonPrimitive).content

fun JsonObject.maybe(name: String): String? = (this[name] as? JsonPrimitive)?.takeUnless { it is JsonNull }?.content

fun JsonObject.flag(name: String): Boolean = maybe(name) == "true"

fun like(expected: JsonElement, found: JsonElement?, at: String) {
    val said = { "at `$at` expected ${expected.toString().take(600)}, came ${found.toString().take(600)}" }
    val keys = (expected as? JsonObject)?.keys
    val number = (found as? JsonPrimitive)?.takeUnless { it.isString }?.content?.toBigDecimalOrNull()
    when {
        keys == setOf("contains") -> check(found is JsonPrimitive && found.isString && expected.members().word("contains") in found.content, said)
        keys == setOf("repeated", "times") -> {
            val whole = expected.members().word("repeated").repeat(expected.members().word("times").toInt())
            check(found is JsonPrimitive && found.isString && found.content == whole, said)
        }
        keys == setOf("min", "max") && number != null -> {
            val bounds = expected.members()
            check(number >= bounds.word("min").toBigDecimal() && number <= bounds.word("max").toBigDecimal(), said)
        }
        expected is JsonObject -> {
            check(found is JsonObject, said)
            expected.forEach { (name, value) -> like(value, found!!.members()[name], "$at.$name") }
        }
        expected is JsonArray -> {
            check(found is JsonArray && found.size == expected.size, said)
            expected.forEachIndexed { n, value -> like(value, (found as JsonArray)[n], "$at[$n]") }
        }
        expected is JsonNull -> check(found == null || found is JsonNull, said)
        else -> {
            val wanted = (expected as JsonPrimitive).takeUnless { it.isString }?.content?.toBigDecimalOrNull()
            check(if (wanted != null) number != null && wanted.compareTo(number) == 0 else expected == found, said)
        }
    }
}

/** An expectation of an error or an event with the names as Kotlin spells them; vectors are in the core's spelling. */
fun inKotlin(expected: JsonElement): JsonElement =
    when (expected) {
        is JsonObject -> JsonObject(expected.mapValues { (name, value) -> inKotlin(name, value) })
        else -> expected
    }

private fun inKotlin(name: String, value: JsonElement): JsonElement =
    when {
        name in setOf("cause", "because") -> inKotlin(value)
        name in setOf("message", "what") && value is JsonObject -> JsonObject(value.mapValues { (_, part) -> inKotlin(name, part) })
        value !is JsonPrimitive || !value.isString -> value
        name in setOf("message", "what") -> JsonPrimitive(spelled(value.content))
        name == "field" -> JsonPrimitive(spelledField(value.content))
        else -> value
    }

fun same(expected: JsonElement, found: JsonElement, at: String) {
    like(expected, found, at)
    like(found, expected, at)
}

fun noSecret(what: String, text: String) = check("canary" !in text) { "$what holds a secret: $text" }

/** Lays members over others, object by object. */
fun overlay(base: JsonObject, over: JsonObject): JsonObject =
    JsonObject(base + over.mapValues { (name, value) -> (base[name] as? JsonObject)?.let { if (value is JsonObject) overlay(it, value) else null } ?: value })

/** Names that a script gives to what the client makes up. */
class Names {
    private val values = LinkedHashMap<String, String>()

    fun bind(name: String, value: String) {
        val known = values.getOrPut(name) { value }
        check(known == value) { "expected `$name` ($known), came $value" }
        val others = values.filter { (other, bound) -> bound == value && other != name }.keys
        check(others.isEmpty()) { "expected a new value for `$name`, came that of $others" }
    }

    fun value(name: String): String = values[name] ?: throw Failure("nothing is named `$name` yet")

    /** Where a name comes in the order of their first mentions; what has none comes last. */
    fun place(name: String): Int = values.keys.indexOf(name).let { if (it < 0) Int.MAX_VALUE else it }

    /** The name of a value, or of what people are shown of it: the value and a version. */
    private fun name(value: String): String =
        values.entries.firstOrNull { it.value == value || it.value == value.substringBeforeLast('.', value) }?.key ?: value

    fun putInto(value: JsonElement): JsonElement =
        when (value) {
            is JsonObject -> JsonObject(value.mapValues { putInto(it.value) })
            is JsonArray -> JsonArray(value.map(::putInto))
            is JsonPrimitive -> if (value.isString) JsonPrimitive(name(value.content)) else value
        }
}
