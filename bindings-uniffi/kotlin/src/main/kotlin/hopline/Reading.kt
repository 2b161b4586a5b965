package hopline

import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

// What the client tells about itself is JSON of few words, which always fits.

internal fun JsonObject.text(name: String): String? = (this[name] as? JsonPrimitive)?.takeUnless { it is JsonNull }?.content

internal fun JsonObject.number(name: String): Long? = text(name)?.toLongOrNull()
