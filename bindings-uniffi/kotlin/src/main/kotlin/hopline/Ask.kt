package hopline

import hopline.core.hostText
import kotlinx.serialization.json.JsonObject

/** Asks the core what needs no client. */
internal fun ask(question: String, vararg given: Pair<String, Any?>): JsonObject =
    parse(asked { hostText(question, sound(question, "given", encode(*given))) }) as JsonObject

/** The error of a call that is not made, in the words that every language has for it. */
internal fun refused(operation: String, because: String, vararg more: Pair<String, Any?>): HoplineException =
    runCatching { ask("refusal", "operation" to operation, "because" to because, *more) }.exceptionOrNull() as HoplineException
