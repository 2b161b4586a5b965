package hopline

import hopline.core.Client
import hopline.core.ClientException
import hopline.core.hostText
import java.security.SecureRandom
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** Makes a client core, with entropy of its own. */
internal fun newCore(options: Secret): Client {
    val entropy = ByteArray(16).also { SecureRandom().nextBytes(it) }
    // Each send begins by a word of its own, so that it is known whether one that is broken off had begun.
    return asked { Client.driven(sound("client", "options", options.reveal()), entropy, needsVouching = true) }
}

/** Turns the core's refusal into an exception that people can read. */
internal inline fun <T> asked(ask: () -> T): T =
    try {
        ask()
    } catch (refused: ClientException.Refused) {
        throw exception(refused.error)
    }

/** Returns a text that can be written as UTF-8, as the core needs it. */
internal fun sound(operation: String, field: String, text: String): String {
    if (isText(text)) return text
    throw refused(operation, "not_text", "field" to field)
}

/** Returns true if a text can be written as UTF-8. */
internal fun isText(text: String): Boolean = Charsets.UTF_8.newEncoder().canEncode(text)

/** Asks the core a question that needs no client. */
internal fun ask(question: String, vararg given: Pair<String, Any?>): JsonObject =
    parse(asked { hostText(question, sound(question, "given", encode(*given))) }) as JsonObject

internal fun JsonObject.text(name: String): String? = (this[name] as? JsonPrimitive)?.takeUnless { it is JsonNull }?.content

/** The error of a call that is not made, in the words that every host uses for it. */
internal fun refused(operation: String, because: String, vararg more: Pair<String, Any?>): HoplineException =
    runCatching { ask("refusal", "operation" to operation, "because" to because, *more) }.exceptionOrNull() as HoplineException
