package hopline.host

import hopline.core.Client
import hopline.core.ClientException
import hopline.core.FailureKind
import hopline.core.Header
import hopline.core.Record
import hopline.core.Sent
import hopline.core.Step
import hopline.core.Taken
import hopline.core.pageParams
import hopline.core.pageTurn
import hopline.core.responseHeaders
import java.nio.ByteBuffer
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

private val EMPTY = JsonObject(emptyMap())

/** Runs a case; a [Failure] says at which step it failed, what was expected and what came. */
fun run(case: JsonObject) {
    val world =
        try {
            World(case)
        } catch (refused: ClientException.Refused) {
            noSecret("an error", refused.error)
            check("refused" in case) { "the client was refused: ${refused.error}" }
            return like(case.getValue("refused"), Json.parseToJsonElement(refused.error), "refused")
        }
    check("refused" !in case) { "expected the client to be refused, and it was not" }
    val script = case.getValue("script") as JsonArray
    check(script.isNotEmpty()) { "the script is empty" }
    script.map { it.members() }.forEachIndexed { n, step ->
        val verb = readStep(step)
        try {
            world.run(verb, step)
        } catch (failure: Exception) {
            throw Failure("step ${n + 1} ($verb): ${failure.message}").apply { initCause(failure) }
        }
    }
    world.end()
}

/** The client of one case, and what surrounds it. */
private class World(case: JsonObject) {
    private var options = overlay(Json.parseToJsonElement("""{"base_url":"https://api.example/v1","api_key":"canary-key"}""").members(), case["client"]?.members() ?: EMPTY)
    private var unix = case["now"]?.members()?.word("unix")?.toLong() ?: 1_750_000_000_000
    private var monotonic = case["now"]?.members()?.word("monotonic")?.toLong() ?: 1_000_000
    private val commands = HashMap<String, UInt>()
    private val records = Names()
    private val keys = Names()
    private val steps = HashMap<String, UInt>()
    private val out = HashSet<UInt>()
    private val saves = HashMap<UInt, Pair<String, ByteArray?>>()
    private val store = HashMap<String, ByteArray>()
    private val unsure = HashMap<String, ByteArray?>()
    private val sent = HashMap<String, String>()
    private val walks = HashMap<String, String?>()
    private var crashes = 0
    private var client = make(case.maybe("entropy"))

    private fun make(entropy: String?): Client {
        val given = JsonObject(options.filterValues { it !is JsonNull })
        return Client(given.toString(), entropy?.let(::unhex) ?: ByteArray(16) { crashes.toByte() })
    }

    fun run(verb: String, step: JsonObject): Unit =
        when (verb) {
            "start" -> start(step)
            "save", "delete" -> save(step, verb)
            "send" -> send(step)
            "resolve" -> resolve(step)
            "wait", "sleep" -> wait(step, verb)
            "advance" -> drained().let { move(step.getValue("advance")) }
            "completed" -> completed(step, verb)
            "complete" -> completed(step, verb).also { take(step, step.word(verb)) }
            "take" -> take(step, step.word(verb))
            "notify" -> notify(step)
            "cancel" -> client.cancel(command(step.word(verb)), unix, monotonic).let { }
            "crash" -> crash(step.getValue(verb).members())
            "put" -> put(step)
            "restore" -> restore(step)
            "resume" -> nameCommand(step.word("as"), client.resume(records.value(step.word(verb))))
            "reconcile" -> nameCommand(step.word("as"), client.start("reconcile", JsonObject(mapOf("record" to JsonPrimitive(records.value(step.word(verb))))).toString(), "{}"))
            "resume_all" -> resumeAll(step)
            "settle" -> settle(step)
            "forget" -> done(step, client.forget(records.value(step.word(verb))))
            "saved" -> saved(step)
            "observe" -> observe(step)
            "walk" -> walk(step)
            else -> throw Failure("the runner has no verb `$verb`")
        }

    fun end() {
        drained()
        check(out.isEmpty()) { "at the end ${out.size} steps were never answered" }
    }

    private fun next(): Step {
        while (true) {
            val step = client.poll(unix, monotonic)
            if (step !is Step.Notify) return step
            noSecret("an event", step.event)
        }
    }

    private fun drained(): Long? {
        val step = next()
        check(step is Step.Wait) { "expected nothing more to do, came ${shown(step)}" }
        return (step as Step.Wait).until
    }

    private fun move(shift: JsonElement) {
        val both = shift as? JsonObject
        unix += both?.word("unix")?.toLong() ?: (shift as JsonPrimitive).content.toLong()
        monotonic += both?.word("monotonic")?.toLong() ?: (shift as JsonPrimitive).content.toLong()
    }

