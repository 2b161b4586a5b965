package hopline.host

import hopline.core.Client
import hopline.core.ClientException
import hopline.core.FailureKind
import hopline.core.Header
import hopline.core.Move
import hopline.core.MoveAnswer
import hopline.core.Sent
import hopline.core.Step
import hopline.core.StoreCall
import hopline.core.Taken
import hopline.core.responseHeaders
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

internal val EMPTY = JsonObject(emptyMap())

/** Runs a case; a [Failure] says at which step it failed, what was expected and what came. */
fun run(case: JsonObject) {
    val world =
        try {
            World(case)
        } catch (refused: ClientException.Refused) {
            val error = errorOf(refused.error)
            noSecret("an error", "$error")
            check("refused" in case) { "the client was refused: $error" }
            return like(inKotlin(case.getValue("refused")), error, "refused")
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
internal class World(case: JsonObject) {
    var options = overlay(Json.parseToJsonElement("""{"base_url":"https://api.example/v1","api_key":"canary-key","store":true}""").members(), case["client"]?.members() ?: EMPTY)
    var unix = case["now"]?.members()?.word("unix")?.toLong() ?: 1_750_000_000_000
    var monotonic = case["now"]?.members()?.word("monotonic")?.toLong() ?: 1_000_000
    val commands = HashMap<String, UInt>()
    val records = Names()
    val keys = Names()
    val entries = Names()
    val steps = HashMap<String, UInt>()
    val out = HashSet<UInt>()
    val calls = HashMap<UInt, StoreCall>()
    val store = VectorStore()
    private val sent = HashMap<String, String>()
    val walks = HashMap<String, String?>()
    var crashes = 0
    var client = make(case.maybe("entropy"))

    fun make(entropy: String?): Client {
        val given = JsonObject(options.filterValues { it !is JsonNull })
        return Client(given.toString(), entropy?.let(::unhex) ?: ByteArray(16) { crashes.toByte() })
    }

    /** Does what a host does, without the steps that come of it: a script names them one by one. */
    fun act(what: Move, body: ByteArray = ByteArray(0)): MoveAnswer {
        val answer = client.act(what, direct(body), unix, monotonic)
        if (answer is MoveAnswer.Refused) throw ClientException.Refused(answer.error)
        return answer
    }

    fun begin(what: Move): UInt = (act(what) as MoveAnswer.Command).command

    fun take(command: UInt): Taken? = client.result(command)?.also { act(Move.Taken(listOf(command))) }

    fun run(verb: String, step: JsonObject): Unit =
        when (verb) {
            "start" -> start(step)
            "put", "delete", "claim", "release", "list", "spend" -> expectCall(verb, step)
            "send" -> send(step)
            "resolve" -> resolve(step)
            "wait", "sleep" -> wait(step, verb)
            "advance" -> drained().let { move(step.getValue("advance")) }
            "completed" -> completed(step, verb)
            "complete" -> {
                completed(step, verb)
                nameParts(step, step.word(verb))
                take(step, step.word(verb))
            }
            "take" -> take(step, step.word(verb))
            "notify" -> notify(step)
            "cancel" -> act(Move.Cancel(command(step.word(verb)))).let { }
            "crash" -> crash(step.getValue(verb).members())
            "plant" -> plant(step)
            "lost" -> lost(step)
            "resume" -> nameCommand(step.word("as"), begin(Move.Resume(records.value(step.word(verb)), options(step))))
            "resume_intent" -> nameCommand(step.word("as"), begin(Move.ResumeIntent(step.word(verb), options(step))))
            "reconcile" -> nameCommand(step.word("as"), begin(Move.Start("reconcile", JsonObject(mapOf("record" to JsonPrimitive(records.value(step.word(verb))))).toString(), "{}")))
            "resume_all" -> nameCommand(step.word(verb), begin(Move.ResumeAll(options(step))))
            "settle" -> nameCommand(step.word("as"), settle(step))
            "forget" -> nameCommand(step.word("as"), begin(Move.Forget(records.value(step.word(verb)))))
            "release_session" -> release(step)
            "saved" -> saved(step)
            "observe" -> observe(step)
            "walk" -> walk(step)
            "ask" -> ask(step)
            else -> throw Failure("the runner has no verb `$verb`")
        }

    fun end() {
        drained()
        check(out.isEmpty()) { "at the end ${out.size} steps were never answered" }
    }

    /** The next step that is no event, and no call of the store that answers itself. */
    fun next(answersItself: (StoreCall) -> Boolean = { true }): Step {
        while (true) {
            when (val step = client.poll(unix, monotonic)) {
                is Step.Notify -> noSecret("an event", "${told("Event", step.event)}")
                is Step.Store -> if (!answerItself(step, answersItself)) return step
                else -> return step
            }
        }
    }

    /** The store answers by itself what a script does not name; every put and delete is named. */
    private fun answerItself(step: Step.Store, answersItself: (StoreCall) -> Boolean): Boolean {
        if (step.call is StoreCall.Put || step.call is StoreCall.Delete || !answersItself(step.call)) return false
        act(Move.Stored(step.id, store.call(step.call, unix)))
        return true
    }

    private fun drained(): Long? {
        val step = next()
        check(step is Step.Wait) { "expected nothing more to do, came ${shown(step)}" }
        return (step as Step.Wait).until
    }

    fun move(shift: JsonElement) {
        val both = shift as? JsonObject
        unix += both?.word("unix")?.toLong() ?: (shift as JsonPrimitive).content.toLong()
        monotonic += both?.word("monotonic")?.toLong() ?: (shift as JsonPrimitive).content.toLong()
    }

    fun named(found: JsonElement): JsonElement = keys.putInto(records.putInto(found))

    fun command(name: String): UInt = commands[name] ?: throw Failure("no command is named `$name`")

    fun nameCommand(name: String, command: UInt) =
        check(commands.getOrPut(name) { command } == command) { "a command is named `$name` already" }

    private fun nameStep(step: JsonObject, found: UInt) {
        val name = step.maybe("as") ?: return
        check(steps.getOrPut(name) { found } == found) { "a step is named `$name` already" }
    }

    private fun start(step: JsonObject) {
        val params = step.maybe("params_text") ?: (step["params"] ?: EMPTY).toString()
        nameCommand(step.word("start"), begin(Move.Start(step.word("operation"), params, options(step))))
    }

    /** A case says where it wants credentials, if it gives a session to its caller. */
    private fun options(step: JsonObject): String {
        val gives = "operation" !in step || step.word("operation") in setOf("open_session", "wait_session")
        return JsonObject((if (gives) mapOf("credentials" to JsonPrimitive(false)) else emptyMap()) + (step["options"]?.members() ?: EMPTY)).toString()
    }

    fun send(step: JsonObject) {
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

    fun expect(step: JsonObject, id: UInt) {
        out += id
        nameStep(step, id)
        step["answer"]?.let { answer(id, it) }
    }

    private fun answer(id: UInt, answer: JsonElement) {
        when {
            answer is JsonPrimitive -> storeAnswer(id, answer.content)
            "failed" in answer.members() -> {
                val members = answer.members()
                val kind = FailureKind.valueOf(members.word("failed").uppercase())
                act(Move.Fail(id, kind, Sent.valueOf(members.word("sent").uppercase())))
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
        act(Move.Respond(id, status, headers.map { Header(it.key, it.value) }, answer.flag("truncated")), body)
    }

    private fun resolve(step: JsonObject) {
        val id = steps[step.word("resolve")] ?: UInt.MAX_VALUE
        val refused =
            try {
                answer(id, step.getValue("answer"))
                null
            } catch (refused: ClientException.Refused) {
                errorOf(refused.error)
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
        val taken = take(command(name))
        if (step.flag("nothing")) return check(taken == null) { "expected nothing to take, came a result" }
        when (taken) {
            null -> throw Failure("expected a result to take, came nothing")
            is Taken.Failed -> {
                val error = errorOf(taken.error)
                noSecret("an error", "$error")
                check("error" in step) { "expected success, came $error" }
                like(inKotlin(step.getValue("error")), named(error), "error")
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
            val found = client.poll(unix, monotonic)
            if (found is Step.Store && answerItself(found) { true }) continue
            if (found !is Step.Notify) throw Failure("expected an event like ${step["notify"]}, came ${shown(found)}")
            val event = told("Event", found.event)
            noSecret("an event", "$event")
            try {
                return like(inKotlin(step.getValue("notify")), named(event), "notify")
            } catch (_: Failure) {
                continue
            }
        }
    }
}

internal fun shown(step: Step): String =
    when (step) {
        is Step.Send -> "Send(${step.request.method} ${step.request.url})"
        is Step.Store -> step.call.let { if (it is StoreCall.Put) "a put of ${it.name}: ${it.data.decodeToString()}" else "$it" }
        else -> "$step"
    }

private fun unhex(text: String): ByteArray = text.chunked(2).map { it.toInt(16).toByte() }.toByteArray()
