package hopline

import java.io.ByteArrayOutputStream
import java.util.zip.GZIPInputStream
import java.util.zip.InflaterInputStream

/**
 * Unpacks a response whose body the service compressed without a request for it, if the transport did not. Compressed data begins as no
 * JSON does, so a transport that unpacks and leaves the header there does no harm. Throws if the body was broken off.
 */
internal fun unpacked(response: Response, most: Int): Response {
    val encoding = response.headers.firstOrNull { it.first.equals("content-encoding", ignoreCase = true) }?.second?.trim()?.lowercase()
    val begin = response.body.take(2).map { it.toInt() and 0xff }
    val isPacked =
        when (encoding) {
            "gzip", "x-gzip" -> begin == listOf(0x1f, 0x8b)
            "deflate" -> begin.size == 2 && begin[0] % 16 == 8 && (begin[0] * 256 + begin[1]) % 31 == 0
            else -> false
        }
    if (!isPacked || response.truncated) return response
    val packed = response.body.inputStream().let { if (encoding == "deflate") InflaterInputStream(it) else GZIPInputStream(it) }
    val (body, part) = ByteArrayOutputStream() to ByteArray(8192)
    while (body.size() <= most) {
        val read = packed.read(part)
        if (read < 0) break
        body.write(part, 0, read)
    }
    return Response(response.status, response.headers, body.toByteArray())
}
