package hopline

import hopline.core.hostText
import kotlinx.serialization.json.JsonObject

/** Asks the core what needs no client. */
internal fun ask(question: String, vararg given: Pair<String, Any?>): JsonObject =
    parse(asked { hostText(question, sound(question, "given", encode(*given))) }) as JsonObject