    private fun named(text: String): JsonElement = keys.putInto(records.putInto(Json.parseToJsonElement(text)))

    private fun command(name: String): UInt = commands[name] ?: throw Failure("no command is named `$name`")

    private fun nameCommand(name: String, command: UInt) =
        check(commands.getOrPut(name) { command } == command) { "a command is named `$name` already" }

    private fun nameStep(step: JsonObject, found: UInt) {
        val name = step.maybe("as") ?: return
        check(steps.getOrPut(name) { found } == found) { "a step is named `$name` already" }
    }

    private fun keep(record: String, data: ByteArray?) {
        if (data == null) store.remove(record) else store[record] = data
    }

    private fun start(step: JsonObject) {
        val params = step.maybe("params_text") ?: (step["params"] ?: EMPTY).toString()
        nameCommand(step.word("start"), client.start(step.word("operation"), params, (step["options"] ?: EMPTY).toString()))
    }

    private fun save(step: JsonObject, verb: String) {
        val found = next()
        check(found is Step.Save && (found.data != null) == (verb == "save")) { "expected a $verb of `${step.word(verb)}`, came ${shown(found)}" }
        found as Step.Save
        records.bind(step.word(verb), found.record)
        found.data?.let { data ->
            noSecret("a record", data.decodeToString())
            like(step["has"] ?: EMPTY, named(data.decodeToString()), "has")
        }
        unsure[found.record] = found.data
        saves[found.id] = found.record to found.data
        expect(step, found.id)
    }

    private fun send(step: JsonObject) {
        val found = next()
        check(found is Step.Send) { "expected a send of ${step.word("send")}, came ${shown(found)}" }
        val (id, command, request) = found as Step.Send
        val line = "${request.method} ${request.url.removePrefix(options.word("base_url").trimEnd('/'))}"
        val text = (request.body ?: ByteArray(0)).decodeToString()
        check(line == step.word("send")) { "expected a send of ${step.word("send")}, came $line $text" }
        step.maybe("for")?.let { check(command(it) == command) { "expected a send for `$it`, came one for the command $command" } }
        step["headers"]?.members()?.forEach { (name, value) ->
            val given = request.headers.filter { it.name == name }.map { it.value }
            val wanted = if (value is JsonNull) emptyList() else listOf((value as JsonPrimitive).content)
            check(given == wanted) { "expected the header $name as $wanted, came $given" }
        }
        val sentKeys = request.headers.filter { it.name == "idempotency-key" }.map { it.value }
        check(sentKeys.size == (if ("key" in step) 1 else 0)) { "expected the key ${step["key"]}, came $sentKeys" }
        for (key in sentKeys) {
            keys.bind(step.word("key"), key)
            check(sent.getOrPut(key) { line + text } == line + text) { "the same key was sent with other bytes" }
        }
        step["body"]?.let { same(it, Json.parseToJsonElement(text), "body") }
        step.maybe("body_text")?.let { check(text == it) { "expected the body $it, came $text" } }
        step["timeout_ms"]?.let { same(it, JsonPrimitive(request.timeoutMs.toLong()), "timeout_ms") }
        step["max_body"]?.let { same(it, JsonPrimitive(request.maxBody.toLong()), "max_body") }
        step["within"]?.let { like(it, JsonPrimitive(request.sendBefore - monotonic), "within") }
        expect(step, id)
    }

    private fun expect(step: JsonObject, id: UInt) {
        out += id
        nameStep(step, id)
        step["answer"]?.let { answer(id, it) }
    }

    private fun answer(id: UInt, answer: JsonElement) {
        val word = (answer as? JsonPrimitive)?.content
        when {
            word == "failed" -> client.fail(id, FailureKind.STORE, Sent.NEVER, unix, monotonic)
            word == "saved" -> {
                client.saved(id, unix, monotonic)
                saves.remove(id)?.let { (record, data) ->
                    unsure.remove(record)
                    keep(record, data)
                }
            }
            "failed" in answer.members() -> {
                val members = answer.members()
                val kind = FailureKind.valueOf(members.word("failed").uppercase())
                client.fail(id, kind, Sent.valueOf(members.word("sent").uppercase()), unix, monotonic)
            }
            else -> respond(id, answer.members())
        }
        out -= id
    }

