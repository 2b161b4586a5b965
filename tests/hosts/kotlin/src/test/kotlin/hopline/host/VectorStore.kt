package hopline.host

import hopline.core.Record
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// The verbs about the store: crashes, what is put into it, what is taken back from it.

internal fun World.crash(crash: JsonObject) {
    only(crash, setOf("entropy", "client", "after", "also"), "crash")
    crashes += 1
    options = overlay(options, crash["client"]?.members() ?: EMPTY)
    client.close()
    client = make(crash.maybe("entropy"))
    for (name in (crash["also"] as JsonArray?).orEmpty().map { (it as JsonPrimitive).content }) {
        val record = records.value(name)
        check(record in unsure) { "every save of `$name` was answered `saved`" }
        keep(record, unsure[record])
    }
    listOf(commands, steps, saves, unsure).forEach { it.clear() }
    out.clear()
    move(crash["after"] ?: JsonPrimitive(0))
}

internal fun World.put(step: JsonObject) {
    val name = step.word("put")
    if (name !in records) records.bind(name, name)
    val record = records.value(name)
    val text =
        step["change"]?.let { overlay(Json.parseToJsonElement(store.getValue(record).decodeToString()).members(), it.members()).toString() }
            ?: step.word("text")
    store[record] = text.toByteArray()
}

internal fun World.restore(step: JsonObject) {
    val held = (step.getValue("restore") as JsonArray).map { (it as JsonPrimitive).content }
    val wrong = step["refused"]?.members() ?: EMPTY
    val given = (held + wrong.keys.sorted()).map { Record(records.value(it), store.getValue(records.value(it))) }
    val told = named(client.restore(given, step.flag("same_account"))).members()
    same(step.getValue("restore"), told.getValue("held"), "held")
    val refused = (told.getValue("refused") as JsonArray).map { it.members() }.associate { it.word("record") to it.getValue("message") }
    check(refused.keys == wrong.keys) { "expected to be refused ${wrong.keys}, came ${refused.keys}" }
    wrong.forEach { (name, part) -> like(JsonObject(mapOf("contains" to part)), refused[name], "refused.$name") }
}

internal fun World.resumeAll(step: JsonObject) {
    val names = (step.getValue("resume_all") as JsonArray).map { (it as JsonPrimitive).content }
    val found = client.resumeAll()
    check(names.size == found.size) { "expected to resume $names, came ${found.size}" }
    names.zip(found).forEach { (name, command) -> nameCommand(name, command) }
}

internal fun World.settle(step: JsonObject) {
    val how = step.word("as")
    check(how == "happened" || how == "not_happened") { "a doubt can't be settled as $how" }
    done(step, client.settle(records.value(step.word("settle")), how == "happened", step.maybe("became")))
}

internal fun World.done(step: JsonObject, found: Boolean) =
    check((step.maybe("done") != "false") == found) { "expected ${step["done"] ?: true}, came $found" }

internal fun World.saved(step: JsonObject) {
    val listed = client.savedList()
    noSecret("the list of what is saved", listed)
    like(step.getValue("saved"), named(listed), "saved")
}
