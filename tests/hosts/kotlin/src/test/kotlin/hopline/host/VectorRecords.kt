package hopline.host

import hopline.core.Move
import hopline.core.MoveAnswer
import hopline.core.Step
import hopline.core.StoreAnswer
import hopline.core.StoreCall
import hopline.core.Taken
import hopline.core.savedPage
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// The verbs about the store: what is asked of it, crashes, what is put into it behind the client's back, what it holds.

/** The next call of the store, of the kind of a verb. */
internal inline fun <reified Call : StoreCall> World.called(step: JsonObject, verb: String): Pair<UInt, Call> {
    val found = next { it !is Call }
    val call = (found as? Step.Store)?.call
    check(call is Call) { "expected a $verb of ${step[verb]}, came ${shown(found)}" }
    return (found as Step.Store).id to call as Call
}

internal fun World.expectCall(verb: String, step: JsonObject): Unit =
    when (verb) {
        "put" -> called<StoreCall.Put>(step, verb).let { (id, call) ->
            records.bind(step.word(verb), call.name)
            given(step, "new", JsonPrimitive(call.new))
            given(step, "releases", JsonPrimitive(call.release))
            given(step, "keep_for", call.keepFor?.let(::JsonPrimitive) ?: JsonNull)
            noSecret("a record", call.data.decodeToString())
            step["has"]?.let { like(it, named(Json.parseToJsonElement(call.data.decodeToString())), "has") }
            asked(step, id, call)
        }
        "delete" -> called<StoreCall.Delete>(step, verb).let { (id, call) ->
            records.bind(step.word(verb), call.name)
            asked(step, id, call)
        }
        "claim" -> called<StoreCall.Claim>(step, verb).let { (id, call) ->
            records.bind(step.word(verb), call.names.single())
            asked(step, id, call)
        }
        "release" -> called<StoreCall.Release>(step, verb).let { (id, call) ->
            records.bind(step.word(verb), call.names?.single() ?: throw Failure("expected a release of one name, came one of all"))
            asked(step, id, call)
        }
        "list" -> called<StoreCall.ListNames>(step, verb).let { (id, call) ->
            val kind = if (call.open) "open" else "all"
            check(step.word(verb) == kind) { "expected a list of ${step.word(verb)}, came one of $kind" }
            asked(step, id, call)
        }
        else -> called<StoreCall.Spend>(step, verb).let { (id, call) ->
            entries.bind(step.word(verb), call.entry)
            given(step, "usd", JsonPrimitive(call.amount))
            given(step, "day", call.day?.let(::JsonPrimitive) ?: JsonNull)
            given(step, "cap", call.cap?.let(::JsonPrimitive) ?: JsonNull)
            asked(step, id, call)
        }
    }

private fun given(step: JsonObject, member: String, found: JsonElement) {
    step[member]?.let { same(it, found, member) }
}

private fun World.asked(step: JsonObject, id: UInt, call: StoreCall) {
    store.doubt(call)
    calls[id] = call
    expect(step, id)
}

/** The store answers a call that a script has named. */
internal fun World.storeAnswer(id: UInt, word: String) {
    val call = calls[id]
    val names = call?.let(::namesOf).orEmpty()
    val answer =
        when (word) {
            "failed" -> StoreAnswer.Failed
            "never" -> StoreAnswer.Never
            "lost" -> StoreAnswer.Lost.also { store.takeAway(names) }
            "busy" -> StoreAnswer.Busy(names.firstOrNull()?.let(store::data))
            "over" -> StoreAnswer.Over(store.today(unix), "0")
            else -> call?.let { store.call(it, unix) } ?: StoreAnswer.Done
        }
    val fits =
        when (word) {
            "done" -> answer is StoreAnswer.Done || answer is StoreAnswer.Lost
            "claimed" -> answer is StoreAnswer.Claimed
            "listed" -> answer is StoreAnswer.Listed
            "counted" -> answer is StoreAnswer.Granted || answer is StoreAnswer.Over
            else -> true
        }
    check(fits) { "the store would answer $answer" }
    act(Move.Stored(id, answer))
    calls.remove(id)
}

private fun namesOf(call: StoreCall): List<String> =
    when (call) {
        is StoreCall.Claim -> call.names
        is StoreCall.Put -> listOf(call.name)
        is StoreCall.Delete -> listOf(call.name)
        is StoreCall.Release -> call.names.orEmpty()
        is StoreCall.ListNames, is StoreCall.Spend -> emptyList()
    }

internal fun World.crash(crash: JsonObject) {
    only(crash, setOf("entropy", "client", "after", "also"), "crash")
    crashes += 1
    options = overlay(options, crash["client"]?.members() ?: EMPTY)
    client.close()
    client = make(crash.maybe("entropy"))
    store.crash(words(crash["also"]).map(records::value))
    listOf(commands, steps, calls).forEach { it.clear() }
    out.clear()
    move(crash["after"] ?: JsonPrimitive(0))
}

internal fun World.plant(step: JsonObject) {
    check(("text" in step) != ("change" in step)) { "`plant` takes `text`, or `change` with members" }
    val name = step.word("plant")
    step.maybe("name")?.let { records.bind(name, it) }
    val record = records.value(name)
    val text =
        step["change"]?.let { change ->
            val data = store.data(record) ?: throw Failure("the store holds no `$name`")
            overlay(Json.parseToJsonElement(data.decodeToString()).members(), change.members()).toString()
        } ?: step.word("text")
    store.plant(record, text.toByteArray())
}

internal fun World.lost(step: JsonObject) {
    val names = words(step["lost"]).map(records::value)
    store.takeAway(names)
    act(Move.Lost(names))
}

internal fun World.nameParts(step: JsonObject, command: String) {
    val names = words(step["parts"])
    if (names.isEmpty()) return
    val answered = client.result(command(command)) as? Taken.Answered ?: throw Failure("expected the commands $names, came no answer")
    val found = words(Json.parseToJsonElement(answered.answer.raw))
    check(names.size == found.size) { "expected the commands $names, came ${found.size}" }
    names.zip(found).forEach { (name, command) -> nameCommand(name, command.toUInt()) }
}

internal fun World.settle(step: JsonObject): UInt =
    begin(Move.Settle(records.value(step.word("settle")), step.getValue("happened").toString() == "true", step.maybe("became"), step.flag("early")))

internal fun World.release(step: JsonObject) {
    val found = (act(Move.ReleaseSession(step.word("release_session"))) as MoveAnswer.Was).so
    check((step.maybe("done") != "false") == found) { "expected ${step["done"] ?: true}, came $found" }
}

internal fun World.saved(step: JsonObject) {
    val listed = ArrayList<JsonElement>()
    var after: String? = null
    do {
        val command = begin(Move.Saved(after))
        val found = next()
        check(found is Step.Completed && found.command == command) { "expected the end of `saved`, came ${shown(found)}" }
        val page = take(command) as? Taken.Answered ?: throw Failure("what is saved could not be read")
        val members = told("SavedPage", savedPage(page.answer.raw))
        listed.addAll(members.getValue("entries") as JsonArray)
        after = members.maybe("after")
    } while (after != null)
    val all = named(JsonArray(listed)) as JsonArray
    noSecret("the list of what is saved", all.toString())
    like(step.getValue("saved"), JsonArray(all.sortedBy { records.place(it.members().word("record")) }), "saved")
}

internal fun words(list: JsonElement?): List<String> = (list as JsonArray?).orEmpty().map { (it as JsonPrimitive).content }
