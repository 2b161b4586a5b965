package hopline.host

import hopline.Request
import hopline.Response
import hopline.Transport
import java.util.concurrent.CopyOnWriteArrayList

/** An envelope with that data. */
fun answered(data: String, status: Int = 200): Response =
    Response(status, listOf("Content-Type" to "application/json"), """{"success":true,"data":$data}""".toByteArray())

/** A service of the test's own, without sockets. */
class Scripted(private val answer: suspend (Request) -> Response) : Transport {
    val sent = CopyOnWriteArrayList<Request>()

    override suspend fun send(request: Request): Response {
        sent += request
        return answer(request)
    }
}
