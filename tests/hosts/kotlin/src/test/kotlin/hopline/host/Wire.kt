package hopline.host

import hopline.Request
import hopline.Response
import hopline.Transport
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.concurrent.thread

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

/** A server on a raw socket, which does with each request what it is told. It counts them all. */
class RawServer(private val answer: RawServer.(request: String, socket: Socket) -> Boolean) : AutoCloseable {
    private val listener = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    private val sockets = CopyOnWriteArrayList<Socket>()
    val requests = CopyOnWriteArrayList<String>()
    val connections = CopyOnWriteArrayList<Int>()
    val url = "http://127.0.0.1:${listener.localPort}/v1"

    init {
        thread(isDaemon = true) {
            while (!listener.isClosed) {
                val socket = runCatching { listener.accept() }.getOrNull() ?: break
                sockets += socket
                connections += socket.port
                thread(isDaemon = true) { runCatching { socket.use { serve(it) } } }
            }
        }
    }

    fun count(method: String): Int = requests.count { it.startsWith("$method ") }

    /** Writes an answer that leaves the connection open. */
    fun write(socket: Socket, status: String, body: String, vararg headers: String): Boolean {
        val lines = listOf("HTTP/1.1 $status", "Content-Type: application/json", "Content-Length: ${body.length}") + headers
        socket.getOutputStream().apply { write((lines.joinToString("\r\n") + "\r\n\r\n" + body).toByteArray()) }.flush()
        return true
    }

    private fun serve(socket: Socket) {
        val input = socket.getInputStream()
        while (true) {
            val head = StringBuilder()
            while (!head.endsWith("\r\n\r\n")) head.append(input.read().also { if (it < 0) return }.toChar())
            val length = Regex("(?i)content-length: *(\\d+)").find(head)?.groupValues?.get(1)?.toInt() ?: 0
            input.readNBytes(length)
            requests += head.lines().first()
            if (!answer(head.toString(), socket)) return
        }
    }

    override fun close() {
        listener.close()
        sockets.forEach { it.close() }
    }
}
