package hopline.host

import hopline.core.ClientException
import hopline.core.Move
import hopline.core.MoveAnswer
import hopline.core.Step
import hopline.core.Taken
import hopline.core.hostText
import hopline.core.pageParams
import hopline.core.pageTurn
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// The verbs about what was seen through a session, about pages of a list, and about what needs no client.

internal fun World.observe(step: JsonObject) {
    val told = (act(Move.Observe(step.word("observe"), step.getValue("seen").toString())) as MoveAnswer.Advice).verdict
    val found = told?.let { told("VerdictFields", it) } ?: EMPTY
    same(step["verdict"] ?: JsonNull, found["verdict"] ?: JsonNull, "verdict")
    same(step["reason"] ?: JsonNull, found["reason"] ?: JsonNull, "reason")
    step["why"]?.let { like(JsonObject(mapOf("contains" to it)), found["why"], "why") }
    check(("as" in step) == ("command" in found)) { "expected a command for ${step["as"]}, came $found" }
    step.maybe("as")?.let { nameCommand(it, found.word("command").toUInt()) }
}

internal fun World.walk(step: JsonObject) {
    val begin = JsonObject(step.filterKeys { it == "operation" || it == "max_pages" } + ("position" to beginning(step)))
    var position: String? = null
    var end: String? = null
    val params = (step["params"] ?: EMPTY).toString()
    val items = ArrayList<JsonElement>()
    var failure = refusal { position = Json.parseToJsonElement(hostText("walk", begin.toString())).members().word("position") }
    for (page in (step["pages"] as JsonArray?).orEmpty().map { it.members() }) {
        val from = position?.takeIf { failure == null && end == null } ?: throw Failure("expected a read of ${page["send"]}, and the walk is over")
        val command = this.begin(Move.Start(step.word("operation"), pageParams(from, params), "{}"))
        send(page)
        val found = next()
        check(found is Step.Completed && found.command == command) { "expected the end of a page, came ${shown(found)}" }
        when (val taken = take(command)) {
            is Taken.Answered -> {
                val turn = Json.parseToJsonElement(pageTurn(from, taken.answer.facts)).members()
                position = turn.maybe("position")
                end = turn.maybe("end")
                val page = Json.parseToJsonElement(taken.answer.raw) as? JsonObject
                // As it was written, the list may be under its other name.
                if (end != "repeated_page") items.addAll(listOf("items", "list").firstNotNullOfOrNull { page?.get(it) as? JsonArray }.orEmpty())
            }
            is Taken.Failed -> failure = errorOf(taken.error)
            null -> throw Failure("a page that has ended has a result")
        }
    }
    check((failure == null) == ("error" !in step)) { "expected the error ${step["error"]}, came $failure" }
    failure?.let { error ->
        noSecret("an error", "$error")
        like(inKotlin(step.getValue("error")), named(error), "error")
    }
    check(step.maybe("end") == end) { "expected the end ${step["end"]}, came $end" }
    step["items"]?.let { like(it, JsonArray(items), "items") }
    check(step.word("walk") !in walks) { "a walk is named ${step["walk"]} already" }
    walks[step.word("walk")] = position
}

/** The position where it begins, as its text; null for the first page. */
private fun World.beginning(step: JsonObject): JsonElement =
    step.maybe("from")?.let { JsonPrimitive(walks[it] ?: throw Failure("`$it` is no walk to go on from")) } ?: step["position_text"] ?: JsonNull

/** The functions that need no client. */
internal fun ask(step: JsonObject) {
    check(("ok" in step) != ("error" in step)) { "an answer is one of `ok` and `error`" }
    var answer: String? = null
    val failure = refusal { answer = hostText(step.word("ask"), step.getValue("given").toString()) }
    failure?.let { error ->
        noSecret("an error", "$error")
        check("error" in step) { "expected ${step["ok"]}, came $error" }
        like(inKotlin(step.getValue("error")), error, "error")
    }
    answer?.let {
        check("ok" in step) { "expected the error ${step["error"]}, came $it" }
        same(step.getValue("ok"), Json.parseToJsonElement(it), "ok")
    }
}

private fun refusal(ask: () -> Unit): JsonObject? =
    try {
        ask()
        null
    } catch (refused: ClientException.Refused) {
        errorOf(refused.error)
    }
