package hopline

import hopline.core.Client
import hopline.core.ClientException
import java.security.SecureRandom

/** A client core, with entropy of its own. */
internal fun newCore(options: Secret): Client {
    val entropy = ByteArray(16).also { SecureRandom().nextBytes(it) }
    return asked { Client(sound("client", "options", options.reveal()), entropy) }
}

/** What the core refused, as an exception that people can read. */
internal inline fun <T> asked(ask: () -> T): T =
    try {
        ask()
    } catch (refused: ClientException.Refused) {
        throw exception(refused.error)
    }

/** A text that can be written as UTF-8, as all that crosses into the core must be. */
internal fun sound(operation: String, field: String, text: String): String {
    if (Charsets.UTF_8.newEncoder().canEncode(text)) return text
    throw refused(operation, "not_text", "field" to field)
}