    private fun respond(id: UInt, answer: JsonObject) {
        val headers = LinkedHashMap((answer["headers"]?.members() ?: EMPTY).mapValues { (it.value as JsonPrimitive).content })
        val body =
            when {
                "text" in answer -> answer.word("text").repeat(answer.maybe("repeat")?.toInt() ?: 1).toByteArray()
                "hex" in answer -> unhex(answer.word("hex"))
                else -> {
                    headers.putIfAbsent("content-type", "application/json")
                    val about =
                        if ("ok" in answer) {
                            mapOf("success" to JsonPrimitive(true), "data" to answer.getValue("ok"))
                        } else {
                            mapOf("success" to JsonPrimitive(false), "data" to JsonNull, "error" to answer.getValue("error"))
                        }
                    JsonObject(about + listOfNotNull(answer["meta"]?.let { "meta" to it })).toString().toByteArray()
                }
            }
        val status = (if ("ok" in answer) answer.maybe("status") ?: "200" else answer.word("status")).toUShort()
        check("retry-after" in responseHeaders()) { "the class names the headers" }
        val direct = ByteBuffer.allocateDirect(body.size).put(body).rewind() as ByteBuffer
        client.respond(id, status, headers.map { Header(it.key, it.value) }, direct, answer.flag("truncated"), unix, monotonic)
    }

    private fun resolve(step: JsonObject) {
        val id = steps[step.word("resolve")] ?: UInt.MAX_VALUE
        val refused =
            try {
                answer(id, step.getValue("answer"))
                null
            } catch (refused: ClientException.Refused) {
                refused.error
            }
        check((refused != null) == step.flag("misuse")) { "the answer was ${refused ?: "taken"}" }
    }

    private fun wait(step: JsonObject, verb: String) {
        val until = drained()
        like(step.getValue(verb), until?.let { JsonPrimitive(it - monotonic) } ?: JsonNull, verb)
        if (verb == "sleep") {
            check(until != null) { "`sleep` needs a time" }
            move(JsonPrimitive(until!! - monotonic))
        }
    }

    private fun completed(step: JsonObject, verb: String) {
        val found = next()
        check(found is Step.Completed && found.command == command(step.word(verb))) { "expected `${step.word(verb)}` to end, came ${shown(found)}" }
    }

    private fun take(step: JsonObject, name: String) {
        val taken = client.take(command(name))
        if (step.flag("nothing")) return check(taken == null) { "expected nothing to take, came a result" }
        when (taken) {
            null -> throw Failure("expected a result to take, came nothing")
            is Taken.Failed -> {
                noSecret("an error", taken.error)
                check("error" in step) { "expected success, came ${taken.error}" }
                like(step.getValue("error"), named(taken.error), "error")
            }
            is Taken.Answered -> {
                check("ok" in step) { "expected the error ${step["error"]}, came an answer" }
                val expected = step.getValue("ok").members()
                only(expected, setOf("facts", "raw", "raw_text", "phase"), "ok")
                like(expected["facts"] ?: EMPTY, Json.parseToJsonElement(taken.answer.facts), "facts")
                expected["raw"]?.let { like(it, Json.parseToJsonElement(taken.answer.raw), "raw") }
                expected["raw_text"]?.let { same(it, JsonPrimitive(taken.answer.raw), "raw_text") }
                expected["phase"]?.let { same(it, taken.answer.phase?.let(::JsonPrimitive) ?: JsonNull, "phase") }
            }
        }
    }

    private fun notify(step: JsonObject) {
        while (true) {
            val found = client.poll(unix, monotonic) as? Step.Notify ?: throw Failure("expected an event like ${step["notify"]}")
            noSecret("an event", found.event)
            try {
                return like(step.getValue("notify"), named(found.event), "notify")
            } catch (_: Failure) {
                continue
            }
        }
    }

    private fun crash(crash: JsonObject) {
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

    private fun put(step: JsonObject) {
        val name = step.word("put")
        if (name !in records) records.bind(name, name)
        val record = records.value(name)
        val text =
            step["change"]?.let { overlay(Json.parseToJsonElement(store.getValue(record).decodeToString()).members(), it.members()).toString() }
                ?: step.word("text")
        store[record] = text.toByteArray()
    }

    private fun restore(step: JsonObject) {
        val held = (step.getValue("restore") as JsonArray).map { (it as JsonPrimitive).content }
        val wrong = step["refused"]?.members() ?: EMPTY
        val given = (held + wrong.keys.sorted()).map { Record(records.value(it), store.getValue(records.value(it))) }
        val told = named(client.restore(given, step.flag("same_account"))).members()
        same(step.getValue("restore"), told.getValue("held"), "held")
        val refused = (told.getValue("refused") as JsonArray).map { it.members() }.associate { it.word("record") to it.getValue("message") }
        check(refused.keys == wrong.keys) { "expected to be refused ${wrong.keys}, came ${refused.keys}" }
        wrong.forEach { (name, part) -> like(JsonObject(mapOf("contains" to part)), refused[name], "refused.$name") }
    }

    private fun resumeAll(step: JsonObject) {
        val names = (step.getValue("resume_all") as JsonArray).map { (it as JsonPrimitive).content }
        val found = client.resumeAll()
        check(names.size == found.size) { "expected to resume $names, came ${found.size}" }
        names.zip(found).forEach { (name, command) -> nameCommand(name, command) }
    }

    private fun settle(step: JsonObject) {
        val how = step.word("as")
        check(how == "happened" || how == "not_happened") { "a doubt can't be settled as $how" }
        done(step, client.settle(records.value(step.word("settle")), how == "happened"))
    }

    private fun done(step: JsonObject, found: Boolean) =
        check((step.maybe("done") != "false") == found) { "expected ${step["done"] ?: true}, came $found" }

    private fun saved(step: JsonObject) {
        val listed = client.savedList()
        noSecret("the list of what is saved", listed)
        like(step.getValue("saved"), named(listed), "saved")
    }

    private fun observe(step: JsonObject) {
        val told = client.observe(step.word("observe"), step.getValue("seen").toString(), unix, monotonic)
        val found = told?.let { Json.parseToJsonElement(it).members() } ?: EMPTY
        same(step["verdict"] ?: JsonNull, found["verdict"] ?: JsonNull, "verdict")
        same(step["reason"] ?: JsonNull, found["reason"] ?: JsonNull, "reason")
        step["why"]?.let { like(JsonObject(mapOf("contains" to it)), found["why"], "why") }
        check(("as" in step) == ("command" in found)) { "expected a command for ${step["as"]}, came $told" }
        step.maybe("as")?.let { nameCommand(it, found.word("command").toUInt()) }
    }

    private fun walk(step: JsonObject) {
        var position: String? = beginWalk(step)
        var end: String? = null
        val params = (step["params"] ?: EMPTY).toString()
        val items = ArrayList<JsonElement>()
        var failure = refusal { pageParams(position!!, params) }
        for (page in (step["pages"] as JsonArray?).orEmpty().map { it.members() }) {
            val from = position?.takeIf { failure == null && end == null } ?: throw Failure("expected a read of ${page["send"]}, and the walk is over")
            val command = client.start(step.word("operation"), pageParams(from, params), "{}")
            send(page)
            val found = next()
            check(found is Step.Completed && found.command == command) { "expected the end of a page, came ${shown(found)}" }
            when (val taken = client.take(command)) {
                is Taken.Answered -> {
                    items.addAll(Json.parseToJsonElement(taken.answer.raw).members().getValue("items") as JsonArray)
                    val turn = Json.parseToJsonElement(pageTurn(from, taken.answer.facts)).members()
                    position = turn["position"]?.toString()
                    end = turn.maybe("end")
                }
                is Taken.Failed -> failure = taken.error
                null -> throw Failure("a page that has ended has a result")
            }
        }
        check((failure == null) == ("error" !in step)) { "expected the error ${step["error"]}, came $failure" }
        failure?.let { error ->
            noSecret("an error", error)
            like(step.getValue("error"), named(error), "error")
        }
        check(step.maybe("end") == end) { "expected the end ${step["end"]}, came $end" }
        step["items"]?.let { like(it, JsonArray(items), "items") }
        check(step.word("walk") !in walks) { "a walk is named ${step["walk"]} already" }
        walks[step.word("walk")] = position
    }

    private fun beginWalk(step: JsonObject): String {
        val begin =
            step.maybe("from")?.let { walks[it] ?: throw Failure("`$it` is no walk to go on from") }
                ?: step.maybe("position_text")
                ?: JsonObject(mapOf("operation" to step.getValue("operation"))).toString()
        return step["max_pages"]?.let { JsonObject(Json.parseToJsonElement(begin).members() + ("max_pages" to it)).toString() } ?: begin
    }

    private fun refusal(ask: () -> Unit): String? =
        try {
            ask()
            null
        } catch (refused: ClientException.Refused) {
            refused.error
        }
}

private fun shown(step: Step): String = if (step is Step.Send) "Send(${step.request.method} ${step.request.url})" else step.toString()

private fun unhex(text: String): ByteArray = text.chunked(2).map { it.toInt(16).toByte() }.toByteArray()
